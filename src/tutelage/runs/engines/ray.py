"""Sweep engine `ray`: a task for each point, on the cluster that RAY_ADDRESS names, or on one of this machine alone.

A worker that dies is replaced, and the point goes on from its newest checkpoint, so the sweep's folder must be one that
all machines of the cluster see.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tutelage.errors import UserError
from tutelage.runs import points, population
from tutelage.runs.engines import begin_with, tune
from tutelage.runs.engines.local import gpus
from tutelage.runs.sweep import Sweep


@dataclass(frozen=True)
class Ray:
    """Tasks on a Ray cluster: the one that RAY_ADDRESS names, or one of this machine (extra `ray`)."""

    cores: int = 1
    """Processors of a point."""
    gpus: float = 0.0
    """GPUs of a point; a third lets three share one."""
    retries: int = 10
    """How often a point goes on after its worker has died."""
    stop_early: Literal["no", "asha"] = "no"
    """Give up points early that are behind others on validation levels, as successive halving does (ASHA)."""
    population_every: int = 0
    """Population-based training, 0 for none: after every so many student updates, points of the lowest quarter on
    validation levels go on from checkpoints of the highest, with settings that are next to theirs in the grid."""

    def __post_init__(self):
        if self.cores < 1 or not 0 <= self.gpus < math.inf or min(self.retries, self.population_every) < 0:
            raise ValueError("`cores` must be at least 1, `gpus`, `retries` and `population_every` at least 0.")
        if self.population_every and self.stop_early != "no":
            raise ValueError("`stop_early` and `population_every` exclude one another.")

    def check(self, sweep: Sweep) -> None:
        """Refuses what this machine alone does not have, for which Ray would wait; other clusters may grow. Refuses a
        sweep whose points cannot be compared while they are at work, if they are to be.
        """
        _imported()
        for name, wanted, there in (("cores", self.cores, os.cpu_count() or 1), ("gpus", self.gpus, len(gpus()))):
            if _address() == "local" and wanted > there:
                here = f"{there}, as many as are here; RAY_ADDRESS names a cluster"
                raise UserError(f"--ray.{name} must be at most {here}.")
        if self.population_every:
            population.check(sweep, self.population_every)
        elif self.stop_early != "no" and not all(config.eval_every for config in sweep.bases.values()):
            raise UserError("--ray.stop-early wants validation levels to be played: --set eval_every=N.")

    def run(self, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Works off the points."""
        resources = tune.Resources(self.cores, self.gpus, self.retries)
        with _cluster() as ray:
            if self.population_every:
                tune.evolve(folder, names, resources, self.population_every, tick)
            elif self.stop_early == "no":
                self._work(ray, folder, names, tick)
            else:
                tune.race(folder, names, resources, tick)

    def _work(self, ray: Any, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        # A process for each task: what JAX has begun with cannot be changed.
        resources = {"num_cpus": self.cores, "num_gpus": self.gpus, "max_calls": 1, "max_retries": self.retries}
        task = ray.remote(**resources)(_work)
        waiting = {task.remote(str(folder), name, self.cores, self.gpus): name for name in names}
        while waiting:
            for ended in ray.wait(list(waiting), timeout=LOOK_EVERY)[0]:
                name = waiting.pop(ended)
                try:
                    ray.get(ended)
                except ray.exceptions.WorkerCrashedError:
                    points.end(folder, name, "failed", f"its worker died more than {self.retries} times")
                except ray.exceptions.RayTaskError:  # what it failed of is in its folder
                    pass
            tick()


LOOK_EVERY = 1.0  # seconds


def _address() -> str:
    return os.environ.get("RAY_ADDRESS", "local")


def _work(folder: str, name: str, cores: int, gpus: float) -> None:
    begin_with(cores, gpus)
    points.work(Path(folder), name)


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UserError("--engine ray needs the extra: pip install 'tutelage[ray]'.") from error
    return ray


@contextmanager
def _cluster() -> Iterator[Any]:
    """Ray, connected; a cluster that is begun here listens to this machine alone, and ends with this process."""
    ray = _imported()
    address = _address()
    alone: dict[str, Any] = {}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        alone = {"_node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": SMALLEST_STORE}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING, **alone)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"The Ray cluster at {address} cannot be used: {error}") from error
    try:
        yield ray
    finally:
        with suppress(Exception):
            ray.shutdown()


SMALLEST_STORE = 80 * 2**20  # bytes that Ray asks for; points hand nothing on by it
