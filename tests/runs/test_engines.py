"""Sweeps on Ray and SLURM: what dies goes on elsewhere, and ends as if it had not died."""

import os
import signal
from pathlib import Path

import pytest

from runs.sweeps import final_checkpoints, is_midway, opened, tiny_sweep, train_by_hand, wait_for
from tutelage.errors import UserError
from tutelage.runs import history
from tutelage.runs.engines.ray import Ray
from tutelage.runs.engines.slurm import Slurm
from tutelage.runs.points import Watch
from tutelage.runs.sweep import Sweep


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return tiny_sweep()


@pytest.fixture(scope="module")
def by_hand(sweep, tmp_path_factory) -> dict[str, bytes]:
    return final_checkpoints(train_by_hand(sweep, tmp_path_factory.mktemp("hand") / "runs"), sweep)


def process_at(run: Path) -> int:
    """The process that has a run's lock: the one whose open files it is among."""
    lock = str(run / ".lock")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(file.readlink()) == lock for file in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:  # it has ended, or is not ours
            continue
    raise AssertionError(f"nobody is at {run}")


def test_ray_is_not_asked_for_what_it_would_wait_for(tmp_path, sweep, monkeypatch):
    pytest.importorskip("ray", reason="there is no wheel of Ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UserError, match=r"--ray\.cores must be at most \d+, as many as are here"):
        Ray(cores=100_000).check(sweep)
    monkeypatch.setenv("RAY_ADDRESS", "auto")  # a cluster that may grow
    Ray(cores=100_000).check(sweep)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_ray_that_dies_is_replaced(tmp_path, sweep, by_hand):
    pytest.importorskip("ray", reason="there is no wheel of Ray")
    folder, killed = opened(sweep, tmp_path / "sweep"), []

    def tick() -> None:
        if not killed and is_midway(folder, sweep.names[0]):
            killed.append(process_at(folder / sweep.names[0]))
            os.kill(killed[0], signal.SIGKILL)

    Ray().run(folder, sweep.names, tick)
    assert killed
    assert final_checkpoints(folder, sweep) == by_hand


def test_a_job_of_slurm_that_is_preempted_goes_back_into_the_queue(tmp_path, sweep, by_hand):
    pytest.importorskip("submitit")
    folder, first = opened(sweep, tmp_path / "sweep"), sweep.names[0]
    jobs = Slurm().submitted(folder, sweep.names, "local")
    wait_for(lambda: is_midway(folder, first))
    os.kill(process_at(folder / first), signal.SIGUSR2)
    wait_for(lambda: all(p.state == "finished" for p in Watch(folder).look()))
    for job in jobs:
        job.result()
    events = [(line["event"], line.get("signal")) for line in history.read(folder / first)]
    assert events == [("begin", None), ("stop", "SIGUSR2"), ("begin", None), ("end", None)]
    assert final_checkpoints(folder, sweep) == by_hand


def test_where_there_is_no_slurm_that_is_said(tmp_path, sweep):
    pytest.importorskip("submitit")
    with pytest.raises(UserError, match="SLURM cannot be used here"):
        Slurm().run(tmp_path, sweep.names, lambda: None)
