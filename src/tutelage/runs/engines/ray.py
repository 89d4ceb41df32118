"""The engine `ray`: a task for each point, on the cluster that RAY_ADDRESS names, or on one of this machine alone.

A worker that dies is replaced, and the point goes on from its newest checkpoint, so the sweep's folder must be one that
all machines of the cluster see.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tutelage.errors import UserError
from tutelage.runs import points
from tutelage.runs.engines import begin_with
from tutelage.runs.points import Watch


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

    def __post_init__(self):
        if self.cores < 1 or not 0 <= self.gpus < math.inf or self.retries < 0:
            raise ValueError("`cores` must be at least 1, `gpus` and `retries` at least 0.")

    def run(self, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Works off the points."""
        with _cluster() as ray:
            if self.stop_early == "no":
                self._work(ray, folder, names, tick)
            else:
                self._race(folder, names, tick)

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

    def _race(self, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Ray Tune begins the points, and at each look at the validation levels decides whether one may go on."""
        from ray import tune
        from ray.tune.schedulers import ASHAScheduler

        configs = Watch(folder).configs
        total, look = max(c.updates for c in configs.values()), min(c.eval_every for c in configs.values())
        if look == 0:
            raise UserError("--ray.stop-early wants validation levels to be played: --set eval_every=N.")

        class Tick(tune.Callback):
            def on_step_end(self, *_: Any, **__: Any) -> None:
                tick()

        scheduler = ASHAScheduler("updates", "score", "max", max_t=total, grace_period=look)
        resources = {"cpu": self.cores, "gpu": self.gpus}
        what = {"folder": str(folder), "cores": self.cores, "gpus": self.gpus, "name": tune.grid_search(list(names))}
        settings = tune.RunConfig(
            storage_path=str(folder / ".ray"),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=self.retries),
            callbacks=[Tick()],
        )
        chooser = tune.TuneConfig(scheduler=scheduler)
        tune.Tuner(
            tune.with_resources(_race, resources), param_space=what, tune_config=chooser, run_config=settings
        ).fit()
        for point in Watch(folder).look():
            if point.name in names and point.state == "stopped":
                why = f"behind others after {point.updates:,} student updates"
                points.end(folder, point.name, "given up", why)


LOOK_EVERY = 1.0  # seconds


def _work(folder: str, name: str, cores: int, gpus: float) -> None:
    begin_with(cores, gpus)
    points.work(Path(folder), name)


def _race(what: dict[str, Any]) -> None:
    """A point that tells Ray Tune each score on the validation levels, and is ended there if it is not to go on."""
    from ray import tune

    begin_with(what["cores"], what["gpus"])
    folder, name = Path(what["folder"]), what["name"]
    watch, told = Watch(folder), [0]

    def tell(until: int) -> None:
        for updates, score in watch.scores(name)[told[0] :]:
            if updates < until:
                told[0] += 1
                tune.report({"updates": updates, "score": score.mean})

    total = watch.configs[name].updates
    points.work(folder, name, on_progress=lambda p: tell(total))
    tell(total + 1)


@contextmanager
def _cluster() -> Iterator[Any]:
    """Ray, connected; a cluster that is begun here listens to this machine alone, and ends with this process."""
    try:
        import ray
    except ImportError as error:
        raise UserError("--engine ray needs the extra: pip install 'tutelage[ray]'.") from error
    address = os.environ.get("RAY_ADDRESS", "local")
    alone: dict[str, Any] = {}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        alone = {"_node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": SMALLEST_STORE}
    try:
        ray.init(address=address, log_to_driver=False, **alone)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"The Ray cluster at {address} cannot be used: {error}") from error
    try:
        yield ray
    finally:
        with suppress(Exception):
            ray.shutdown()


SMALLEST_STORE = 80 * 2**20  # bytes that Ray asks for; points hand nothing on by it
