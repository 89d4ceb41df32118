"""Sweep engine `slurm`: an array job with a task for each point, which goes back into the queue when it is preempted.

Jobs are submitted by submitit, which keeps what it needs for that in the sweep's folder `.slurm`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutelage.errors import UserError, reason
from tutelage.runs import points
from tutelage.runs.engines import begin_with
from tutelage.runs.signals import Interrupted
from tutelage.runs.sweep import Sweep

MOST_HOURS = 24 * 365
MOST_TIMES = 1000  # that a training goes back into the queue because its job's time was up


@dataclass(frozen=True)
class Slurm:
    """An array job on a SLURM cluster; once submitted, it needs this process no more (extra `slurm`)."""

    hours: float = 24.0
    """Time limit of a point's job; a longer training goes back into the queue, and on from its checkpoint."""
    cores: int = 1
    """Processors of a point."""
    gpus: int = 0
    """GPUs of a point."""
    memory: int = 16
    """Gigabytes of memory of a point."""
    at_once: int = 256
    """Points that are worked on at the same time, at most."""
    partition: str = ""
    """The cluster's partition; its default if not given."""

    def __post_init__(self):
        if not 1 / 60 <= self.hours < MOST_HOURS or min(self.cores, self.memory, self.at_once) < 1 or self.gpus < 0:
            raise ValueError("`hours`, `cores`, `memory` and `at_once` must be positive, `gpus` at least 0.")

    def check(self, sweep: Sweep) -> None:
        """Refuses to begin without submitit."""
        _imported()

    def run(self, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Submits the points. A point that a job of before is still at is left to it."""
        self.submitted(folder, names, "slurm")

    def submitted(self, folder: Path, names: Sequence[str], cluster: str) -> list[Any]:
        """The points' jobs, in their order; on submitit's own cluster `local`, processes of this machine."""
        submitit = _imported()
        try:
            often = {"slurm_max_num_timeout": MOST_TIMES} if cluster == "slurm" else {}
            executor = submitit.AutoExecutor(folder / ".slurm", cluster=cluster, **often)
        except RuntimeError as error:
            raise UserError(f"SLURM cannot be used here: {reason(error)}.") from error
        executor.update_parameters(
            name=folder.name,
            timeout_min=round(60 * self.hours),
            cpus_per_task=self.cores,
            gpus_per_node=self.gpus,
            mem_gb=self.memory,
            slurm_array_parallelism=self.at_once,
            **({"slurm_partition": self.partition} if self.partition else {}),
        )
        with executor.batch():
            return [executor.submit(Task(str(folder), name, self.cores)) for name in names]


def _imported() -> Any:
    try:
        import submitit
    except ImportError as error:
        raise UserError("--engine slurm needs the extra: pip install 'tutelage[slurm]'.") from error
    return submitit


@dataclass(frozen=True)
class Task:
    """What a job does, and does again when it comes back from the queue."""

    folder: str
    name: str
    cores: int

    def __call__(self) -> None:
        """Trains the point. A signal is passed on to submitit once the checkpoint that it led to is written."""
        begin_with(self.cores)
        try:
            points.work(Path(self.folder), self.name, warn=print)
        except Interrupted as stop:
            signal.raise_signal(stop.number)

    def checkpoint(self) -> Any:
        """What submitit puts into the queue: the same task."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)
