"""Population-based training: the points of a sweep as members that take over one another's states.

Jaderberg et al., *Population based training of neural networks*, 2017 (arXiv 1711.09846). Who takes over whom, and with
which settings, is decided by Ray Tune (`engines.tune`); here is what that does to the members' runs. A member begins in
the run directory NAME. Whenever it takes over another's state it begins a new run, NAME~2, NAME~3, …, from the other's
checkpoint; the runs before stay as they are. So all there is to know of a member is read from its newest run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jax

from tutelage.errors import UserError
from tutelage.runs import config as configs
from tutelage.runs import points, presets, settings
from tutelage.runs import sweep as sweeps
from tutelage.runs.config import Config
from tutelage.runs.points import run_of, runs_of
from tutelage.runs.run import Run, state_template
from tutelage.runs.sweep import Sweep, Value
from tutelage.runs.train import OnProgress


def check(sweep: Sweep, every: int) -> None:
    """Refuses a sweep whose points cannot take over one another's states after every so many student updates."""
    if len(sweep.bases) > 1:
        raise UserError(f"A population is of one method, not of {len(sweep.bases)}.")
    config = next(iter(sweep.bases.values()))
    if not changing(sweep):
        raise UserError("A population wants a setting that may change: --grid NAME=VALUE,VALUE….")
    if config.eval_every == 0 or every % config.eval_every:
        when = f"every {config.eval_every:,} student updates" if config.eval_every else "never"
        raise UserError(f"A population changes at looks at the validation levels, and they are played {when}.")
    if "seeds" in sweep.grid:
        raise UserError("The members of a population have as many seeds as one another.")
    numbers = sorted(sweep.grid.get("seed", ()))
    if any(b - a < config.seeds for a, b in itertools.pairwise(numbers)):
        raise UserError(f"With {config.seeds} seeds each, members' first seeds must lie as far apart, or be the same.")
    for name, values in changing(sweep).items():
        if len({_shapes(sweeps.changed(config, {name: value})) for value in values}) > 1:
            raise UserError(f"{name} changes what a state is made of, so that no member can take over another's.")


def changing(sweep: Sweep) -> dict[str, tuple[Value, ...]]:
    """The settings that may change in a member's life, and their values: all of several values, but the seed."""
    return {name: values for name, values in sweep.grid.items() if len(values) > 1 and name != "seed"}


def _shapes(config: Config) -> str:
    leaves = jax.tree_util.tree_leaves_with_path(state_template(config))
    return str([(jax.tree_util.keystr(path), leaf.shape, leaf.dtype) for path, leaf in leaves])


def settings_of(folder: Path, sweep: Sweep, name: str) -> dict[str, Value]:
    """A member's settings of today, of those that may change."""
    config = _there(run_of(folder, name), sweep.config(name)) or sweep.config(name)
    now = {setting.name: setting.value for setting in settings.settings(config)}
    return {setting: now[setting] for setting in changing(sweep)}


def work(
    folder: Path, name: str, chosen: Mapping[str, Value], start: Path | None, every: int, on_progress: OnProgress
) -> None:
    """Trains a member on: from a checkpoint of another by the settings that were chosen, or from where it stands.

    Checkpoints that others may begin from are kept, one for every so many student updates.
    """
    sweep = sweeps.load(folder / sweeps.FILE)
    path, asked = run_of(folder, name), sweep.config(name)
    there = _there(path, asked)
    if start is not None and start.parents[1] not in runs_of(folder, name):
        config = _config(asked, chosen, str(start.absolute()), every)
        if there is not None and _differ(there, config):  # not so if a worker that died has begun it
            path = folder / f"{name}{points.AGAIN}{len(runs_of(folder, name)) + 1}"
    else:
        config = _config(asked, settings_of(folder, sweep, name), "" if there is None else there.start, every)
    points.train_noted(folder, name, config, path, on_progress)


def _config(asked: Config, chosen: Mapping[str, Value], start: str, every: int) -> Config:
    return replace(sweeps.changed(asked, chosen), start=start, archive_every=every)


def _there(path: Path, asked: Config) -> Config | None:
    """The config of a run, if it has been begun."""
    return Run(path, asked.env).config if (path / "config.json").exists() else None


def _differ(a: Config, b: Config) -> bool:
    data = configs.to_json(a, presets.method_name(a.method))
    return configs.difference(data, b, presets.method_name(b.method)) is not None
