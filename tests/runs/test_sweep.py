"""Sweeps: what their points are, how they stand, which is best; and that killing anything changes nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tutelage as tut
from runs.sweeps import final_checkpoints, is_midway, opened, tiny_sweep, train_by_hand, wait_for, write
from toys import jumper, tiny_maze
from tutelage import cli
from tutelage.envs.bipedal import WalkerDomain
from tutelage.errors import UserError
from tutelage.runs import points, searches
from tutelage.runs import sweep as sweeps
from tutelage.runs.engines.local import Local
from tutelage.runs.history import write as write_history
from tutelage.runs.points import Follower, Watch, best, left
from tutelage.runs.sweep import Sweep, changed, parse_setting

# What the points are

GRID = ["method.buffer.capacity=1000,4000", "method.buffer.replay-rate=0.5,0.8", "ppo.epochs=3"]


def of_presets(*grid: str, methods=("accel", "robust-plr"), **settings) -> Sweep:
    return Sweep.of_presets("maze", methods, settings, dict(parse_setting(text) for text in grid))


def test_points_are_all_combinations_under_names_that_say_what_differs():
    sweep = of_presets(*GRID, seeds=5)
    assert len(sweep) == len(sweep.names) == 8
    assert sweep.names[:2] == ["accel_capacity=1000_replay-rate=0.5", "accel_capacity=1000_replay-rate=0.8"]
    config = sweep.config("robust-plr_capacity=4000_replay-rate=0.5")
    assert isinstance(config.method, tut.RobustPLR)
    assert (config.method.buffer.capacity, config.method.buffer.replay_rate) == (4000, 0.5)
    assert (config.seeds, config.ppo.epochs, config.student) == (5, 3, tut.preset("maze", "accel").student)


def test_settings_that_end_alike_keep_what_tells_them_apart():
    sweep = Sweep({"x": tiny_maze()}, {"student.hidden": (8, 16), "ppo.epochs": (1, 2), "env.size": (5, 7)})
    assert sweep.names[0] == "x_hidden=8_epochs=1_size=5"
    twice = Sweep.of_presets("maze", ["paired"], {}, {"ppo.epochs": (1, 2), "method.teacher.ppo.epochs": (1, 2)})
    assert twice.names[0] == "paired_ppo.epochs=1_teacher.ppo.epochs=1"


def test_a_setting_has_the_type_that_it_must_have():
    config = changed(tiny_maze(), {"ppo.learning_rate": 1, "student.memory": False, "env.generator": "empty"})
    assert config.ppo.learning_rate == 1.0
    assert isinstance(config.ppo.learning_rate, float)
    assert config.student.memory is False
    assert config.env.generator == "empty"
    assert changed(config, {}) == config


def test_an_env_of_ones_own_can_be_searched_for_too():
    sweep = Sweep({"accel": jumper()}, {"ppo.epochs": (1, 2)})
    assert sweep.config("accel_epochs=2").env == jumper().env
    data = json.loads(json.dumps(sweep.to_json()))
    assert sweeps.from_json(data, sweep.bases["accel"].env).names == sweep.names


BAD = {
    "no such setting": ("ppo.epoch=3", "there is no setting 'ppo.epoch'; did you mean ppo.epochs?"),
    "without its first words": ("capacity=3", "did you mean method.buffer.capacity?"),
    "a class": ("method.name=dr", "there is no setting 'method.name'"),
    "not a number": ("ppo.epochs=many", "ppo.epochs cannot be 'many'"),
    "not a whole number": ("ppo.epochs=1.5", "ppo.epochs cannot be 1.5"),
    "out of range": ("method.buffer.replay_rate=0.5,1.5", "must lie in [0, 1], not 1.5"),
    "not finite": ("ppo.learning_rate=NaN", "cannot be nan"),
    "twice": ("seeds=5,5", "names a value of seeds twice"),
    "no value": ("seeds=", "is given as NAME=VALUE"),
    "no name": ("5", "is given as NAME=VALUE"),
    "too many": (f"seed={','.join(map(str, range(10_001)))}", "10,001 points is more than the 10,000"),
    "a name too long": (f"env.generator={'x' * 300},y", "cannot have a folder of its own name"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_grid_that_cannot_be_is_refused_before_anything_is_trained(case):
    text, says = BAD[case]
    with pytest.raises(UserError) as refused:
        of_presets(text, methods=["accel"]).check()
    assert says in str(refused.value)


def test_a_setting_that_one_of_the_methods_lacks_is_refused():
    with pytest.raises(UserError, match=r"robust-plr: there is no setting 'method.edits'"):
        of_presets("method.edits=1,2").check()


@pytest.mark.parametrize("name", searches.SEARCHES)
def test_the_papers_searches_can_be_trained(name):
    sweep = searches.search(name)
    sweep.check()
    assert len(sweep) == {"maze": 4, "lava": 6, "bipedal-ppo": 16, "bipedal-plr": 12, "bipedal-edits": 4}[name[6:]]


# Files


def test_a_file_by_hand_and_what_is_written_of_it_are_the_same_sweep(tmp_path):
    short = {"env": "maze", "methods": ["accel"], "settings": {"seeds": 2}, "grid": {"ppo.epochs": [1, 2]}}
    (tmp_path / "short.json").write_text(json.dumps(short))
    sweep = sweeps.load(tmp_path / "short.json")
    assert sweeps.load(write(sweep, tmp_path / "long.json")) == sweep


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be read as a sweep"),
        ("[]", "not a sweep of format 1"),
        ('{"format": 2}', "not a sweep of format 1"),
        ("{}", 'it must have "env"'),
        ('{"env": "maze", "methods": "accel"}', 'it must have "env"'),
        ('{"env": "moon", "methods": ["accel"]}', "Unknown env 'moon'"),
        ('{"env": "maze", "methods": []}', "at least one method"),
        ('{"env": "maze", "methods": ["accel", "accel"]}', "named twice"),
        ('{"env": "maze", "methods": ["accel"], "grids": {}}', "unknown field 'grids'"),
        ('{"env": "maze", "methods": ["accel"], "grid": {"seeds": 5}}', "grid.seeds must be a list"),
        ('{"env": "maze", "methods": ["accel"], "grid": {"seeds": []}}', "names no value of seeds"),
        ('{"bases": {"a": 5}}', "this is not a run configuration"),
    ],
)
def test_a_file_that_is_no_sweep_is_refused(tmp_path, text, says):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UserError) as refused:
        sweeps.load(tmp_path / "bad.json")
    assert says in str(refused.value)
    assert "bad.json" in str(refused.value)


def test_a_folder_holds_one_sweep(tmp_path):
    sweep = tiny_sweep()
    opened(sweep, tmp_path / "a")
    opened(changed_base(sweep, updates=300), tmp_path / "a")  # more student updates decide no number so far
    for other, says in (
        (changed_base(sweep, slots=16), "slots is 8 there and 16 here"),
        (Sweep(sweep.bases, {"seed": (0, 1, 2)}), "grid's seed is"),
        (Sweep({"b": sweep.bases["dr"]}, sweep.grid), "methods are dr there and b here"),
    ):
        with pytest.raises(UserError, match=says):
            opened(other, tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("")
    with pytest.raises(UserError, match="already in use"):
        opened(sweep, tmp_path / "b")


def changed_base(sweep: Sweep, **settings) -> Sweep:
    return Sweep({name: changed(config, settings) for name, config in sweep.bases.items()}, sweep.grid)


# How points stand, and which is best


def pretend(folder: Path, name: str, *solved: float, updates: int = 240, finished: bool = True) -> None:
    """A run directory with these solved rates of two seeds on the validation levels, as if it had been trained."""
    run = folder / name
    (run / "checkpoints").mkdir(parents=True)
    rows = [{"updates": updates, "seed": seed, "eval/solved": rate} for seed, rate in enumerate(solved)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_history(run, "begin", updates=0)
    (run / "checkpoints" / f"{updates if finished else 10:08d}.safetensors").write_bytes(b"")


def test_the_best_point_is_the_one_that_validation_levels_choose(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    sweep = changed_base(tiny_sweep(5), seeds=2)
    folder = opened(sweep, tmp_path / "sweep")
    names = sweep.names
    pretend(folder, names[0], 0.2, 0.4)
    pretend(folder, names[1], 0.3, 0.5)
    pretend(folder, names[2], 0.1, 0.1)
    (folder / names[2] / "evals").mkdir()
    (folder / names[2] / "evals" / "maze-00000240.csv").write_text("level,seed,episodes\n")  # test levels have no part
    pretend(folder, names[3], 0.9, 0.9, finished=False)
    points.end(folder, names[3], "given up", "half of the others were better")
    looked = Watch(folder).look()
    assert [p.state for p in looked] == ["finished"] * 3 + ["given up", "waiting"]
    assert looked[0].score is not None
    assert looked[0].score.text(3) == "0.300 ± 0.100"
    assert best(looked).name == names[1]
    assert left(looked) == [names[4]]
    assert best(looked[3:]) is None
    assert cli.main(["sweep", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"Best on validation levels: {folder / names[1]}." in said
    assert "half of the others were better" in said


def test_a_walker_is_chosen_by_what_walkers_are_compared_by(tmp_path):
    rows = [{"updates": 5, "seed": 0, "eval/Basic/return": 90.0, "eval/Hardcore/return": 10.0, "eval/solved": 0.0}]
    (tmp_path / "m").write_text("\n".join(map(json.dumps, rows)) + "\n")
    follower = Follower(tmp_path / "m", WalkerDomain().measure)
    follower.read()
    assert follower.means(1)[0][1].mean == 50.0


def test_metrics_are_read_as_they_are_written_and_again_if_a_resume_cuts_them_off(tmp_path):
    file, follower = tmp_path / "metrics.jsonl", Follower(tmp_path / "metrics.jsonl", tiny_maze().env.measure)
    line = '{{"updates": {0}, "seed": {1}, "eval/solved": 0.{0}}}\n'
    follower.read()
    file.write_text(line.format(1, 0) + line.format(1, 1)[:9])
    follower.read()
    assert (follower.updates, follower.means(2)) == (1, [])
    file.write_text(line.format(1, 0) + line.format(1, 1) + "{broken\n" + line.format(2, 0) + line.format(2, 1))
    follower.read()
    assert [(u, s.mean) for u, s in follower.means(2)] == [(1, 0.1), (2, 0.2)]
    file.write_text(line.format(1, 0))
    follower.read()
    assert follower.updates == 1


# At work


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return tiny_sweep()


@pytest.fixture(scope="module")
def by_hand(sweep, tmp_path_factory) -> dict[str, bytes]:
    return final_checkpoints(train_by_hand(sweep, tmp_path_factory.mktemp("hand") / "runs"), sweep)


WORK = """
import sys
from pathlib import Path
from tutelage.runs.engines.local import Local
from tutelage.runs.points import Watch, left

