"""A run as a report sees it: whatever can be used of its files, and a sentence on each that cannot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tutelage.env import Domain
from tutelage.errors import UserError
from tutelage.report import text
from tutelage.runs import history, metrics
from tutelage.runs.archive import Admitted
from tutelage.runs.browse import described
from tutelage.runs.evaluate import Result, read_csv
from tutelage.runs.evaluations import Subject
from tutelage.runs.run import Run

Row = dict[str, Any]

_LARGEST = 1e15  # no quantity of a run is anywhere near it, and figures cannot show what is beyond
UNREADABLE = (UserError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)  # what files may do


class Missing(UserError):
    """Something a report cannot show. Its text names the file that it would be in, and says how to get it."""


@dataclass(frozen=True)
class Evaluation:
    """A file of a run's `evals/`: which suite was played, and by the students of which update."""

    suite: str
    updates: int
    results: tuple[Result, ...]


@dataclass(frozen=True, eq=False)
class Member:
    """A run, the name it has in the report, its seeds that count, their metrics and their results on the suite."""

    run: Run
    name: str
    seeds: tuple[int, ...]
    rows: list[Row]
    evaluation: Evaluation | None

    @property
    def domain(self) -> Domain:
        """What the run was trained on."""
        return self.run.config.env

    @property
    def results(self) -> list[Result]:
        """Results on the suite of the seeds that count."""
        return [r for r in self.evaluation.results if r.seed in self.seeds] if self.evaluation else []

    @property
    def updates(self) -> int:
        """Student updates done, as far as the run's files tell."""
        return max((0, *(row["updates"] for row in self.rows[-1:]), *self.checkpoints))

    @property
    def env_steps(self) -> float:
        """Env steps at the last log point of all seeds that count together."""
        return sum(row.get("env_steps", 0) for row in self.rows if row["updates"] == self.rows[-1]["updates"])

    @property
    def landmarks(self) -> list[int]:
        """Checkpoints of trained students, ascending."""
        return [updates for updates in self.checkpoints if updates]

    @property
    def newest(self) -> int | None:
        """The last checkpoint, if there is one."""
        return max(self.checkpoints, default=None)

    @cached_property
    def checkpoints(self) -> list[int]:
        """The student updates there are checkpoints of; none where that cannot be told."""
        try:
            return self.run.checkpoints
        except UNREADABLE:
            return []

    @cached_property
    def past(self) -> list[dict[str, Any]]:
        """When, where and with what the run was worked on."""
        try:
            return [line for line in history.read(self.run.path) if isinstance(line, dict)]
        except UNREADABLE:
            return []

    @property
    def seconds(self) -> float:
        """How long it was trained, 0 where that is not on record."""
        return sum(line["seconds"] for line in self.past if _is_number(line.get("seconds")))

    @cached_property
    def admitted(self) -> Admitted:
        """Every level the run ever kept."""
        folder = self.run.path / "levels"
        try:
            return self.run.levels()
        except UNREADABLE as error:
            if any(folder.glob("*.safetensors")):
                raise Missing(f"The levels that {self.name} kept cannot be read ({error})") from error
        raise Missing(
            f"`{folder}`, the record of all levels that {self.name} kept and of their parents, is missing: training "
            "writes it, so it must be copied along with the run."
        )

    def place(self, seed: int) -> int:
        """Where a seed stands in the run's arrays."""
        return self.run.config.all_seeds.index(seed)

    def student(self, seed: int, updates: int | None = None) -> Any:
        """One seed's student at a checkpoint, the newest if none is named."""
        place = self.place(seed)
        return jax.tree.map(lambda x: np.asarray(x)[place], self._kept(updates)[1])

    def buffer(self, updates: int | None = None) -> Any:
        """The buffers of all seeds at a checkpoint, the newest if none is named."""
        return self._kept(updates)[0]

    def _kept(self, updates: int | None) -> tuple[Any, Any]:
        updates = self.newest if updates is None else updates
        if updates is None:
            folder = self.run.path / "checkpoints"
            raise Missing(
                f"`{folder}` of {self.name} has no checkpoint: training writes them, so they must be copied along with "
                f"the run; `tutelage resume {self.run.path}` trains what is missing."
            )
        if updates not in self._states:
            self._states[updates] = self._load(updates)
        state = self._states[updates]
        if isinstance(state, Missing):
            raise state
        return state

    @cached_property
    def _states(self) -> dict[int, tuple[Any, Any] | Missing]:
        """Checkpoints that were read, so that each is read once."""
        return {}

    def _load(self, updates: int) -> tuple[Any, Any] | Missing:
        try:
            state = self.run.state(updates)
        except UNREADABLE as error:
            return Missing(f"The checkpoint {updates:,} of {self.name} cannot be read ({error})")
        return jax.device_get((state.buffer, state.learner.student))

    def describe(self, levels: Any) -> dict[str, np.ndarray]:
        """Every measure of stacked levels."""
        return described(self.domain.design(), levels)


