"""The points of a sweep at work: how each is trained, how it stands, and which is best.

All that is known of a point is read from its run directory, whoever works on it, and wherever.
"""

from __future__ import annotations

import itertools
import os
import re
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tutelage.env import Domain, Measure
from tutelage.errors import explain
from tutelage.runs import checkpoint, history
from tutelage.runs import sweep as sweeps
from tutelage.runs.config import Config
from tutelage.runs.lock import Occupied, is_held
from tutelage.runs.storage import Damaged, parse_json, read, read_json, remove, write_atomically
from tutelage.runs.train import OnProgress, train
from tutelage.runs.trainer import Warn
from tutelage.statistics import Summary

State = Literal["waiting", "running", "stopped", "finished", "given up", "failed"]

Ended = Literal["failed", "given up"]

PATIENCE, LOOK_EVERY = 60.0, 0.5  # seconds
AGAIN = "~"  # before the number of a point's second run and of those after it; in no name of a point


@dataclass(frozen=True)
class Point:
    """How a point stands: its latest score on validation levels, and why it goes no further or what it took over."""

    name: str
    state: State
    updates: int
    total: int
    score: Summary | None = None
    why: str = ""


def work(
    folder: Path,
    name: str,
    *,
    domain: Domain | None = None,
    on_progress: OnProgress = lambda p: None,
    warn: Warn = lambda text: None,
) -> None:
    """Trains a point to its end, from nothing or from wherever it stands. What keeps it from that is left beside it."""
    config = sweeps.load(folder / sweeps.FILE, domain).config(name)
    train_noted(folder, name, config, folder / name, on_progress, warn)


def train_noted(
    folder: Path, name: str, config: Config, path: Path, on_progress: OnProgress, warn: Warn = lambda text: None
) -> None:
    """Trains a run of a point to its end. What keeps it from that is left beside it."""
    remove(_note(folder, name))
    try:
        _when_free(lambda: train(config, path, resume=True, on_progress=on_progress, warn=warn))
    except Occupied:
        raise
    except Exception as error:
        why = explain(error) or traceback.format_exception_only(error)[-1].strip()
        end(folder, name, "failed", why)
        raise


def runs_of(folder: Path, name: str) -> list[Path]:
    """The run directories of a point, the newest last: one, but that a member of a population begins others."""
    further = itertools.takewhile(Path.is_dir, (folder / f"{name}{AGAIN}{n}" for n in itertools.count(2)))
    return [folder / name, *further]


def run_of(folder: Path, name: str) -> Path:
    """The run directory in which a point stands."""
    return runs_of(folder, name)[-1]


def _when_free(act: Callable[[], Any]) -> None:
    """Does it as soon as no other process is at the run: one that was told to end goes on to its next checkpoint."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            act()
            return
        except Occupied:
            if time.monotonic() > until:
                raise
            time.sleep(LOOK_EVERY)


def end(folder: Path, name: str, how: Ended, why: str) -> None:
    """Notes why a point goes no further than it is."""
    write_atomically(_note(folder, name), f"{how}: {why}\n".encode())


def _note(folder: Path, name: str) -> Path:
    return folder / f"{name}.note"


@dataclass
class Follower:
    """A run's rows of metrics, read as they are written: how far it is, and its scores on validation levels."""

    path: Path
    measure: Measure
    updates: int = 0
    scores: dict[int, dict[int, float]] = field(default_factory=dict)  # by student update and seed
    _place: tuple[int, int] = (0, 0)  # the file, and how much of it was read

    def read(self) -> None:
        """What was written since the last time."""
        try:
            with self.path.open("rb") as file:
                there = os.fstat(file.fileno())
                if there.st_ino != self._place[0] or there.st_size < self._place[1]:  # a resume has cut it off
                    self.updates, self.scores, self._place = 0, {}, (there.st_ino, 0)
                file.seek(self._place[1])
                whole, _, _ = file.read().rpartition(b"\n")
        except OSError:  # not there yet, or not to be read
            return
        if whole:
            self._place = (there.st_ino, self._place[1] + len(whole) + 1)
            for line in whole.split(b"\n"):
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            row = parse_json(line.decode())
            updates, seed = row["updates"], row["seed"]
        except (ValueError, KeyError, TypeError):
            return
        self.updates = updates
        if (score := validation_score(row, self.measure)) is not None:
            self.scores.setdefault(updates, {})[seed] = score

    def means(self, seeds: int) -> list[tuple[int, Summary]]:
        """The score at each look at the validation levels that all seeds have taken."""
        whole = [(u, s) for u, s in sorted(self.scores.items()) if len(s) == seeds]
        return [(u, Summary.of(list(s.values()))) for u, s in whole]


