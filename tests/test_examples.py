"""The programs in examples/ do what they say."""

import pytest

import tutelage as tut
from toys import ROOT, example
from tutelage.runs import presets


def run_main(name: str, tmp_path) -> tut.Run:
    """Runs what stands under `__main__`, as the reader would, with its run directory under `tmp_path`."""
    names = dict(vars(example(name)))
    main = (ROOT / "examples" / f"{name}.py").read_text().split('if __name__ == "__main__":\n')[1]
    code = "\n".join(line[4:] for line in main.splitlines())
    exec(code.replace('"runs/', f'"{tmp_path}/'), names)
    return names["run"]


def test_accel_runs_on_the_own_env_and_its_levels_grow(tmp_path):
    run = run_main("own_env", tmp_path)
    assert run.metrics()[-1]["replay/solved"] > 0.9
    assert run.metrics()[-1]["buffer/pits"] > 2, "pits were dug"
    assert tut.Run(run.path, run.config.env).levels().generation.max() >= 3


@pytest.mark.slow
def test_the_own_method_learns_and_its_run_opens_again(tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "METHODS", presets.METHODS | {})
    run = run_main("own_method", tmp_path)
    assert run.metrics()[-1]["replay/score"] > run.metrics()[-1]["explore/score"], "it learns on what scores best"
    assert tut.Run(run.path).config.method.share == 0.25
