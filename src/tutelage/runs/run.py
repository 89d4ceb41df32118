"""A run on disk, for reading: its config, metrics, checkpoints, levels and evaluations."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import jax
from jaxtyping import Array, Key, PyTree

from tutelage.curricula.state import State
from tutelage.env import Domain, HasOriginal, Suite, TestLevel
from tutelage.errors import UserError, reason, unknown
from tutelage.runs import archive, checkpoint, metrics, presets
from tutelage.runs import config as configs
from tutelage.runs import students as folders
from tutelage.runs.config import Config
from tutelage.runs.evaluate import Result, evaluate
from tutelage.runs.evaluations import levels_name
from tutelage.runs.storage import Damaged, Missing, read_json
from tutelage.student.nets import Student

T = TypeVar("T")

FORMULAS = "=+-@\t\r"  # what a spreadsheet takes for the beginning of a formula


@dataclass(frozen=True, init=False)
class Run:
    """A run directory. A run on an env of your own needs that env given again as `domain`."""

    path: Path
    domain: Domain | None

    def __init__(self, path: str | Path, domain: Domain | None = None):
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "domain", domain)
        if not os.path.isfile(self.path / "config.json"):  # noqa: PTH113 - False for names that no file can have
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
        """The rows of `metrics.jsonl` that can be read."""
        return metrics.rows_of(self.path / "metrics.jsonl")

    def state(self, updates: int | None = None) -> State:
        """The whole state at a checkpoint, seeds stacked; the newest if none is named."""
        return self.snapshot(updates)[1]

    def snapshot(self, updates: int | None = None) -> tuple[int, State]:
        """A checkpoint's student update and state; the newest if none is named, also beside a training that goes on."""
        there = self.checkpoints
        if not there:
            alone = folders.are_there(self.path)
            raise UserError(f"{self.path} has no checkpoint{': it holds the students alone' if alone else ' yet'}.")
        chosen = there[-1] if updates is None else updates
        if chosen not in there:
            raise UserError(f"{self.path} has no checkpoint {chosen}; there are {_listed(there)}.")
        try:
            return chosen, self._load(chosen)
        except Missing as error:  # a training that goes on has removed it since
            if updates is None and self.checkpoints != there:
                return self.snapshot()
            raise UserError(f"{self.path} has no checkpoint {chosen} any more.") from error
        except Damaged as error:
            raise UserError(f"{self.path / 'checkpoints'}: {error}; name another with --checkpoint.") from error

    def _load(self, updates: int) -> State:
        return checkpoint.load(self.path / "checkpoints", updates, state_template(self.config), self.difference)

    def difference(self, config: Any) -> str | None:
        """The first setting in which the config of a checkpoint's header is not the run's."""
        return configs.difference(config, self.config, presets.method_name(self.config.method))

    def students(self, updates: int | None = None) -> PyTree:
        """The students of all seeds at a checkpoint, stacked."""
        return self.students_at(updates)[1]

    def students_at(self, updates: int | None = None) -> tuple[int, PyTree]:
        """A checkpoint's student update and students, stacked; the newest if none is named.

        Where students are by themselves, those of the one student update that there is.
        """
        if self.checkpoints or not folders.are_there(self.path):
            found, state = self.snapshot(updates)
            return found, state.learner.student
        found, students = folders.read(self.path, state_template(self.config).learner.student, self.difference)
        if updates not in (None, found):
            raise UserError(f"{self.path} has the students of update {found} alone, not of {updates}.")
        return found, students

    def levels(self, updates: int | None = None) -> archive.Admitted:
        """Every level ever admitted to a buffer."""
        example = jax.eval_shape(self.config.env.design().sample, jax.random.key(0))
        return archive.read(self.path / "levels", example, updates)

    def suites(self, *, real: bool = False) -> Mapping[str, Suite]:
        """The suites of held-out levels, one or more. `real`: in the original env."""
        env = self.config.env
        suites = _real_suites(env) if real else env.suites()
        if not suites:
            raise UserError(f"The env {env.name!r} has no suite of held-out levels.")
        return suites

    def suite(self, name: str | None = None, *, real: bool = False) -> tuple[str, Suite]:
        """A suite of held-out levels and its name; the domain's first if none is named. `real`: in the original env."""
        suites = self.suites(real=real)
        name = next(iter(suites)) if name is None else name
        if name not in suites:
            raise UserError(unknown(f"suite {name!r} of {self.config.env.name}", name, suites))
        return name, suites[name]

    def suite_with(self, level: str, suite: str | None = None, *, real: bool = False) -> tuple[str, Suite]:
        """The first suite that has a level of this name, or the suite that is named if it has one."""
        suites = self.suites(real=real) if suite is None else dict([self.suite(suite, real=real)])
        for name, levels in suites.items():
            if level in [there.name for there in levels]:
                return name, levels
        known = dict.fromkeys(there.name for levels in suites.values() for there in levels)
        raise UserError(unknown(f"level {level!r} of {suite or self.config.env.name}", level, known))

    def suite_from(self, file: Path) -> tuple[str, Suite]:
        """The levels of a JSON file as a suite: a list of levels, or of what `tutelage levels --json` writes."""
        try:
            data = read_json(file)
        except Damaged as error:
            raise UserError(f"{file.parent}: {error}.") from error
        if not isinstance(data, list) or not data:
            raise UserError(f"{file} must hold a list of levels.")
        called = file.name.lstrip(FORMULAS)
        levels = tuple(self._test_level(item, f"{called}[{n}]") for n, item in enumerate(data))
        contents = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
        return levels_name(file.stem, contents), levels

    def _test_level(self, item: Any, name: str) -> TestLevel:
        data = item.get("level", item) if isinstance(item, dict) else item
        try:
            level = self.config.env.design().from_json(data)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise UserError(f"{name} does not fit: {reason(error)}") from error
        return TestLevel(name, self.config.env.env(), lambda key: level)

    def evaluate(self, suite: str | None = None, *, episodes: int = 100, updates: int | None = None) -> list[Result]:
        """Plays a suite with the students of a checkpoint."""
        return evaluate(self.students(updates), self.config.all_seeds, self.suite(suite)[1], episodes)