def validation_score(row: Mapping[str, Any], measure: Measure) -> float | None:
    """What a row of metrics says of the validation levels, by what the domain compares students by."""
    if measure.column == "solved_rate":
        return row.get("eval/solved")
    values = [v for name, v in row.items() if re.fullmatch(r"eval/.+/return", name) and v is not None]
    return float(np.mean(values)) if values else None


class Watch:
    """How the points of a sweep stand, looked at again and again."""

    def __init__(self, folder: Path, domain: Domain | None = None):
        self.folder = folder
        self.sweep = sweeps.load(folder / sweeps.FILE, domain)
        self.configs = {name: self.sweep.config(name) for name in self.sweep.names}
        self._followers: dict[Path, Follower] = {}
        self._over: dict[str, Point] = {}  # those that will change no more

    def look(self) -> list[Point]:
        """All points, in the order of the sweep."""
        return [self._look(name, config) for name, config in self.configs.items()]

    def scores(self, name: str) -> list[tuple[int, Summary]]:
        """A point's score at each look at the validation levels that all its seeds have taken, and when that was."""
        follower = self._follower(name)
        follower.read()
        return follower.means(self.configs[name].seeds)

    def _follower(self, name: str) -> Follower:
        path = run_of(self.folder, name) / "metrics.jsonl"
        return self._followers.setdefault(path, Follower(path, self.configs[name].env.measure))

    def _look(self, name: str, config: Config) -> Point:
        if name in self._over:
            return self._over[name]
        means = self.scores(name)
        score = means[-1][1] if means else None
        state, done, why = _state(self.folder, name, config)
        why = why or _origin(run_of(self.folder, name))
        point = Point(name, state, max(done, self._follower(name).updates), config.updates, score, why)
        if state == "finished":
            self._over[name] = point
        return point


def _origin(path: Path) -> str:
    """Whose state a run began from, and when that was."""
    if AGAIN not in path.name:
        return ""
    try:
        start = Path(read_json(path / "config.json")["start"])
    except (Damaged, KeyError, TypeError):
        return ""
    return f"from {start.parents[1].name} at {int(start.stem):,}"


def _state(folder: Path, name: str, config: Config) -> tuple[State, int, str]:
    path = run_of(folder, name)
    if not path.is_dir():
        return _noted(folder, name) or ("waiting", 0, "")
    there = max(checkpoint.available(path / "checkpoints"), default=0)
    if there >= config.updates:
        return "finished", there, ""
    if is_held(path):
        return "running", there, ""
    return _noted(folder, name) or ("stopped" if history.read(path) else "waiting", there, "")


def _noted(folder: Path, name: str) -> tuple[State, int, str] | None:
    try:
        how, _, why = read(_note(folder, name)).decode().strip().partition(": ")
    except (Damaged, UnicodeDecodeError):
        return None
    return ("given up" if how == "given up" else "failed", 0, why)


def best(points: Iterable[Point]) -> Point | None:
    """The finished point of highest score on the validation levels, as the paper chose: never by test levels."""
    scored = [p for p in points if p.state == "finished" and p.score is not None]
    return max(scored, key=lambda p: p.score.mean if p.score else 0.0, default=None)


def left(points: Sequence[Point]) -> list[str]:
    """Points that are to be worked on: all that are not finished, nor given up."""
    return [p.name for p in points if p.state not in ("finished", "given up")]
