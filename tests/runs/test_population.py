"""Points that take over one another's states, and points that are given up: what that does to their runs."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import tutelage as tut
from runs.sweeps import opened, write
from toys import tiny_maze
from tutelage import cli
from tutelage.errors import UserError
from tutelage.runs import points, population
from tutelage.runs.engines.ray import Ray
from tutelage.runs.points import Watch, left, run_of, runs_of
from tutelage.runs.storage import read_arrays
from tutelage.runs.sweep import Sweep
from tutelage.student.nets import StudentConfig

EVERY = 10


def sweep_of(grid) -> Sweep:
    config = tiny_maze(
        tut.DR(tut.BufferConfig(capacity=24)),
        student=StudentConfig(memory=False, hidden=16, head=8),
        updates=3 * EVERY,
        log_every=EVERY,
        eval_every=EVERY,
        eval_episodes=1,
        checkpoint_every=EVERY,
    )
    return Sweep({"dr": config}, grid)


def arrays(run: Path, updates: int):
    return read_arrays(run / "checkpoints" / f"{updates:08d}.safetensors")[0]


def test_a_member_takes_over_the_state_of_another_and_goes_on_from_it(tmp_path):
    rates = (1e-3, 1e-4)
    folder = opened(sweep_of({"ppo.learning_rate": rates}), tmp_path / "sweep")
    better, worse = Watch(folder).sweep.names

    def work(name, rate, start, on_progress=lambda p: None):
        population.work(folder, name, {"ppo.learning_rate": rate}, start, EVERY, on_progress)

    def interrupted(progress):
        raise KeyboardInterrupt

    work(better, rates[0], None)
    with pytest.raises(KeyboardInterrupt):
        work(worse, rates[1], None, interrupted)
    start = folder / better / "checkpoints" / f"{EVERY:08d}.safetensors"
    assert start.exists(), "kept, though two of later have come"
    for _ in range(2):  # the second time as if a worker had died and were replaced
        work(worse, rates[0], start)
    assert runs_of(folder, worse) == [folder / worse, folder / f"{worse}~2"]
    new = tut.Run(run_of(folder, worse))
    assert new.config.start == str(start)
    assert new.config.ppo.learning_rate == rates[0]
    assert new.checkpoints == [10, 20, 30]
    there, here = arrays(folder / better, EVERY), arrays(new.path, EVERY)
    assert all((there[name] == here[name]).all() for name in there)
    assert population.settings_of(folder, Watch(folder).sweep, worse) == {"ppo.learning_rate": rates[0]}
    work(worse, rates[1], new.path / "checkpoints" / f"{2 * EVERY:08d}.safetensors")
    assert run_of(folder, worse) == new.path, "from a checkpoint of its own it goes on where it stands"
    looked = Watch(folder).look()
    assert [(p.state, p.updates, p.score is not None) for p in looked] == [("finished", 30, True)] * 2
    assert [p.why for p in looked] == ["", f"from {better} at {EVERY}"]
    assert left(looked) == []


BAD = {
    "nothing may change": ({"seed": (0, 1)}, {}, EVERY, "a setting that may change"),
    "never compared": ({"ppo.clip": (0.1, 0.2)}, {"eval_every": 0}, EVERY, "they are played never"),
    "compared too rarely": ({"ppo.clip": (0.1, 0.2)}, {}, 15, "they are played every 10 student updates"),
    "other shapes": ({"student.hidden": (16, 8)}, {}, EVERY, "student.hidden changes what a state is made of"),
    "other numbers of seeds": ({"seeds": (1, 2), "ppo.clip": (0.1, 0.2)}, {}, EVERY, "as many seeds"),
    "seeds that overlap": ({"seed": (0, 1), "ppo.clip": (0.1, 0.2)}, {"seeds": 2}, EVERY, "first seeds must lie"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_sweep_that_can_be_no_population_is_refused(case):
    grid, changes, every, says = BAD[case]
    sweep = sweep_of(grid)
    sweep = Sweep({name: replace(config, **changes) for name, config in sweep.bases.items()}, grid)
    with pytest.raises(UserError, match=says):
        population.check(sweep, every)


def test_a_population_is_of_one_method():
    config = sweep_of({}).bases["dr"]
    with pytest.raises(UserError, match="of one method, not of 2"):
        population.check(Sweep({"a": config, "b": config}, {"ppo.clip": (0.1, 0.2)}), EVERY)


def test_what_ray_cannot_do_is_said_before_there_is_a_folder(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ray", reason="there is no wheel of Ray")
    monkeypatch.chdir(tmp_path)
    write(sweep_of({"student.hidden": (16, 8)}), tmp_path / "mine.json")
    assert cli.main(["sweep", "mine.json", "--engine", "ray", "--ray.population-every", "10"]) == 2
    assert "student.hidden changes what a state is made of" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
    both = ["--ray.population-every", "10", "--ray.stop-early", "asha"]
    assert cli.main(["sweep", "mine.json", "--engine", "ray", *both]) == 2
    assert "exclude one another" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_population_by_ray(tmp_path):
    """Of two members the worse takes over the better at each look that is not the last."""
    pytest.importorskip("ray", reason="there is no wheel of Ray")
    folder = opened(sweep_of({"ppo.learning_rate": (1e-3, 1e-4)}), tmp_path / "sweep")
    assert cli.main(["sweep", str(folder), "--resume", "--engine", "ray", "--ray.population-every", str(EVERY)]) == 0
    assert [p.state for p in Watch(folder).look()] == ["finished"] * 2
    starts = [tut.Run(run).config.start for name in Watch(folder).sweep.names for run in runs_of(folder, name)]
    taken = sorted(Path(start).stem for start in starts if start)
    assert taken == [f"{EVERY:08d}", f"{2 * EVERY:08d}"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_point_that_is_behind_is_given_up(tmp_path):
    """By Ray's ASHA, which hears of a point that solved all before it hears of one that has just begun."""
    pytest.importorskip("ray", reason="there is no wheel of Ray")
    folder = opened(sweep_of({"seed": (0, 1)}), tmp_path / "sweep")
    first, second = Watch(folder).sweep.names
    points.work(folder, first)
    file = folder / first / "metrics.jsonl"
    rows = [json.loads(line) | {"eval/solved": 1.0} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    Ray(cores=os.cpu_count() or 1, stop_early="asha").run(folder, [first, second], lambda: None)
    found = {p.name: p for p in Watch(folder).look()}
    assert found[first].state == "finished"
    assert found[second].state == "given up"
    assert found[second].why.startswith("behind others after ")
    assert found[second].updates < 3 * EVERY
    assert left(list(found.values())) == []
