"""Runs on mazes, by several methods, and one on an env of one's own that draws no episodes."""

import pytest

import tutelage as tut
from report.made import RATES, UPDATES, write_results, write_run
from toys import jumper, tiny_maze
from tutelage.runs.evaluate import Result
from tutelage.runs.run import Run


@pytest.fixture(scope="session")
def maze_run(tmp_path_factory) -> Run:
    return write_run(tiny_maze(seeds=2), tmp_path_factory.mktemp("runs") / "maze")


@pytest.fixture(scope="session")
def own_run(tmp_path_factory) -> Run:
    return write_run(jumper(method=tiny_maze().method), tmp_path_factory.mktemp("runs") / "<own & only>")


@pytest.fixture(scope="session")
def three_runs(tmp_path_factory) -> dict[str, Run]:
    """ACCEL with two checkpoints, DR and robust PLR, evaluated on three levels of the suite `small`."""
    folder, buffer = tmp_path_factory.mktemp("three"), tiny_maze().method.buffer
    methods = {"accel": None, "dr": tut.DR(buffer), "plr": tut.RobustPLR(buffer)}
    kept = {"accel": (3, UPDATES)}
    runs = {
        name: write_run(tiny_maze(method, seeds=2), folder / name, kept.get(name, (UPDATES,)))
        for name, method in methods.items()
    }
    for n, run in enumerate(runs.values()):
        write_results(run, "small", {level: rate / (n + 1) for level, rate in RATES.items()})
    return runs


@pytest.fixture
def results() -> list[Result]:
    """Results on two levels of the suite `small`: one never solved, one by the second seed only."""
    rates = {"SBend": (0.0, 0.0), "Choice": (0.0, 0.5)}
    return [Result(name, seed, 20, r, r, 100.0) for name, both in rates.items() for seed, r in enumerate(both)]
