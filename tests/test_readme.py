"""What the README shows is what there is."""

import re
import shlex

import pytest

import tutelage as tut
from toys import ROOT, example
from tutelage import cli

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_own_env_is_the_example_to_the_letter():
    code = (ROOT / "examples" / "own_env.py").read_text()
    assert BLOCKS[1].strip() == code.split('"""\n\n', 1)[1].strip()


def test_accel_runs_on_the_own_env_and_its_levels_grow(tmp_path):
    module = example("own_env")
    main = (ROOT / "examples" / "own_env.py").read_text().split('if __name__ == "__main__":\n')[1]
    names = dict(vars(module))
    lines = [line[4:] for line in main.splitlines()]
    exec("\n".join(lines).replace('"runs/jumper"', repr(str(tmp_path / "jumper"))), names)  # as the reader would run it
    run = names["run"]
    assert run.metrics()[-1]["replay/solved"] > 0.9
    assert run.metrics()[-1]["buffer/pits"] > 2, "pits were dug"
    assert tut.Run(run.path, run.config.env).levels().generation.max() >= 3


def test_the_python_example_is_under_ten_lines_and_compiles():
    assert len(BLOCKS[0].strip().splitlines()) < 10
    compile(BLOCKS[0], "README", "exec")
    assert tut.preset("maze", "accel", seeds=5, updates=1000).seeds == 5


@pytest.mark.parametrize("line", re.findall(r"^    (tutelage [^#\n]*)", README, re.MULTILINE))
def test_every_command_shown_exists(line, capsys):
    words = shlex.split(line)[1:]
    known = words[:3] if words[0] == "train" else words[:1]
    with pytest.raises(SystemExit) as stop:
        cli.main([*known, "--help"])
    assert stop.value.code == 0
    help_text = capsys.readouterr().out
    for option in (w for w in words if w.startswith("--")):
        assert option in help_text


def test_files_that_are_linked_are_there():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