def open_runs(paths: Iterable[Path], domain: Domain | None = None) -> tuple[list[Run], list[str]]:
    """The runs among some directories, those on a domain of one's own too, and a sentence on each that is none."""
    runs, notes = [], []
    for path in {_real(path): path for path in paths}.values():
        try:
            runs.append(_opened(path, domain))
        except UNREADABLE as error:
            notes.append(str(error) if isinstance(error, UserError) else f"{path} cannot be read as a run ({error}).")
    return runs, notes


def _real(path: Path) -> Path:
    """Where a path leads, as far as it leads anywhere."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # no file can have this name
        return path


def _opened(path: Path, domain: Domain | None) -> Run:
    """A run whose config can be read: that is done here, so that a damaged one is noticed."""
    try:
        run = Run(path)
        run.config  # noqa: B018
    except UserError:
        if domain is None:
            raise
        run = Run(path, domain)
        run.config  # noqa: B018
    return run


def short_names(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, as many as tell it from the others."""
    parts = [_real(path).parts for path in paths]
    for depth in range(1, max(map(len, parts), default=1)):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(set(parts)):
            return names
    return [str(path) for path in paths]


def metrics_of(run: Run, notes: list[str]) -> list[Row]:
    """The rows of metrics that can be used; a note says if there are others."""
    path = run.path / "metrics.jsonl"
    if not path.is_file():
        notes.append(f"`{path}` is missing: training writes metrics there, so copy it along with the run.")
        return []
    try:
        rows, lost = metrics.rows_and_lost(path)
    except UNREADABLE as error:
        notes.append(f"`{path}` cannot be read and is left out ({error}).")
        return []
    whole = [_plain(row) for row in rows if all(0 <= row[name] < _LARGEST for name in ("updates", "seed"))]
    if lost := lost + len(rows) - len(whole):
        notes.append(f"{text.plural(lost, 'line')} of `{path}` are no metrics and are left out.")
    return whole


def _plain(row: Row) -> Row:
    """Without what is no number."""
    return {text.plain(name): x for name, x in row.items() if _is_number(x)}


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < _LARGEST


def evaluations_of(run: Run, notes: list[str]) -> list[Evaluation]:
    """What a run was evaluated on, newest students first; evaluations of greedy students are not comparable."""
    found = []
    for path in sorted((run.path / "evals").glob("*.csv")):
        subject = Subject.of(path.name)
        if subject is not None and subject.kind == "suite" and not subject.greedy and not subject.real:
            try:
                results = tuple(map(_whole, read_csv(path)))
                found.append(Evaluation(text.plain(subject.name), subject.updates, results))
            except UNREADABLE as error:
                cause = error.__cause__ or error
                why = f"no column {cause}" if isinstance(cause, KeyError) else str(cause)
                notes.append(f"`{path}` cannot be read as an evaluation and is left out ({why}).")
    return sorted(found, key=lambda e: -e.updates)


def _whole(r: Result) -> Result:
    if not all(_is_number(x) for x in (r.solved_rate, r.mean_return, r.mean_length)):
        raise ValueError(f"no number for level {text.plain(r.level)}, seed {r.seed}")
    return replace(r, level=text.plain(r.level))
