"""A run on disk, for reading: its config, metrics, checkpoints, levels and evaluations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
from jaxtyping import PyTree

from tutelage.curricula.state import State
from tutelage.env import Domain, HasOriginal, Suite, TestLevel
from tutelage.errors import UserError
from tutelage.runs import archive, checkpoint, metrics, presets
from tutelage.runs import config as configs
from tutelage.runs.config import Config
from tutelage.runs.evaluate import Result, evaluate
from tutelage.runs.storage import Damaged


@dataclass(frozen=True, init=False)
class Run:
    """A run directory. A run on an env of your own needs that env given again as `domain`."""

    path: Path
    domain: Domain | None

    def __init__(self, path: str | Path, domain: Domain | None = None):
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "domain", domain)
        if not (self.path / "config.json").is_file():
            raise UserError(f"{self.path} is not a run: it has no config.json.")

    @cached_property
    def config(self) -> Config:
        """The configuration it was started with."""
        return configs.load(self.path / "config.json", presets.DOMAINS, presets.METHODS, self.domain)

    @property
    def checkpoints(self) -> list[int]:
        """The student updates there are checkpoints of."""
        return checkpoint.available(self.path / "checkpoints")

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of `metrics.jsonl`."""
        return metrics.read_jsonl(self.path / "metrics.jsonl")

    def state(self, updates: int | None = None) -> State:
        """The whole state at a checkpoint, seeds stacked; the newest if none is named."""
        folder = self.path / "checkpoints"
        if not self.checkpoints:
            raise UserError(f"{self.path} has no checkpoint yet.")
        updates = self.checkpoints[-1] if updates is None else updates
        if updates not in self.checkpoints:
            raise UserError(f"{self.path} has no checkpoint {updates}; there are {_listed(self.checkpoints)}.")
        try:
            return checkpoint.load(folder, updates, state_template(self.config))
        except Damaged as error:
            raise UserError(f"{folder}: {error}; name another with --checkpoint.") from error

    def students(self, updates: int | None = None) -> PyTree:
        """The students of all seeds at a checkpoint, stacked."""
        return self.state(updates).learner.student

    def levels(self, updates: int | None = None) -> archive.Admitted:
        """Every level ever admitted to a buffer."""
        example = jax.eval_shape(self.config.env.design().sample, jax.random.key(0))
        return archive.read(self.path / "levels", example, updates)

    def suite(self, name: str | None = None, *, real: bool = False) -> tuple[str, Suite]:
        """A suite of held-out levels and its name; the domain's first if none is named. `real`: in the original env."""
        env = self.config.env
        suites = _real_suites(env) if real else env.suites()
        if not suites:
            raise UserError(f"The env {env.name!r} has no suite of held-out levels.")
        name = next(iter(suites)) if name is None else name
        if name not in suites:
            raise UserError(f"Unknown suite {name!r}; {env.name} has {_listed(suites)}.")
        return name, suites[name]

    def suite_from(self, file: Path) -> Suite:
        """The levels of a JSON file as a suite: a list of levels, or of what `tutelage levels --json` writes."""
        try:
            data = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"{file} cannot be read as JSON ({error}).") from error
        if not isinstance(data, list) or not data:
            raise UserError(f"{file} must hold a list of levels.")
        return tuple(self._test_level(item, f"{file.name}[{n}]") for n, item in enumerate(data))

    def _test_level(self, item: Any, name: str) -> TestLevel:
        data = item.get("level", item) if isinstance(item, dict) else item
        try:
            level = self.config.env.design().from_json(data)
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"{name} does not fit: {error}") from error
        return TestLevel(name, self.config.env.env(), lambda key: level)

    def evaluate(self, suite: str | None = None, *, episodes: int = 100, updates: int | None = None) -> list[Result]:
        """Plays a suite with the students of a checkpoint."""
        return evaluate(self.students(updates), self.config.all_seeds, self.suite(suite)[1], episodes)


def _real_suites(env: Domain) -> Mapping[str, Suite]:
    if not isinstance(env, HasOriginal):
        raise UserError(f"The env {env.name!r} has no original to play in.")
    return env.real_suites()


def _listed(names: Any) -> str:
    return ", ".join(str(n) for n in names)


def initial_state(config: Config) -> State:
    """All seeds of a run before the first cycle, stacked.

    They are made one after the other: students begin with orthogonal matrices, and two QR decompositions of several
    matrices each, at once, wait for one another for ever on a machine with two cores (jaxlib 0.10).
    """
    room = config.classroom()
    keys = jax.vmap(jax.random.key)(jax.numpy.asarray(config.all_seeds))
    return jax.lax.map(lambda key: config.method.init(room, key), keys)


def state_template(config: Config) -> State:
    """The shapes of `initial_state`."""
    return jax.eval_shape(lambda: initial_state(config))