def load_student(
    path: str | Path, seed: int | None = None, *, updates: int | None = None, domain: Domain | None = None
) -> Student:
    """One student of a run directory, or of a folder of students: a network that acts.

    Its first seed if none is named, at its newest checkpoint if no student update is named. A run on an env of your own
    needs that env as `domain`.

        student = load_student("runs/maze-accel", seed=3)
        memory, actions, values = student.act(student.memory(slots), observations, is_first_step)
    """
    run = Run(path, domain)
    chosen = run.config.seed if seed is None else seed
    return jax.tree.map(lambda x: x[0], folders.of_seed(run.config, run.students(updates), chosen)[1])


def _real_suites(env: Domain) -> Mapping[str, Suite]:
    if not isinstance(env, HasOriginal):
        raise UserError(f"The env {env.name!r} has no original to play in.")
    return env.real_suites()


def _listed(names: Any) -> str:
    return ", ".join(str(n) for n in names)


def essence(config: Config) -> Config:
    """The config with its defaults in place of all that has no part in what is compiled."""
    plain = {
        f.name: f.default
        for f in dataclasses.fields(Config)
        if f.name in configs.FREE | {"seed", "start", "start_with"}
    }
    return dataclasses.replace(config, **plain)


def remembered(build: Callable[..., T]) -> Callable[..., T]:
    """Builds what depends on the essence of a config, and on a number, once for each; anew where an env has no hash."""
    known = lru_cache(maxsize=8)(build)

    def find(config: Config, *number: int) -> T:
        key = essence(config)
        try:
            hash(key)
        except TypeError:
            return build(key, *number)
        return known(key, *number)

    return find


@remembered
def _beginner(config: Config) -> Callable[[Key[Array, " S"]], State]:
    """Seeds are made one after the other: students begin with orthogonal matrices, and two QR decompositions of several
    matrices each, at once, wait for one another for ever on a machine with two cores (jaxlib 0.10).
    """
    room = config.classroom()
    return jax.jit(lambda keys: jax.lax.map(lambda key: config.method.init(room, key), keys))


def initial_state(config: Config) -> State:
    """All seeds of a run before the first cycle, stacked."""
    return _beginner(config)(jax.vmap(jax.random.key)(config.seed + jax.numpy.arange(config.seeds)))


@remembered
def state_template(config: Config) -> State:
    """The shapes of `initial_state`."""
    return jax.eval_shape(lambda: initial_state(config))