folder = Path(sys.argv[1])
Local().run(folder, left(Watch(folder).look()), lambda: None)
"""


def test_a_sweep_that_is_killed_and_started_again_ends_as_if_it_had_not_been(
    tmp_path, monkeypatch, capsys, sweep, by_hand
):
    """Also what it had started ends, so that nothing is trained twice at the same time."""
    folder = opened(sweep, tmp_path / "sweep")
    process = subprocess.Popen([sys.executable, "-c", WORK, str(folder)], stdout=subprocess.DEVNULL)
    wait_for(lambda: is_midway(folder, sweep.names[0]))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    Local().run(folder, left(Watch(folder).look()), lambda: None)
    assert final_checkpoints(folder, sweep) == by_hand


def test_a_point_that_fails_says_why_and_is_tried_again_next_time(tmp_path, capsys, sweep):
    folder = opened(sweep, tmp_path / "sweep")
    blocked, done = sweep.names
    (folder / blocked).write_text("a file in the way")
    pretend(folder, done, 0.5)
    assert cli.main(["sweep", str(folder), "--resume"]) == 2
    said = capsys.readouterr().err
    assert f"1 of 2 points failed, see {folder}/*.log; {blocked}: " in said
    assert "Not a directory" in said
    assert left(Watch(folder).look()) == [blocked]


BAD_COMMANDS = {
    "no methods": (["maze"], "Which methods? As in `tutelage sweep maze --methods"),
    "unknown": (["moon"], "Unknown sweep 'moon'; known: paper-maze"),
    "a sweep's settings are given again": (["SWEEP", "--seeds", "3"], "is a sweep already: its settings are in"),
    "no cores": (["maze", "--methods", "dr", "--ray.cores", "0"], "--ray.cores must be at least 1"),
    "methods of a search": (["paper-maze", "--methods", "accel"], "--methods goes with an env"),
    "several values": (["maze", "--methods", "dr", "--set", "seeds=1,2"], "that is what --grid is for"),
    "too many cores": (["maze", "--methods", "dr", "--local.cores", "4096"], "--local.cores must be from 1 to"),
}


@pytest.mark.parametrize("case", BAD_COMMANDS)
def test_a_command_that_cannot_be_gets_one_sentence(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    args, says = BAD_COMMANDS[case]
    opened(tiny_sweep(), tmp_path / "SWEEP")
    assert cli.main(["sweep", *args]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_sweep_that_is_printed_is_one_that_can_be_given(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    args = [
        "sweep",
        "maze",
        "--methods",
        "accel,dr",
        "--grid",
        "ppo.epochs=1,2",
        "--grid",
        "ppo.clip=0.1",
        "--seeds",
        "3",
        "--print-config",
    ]
    assert cli.main(args) == 0
    (tmp_path / "mine.json").write_text(capsys.readouterr().out)
    assert sweeps.load(tmp_path / "mine.json") == of_presets(
        "ppo.epochs=1,2", "ppo.clip=0.1", methods=["accel", "dr"], seeds=3
    )
    assert cli.main(["sweep", "mine.json", "--print-config"]) == 0
    assert capsys.readouterr().out == (tmp_path / "mine.json").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"], "nothing is begun"
