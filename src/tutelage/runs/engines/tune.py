"""What Ray Tune decides about the points of a sweep: which are given up early, and which take over others' states."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tutelage.runs import checkpoint, points, population
from tutelage.runs.engines import begin_with
from tutelage.runs.points import Watch, run_of

SOURCE = "source"  # in what Ray Tune keeps of a member: the file that says which checkpoint that is


@dataclass(frozen=True)
class Resources:
    """What a point has for itself, and how often it goes on after its worker has died."""

    cores: int
    gpus: float
    retries: int


def race(folder: Path, names: Sequence[str], resources: Resources, tick: Callable[[], None]) -> None:
    """Ray Tune begins the points, and at each look at the validation levels decides whether one may go on (ASHA)."""
    from ray.tune.schedulers import ASHAScheduler

    configs = Watch(folder).configs
    total, look = max(c.updates for c in configs.values()), min(c.eval_every for c in configs.values())
    scheduler = ASHAScheduler("updates", "score", "max", max_t=total, grace_period=look)
    _fit(_race, {"folder": str(folder), "resources": resources}, folder, names, scheduler, tick)
    for point in Watch(folder).look():
        if point.name in names and point.state == "stopped":
            why = f"behind others after {point.updates:,} student updates"
            points.end(folder, point.name, "given up", why)


def evolve(folder: Path, names: Sequence[str], resources: Resources, every: int, tick: Callable[[], None]) -> None:
    """Ray Tune begins the members. After every so many student updates, those of the lowest quarter on validation
    levels go on from the checkpoints of those of the highest, with settings next to theirs.
    """
    from ray import tune
    from ray.tune.schedulers import PopulationBasedTraining

    sweep = Watch(folder).sweep
    values = {name: list(several) for name, several in population.changing(sweep).items()}
    scheduler = PopulationBasedTraining(
        "updates", "score", "max", perturbation_interval=every, hyperparam_mutations={"settings": values}, synch=True
    )
    today = {name: population.settings_of(folder, sweep, name) for name in names}
    settings = tune.sample_from(partial(_settings, today))
    what = {"folder": str(folder), "resources": resources, "every": every, "settings": settings}
    _fit(_live, what, folder, names, scheduler, tick)


def _fit(
    act: Callable[[dict[str, Any]], None],
    what: dict[str, Any],
    folder: Path,
    names: Sequence[str],
    scheduler: Any,
    tick: Callable[[], None],
) -> None:
    """Has Ray Tune work off the points, each by a trial of the same name."""
    from ray import tune

    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # which alone says nothing when told to
    resources: Resources = what["resources"]
    settings = tune.RunConfig(
        storage_path=str(folder / ".ray"),
        verbose=0,
        failure_config=tune.FailureConfig(max_failures=resources.retries),
        callbacks=[_ticking(tick)],
    )
    chooser = tune.TuneConfig(scheduler=scheduler, trial_name_creator=_name)
    trainable = tune.with_resources(act, {"cpu": resources.cores, "gpu": resources.gpus})
    space = {**what, "name": tune.grid_search(list(names))}
    tune.Tuner(trainable, param_space=space, tune_config=chooser, run_config=settings).fit()


def _ticking(tick: Callable[[], None]) -> Any:
    """What calls `tick` now and then. Ray Tune writes down all that it is given, of which this is to leave nothing."""
    from ray import tune

    class Ticking(tune.Callback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            tick()

        def __reduce__(self) -> Any:
            return tune.Callback, ()

    return Ticking()


def _name(trial: Any) -> str:
    return trial.config["name"]


def _settings(today: Mapping[str, Mapping[str, Any]], config: Mapping[str, Any]) -> Mapping[str, Any]:
    return today[config["name"]]


def _race(what: dict[str, Any]) -> None:
    """A point that tells Ray Tune each score on the validation levels, and is ended there if it is not to go on."""
    from ray import tune

    begin_with(what["resources"].cores, what["resources"].gpus)
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


def _live(what: dict[str, Any]) -> None:
    """A member that tells Ray Tune its score at each checkpoint that others may begin from.

    Ray Tune ends it there, and begins it again: from that checkpoint, or from another's.
    """
    from ray import tune

    begin_with(what["resources"].cores, what["resources"].gpus)
    folder, name = Path(what["folder"]), tune.get_context().get_trial_name()
    watch, given = Watch(folder), tune.get_checkpoint()
    start = None if given is None else Path((Path(given.path) / SOURCE).read_text())
    total, told = watch.configs[name].updates, [0 if start is None else int(start.stem)]

    def tell() -> None:
        for updates, score in watch.scores(name):
            file = checkpoint.path_of(run_of(folder, name) / "checkpoints", updates)
            if told[0] < updates < total and updates % what["every"] == 0 and file.exists():
                told[0] = updates
                _report(updates, score.mean, file)

    population.work(folder, name, what["settings"], start, what["every"], lambda p: tell())


def _report(updates: int, score: float, file: Path) -> None:
    from ray import tune

    with tempfile.TemporaryDirectory() as kept:
        (Path(kept) / SOURCE).write_text(str(file))
        tune.report({"updates": updates, "score": score}, checkpoint=tune.Checkpoint.from_directory(kept))
