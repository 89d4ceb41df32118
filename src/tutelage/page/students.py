"""Students for a page: which of some runs' come in, and their weights as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from tutelage.curricula.state import State
from tutelage.errors import UserError
from tutelage.page import engines
from tutelage.runs import students as folders
from tutelage.runs.run import Run, state_template
from tutelage.student.nets import Student

MOST, BYTES = 10, 5_000_000  # of a room, if nothing else is said: students, and their weights in half precision
LARGEST_HALF = float(np.finfo(np.float16).max)


class Learned(NamedTuple):
    """A student, or all of a run's, stacked; and what its rewards are divided by: NaN where that is not known."""

    student: Student
    scale: Float[np.ndarray | Array, "..."]


@dataclass(frozen=True, eq=False)
class Guest:
    """A run, or a folder of students, that comes to a page under a name of its own; what is read of it stays read."""

    run: Run
    name: str

    @cached_property
    def checkpoints(self) -> list[int]:
        """Those of students who have learned something, and the newest."""
        found = self.run.checkpoints
        if found:
            return [n for n in found[:-1] if n > 0] + found[-1:]
        if folders.are_there(self.run.path):
            return [self._alone[0]]
        raise UserError(f"{self.run.path} has no checkpoint yet.")

    @cached_property
    def state(self) -> State | None:
        """The newest, on the host; nothing where students are by themselves."""
        return jax.device_get(self.run.state(self.checkpoints[-1])) if self.run.checkpoints else None

    @cached_property
    def _alone(self) -> tuple[int, PyTree]:
        """The students by themselves, and after how many updates."""
        return self.run.students_at()

    def learned(self, updates: int) -> Learned:
        """All seeds' students at a checkpoint."""
        if self.state is None:
            known = state_template(self.run.config).learner.scale is None
            return Learned(self._alone[1], self._each(1.0 if known else np.nan))
        state = self.state if updates == self.checkpoints[-1] else jax.device_get(self.run.state(updates))
        scale = state.learner.scale
        return Learned(state.learner.student, self._each(1.0) if scale is None else scale.std)

    def _each(self, scale: float) -> np.ndarray:
        """The scale of all seeds."""
        return np.full(self.run.config.seeds, scale, np.float32)


@dataclass(frozen=True)
class Place:
    """Where a student comes from: a seed of a run at one of its checkpoints."""

    guest: Guest
    seed: int
    updates: int


def guests(runs: Sequence[Run]) -> list[Guest]:
    """Runs by the names of their folders, or by their whole paths where two are called the same."""
    names = [run.path.name for run in runs]
    return [Guest(run, run.path.name if names.count(run.path.name) == 1 else str(run.path)) for run in runs]


def fitting(guests: Sequence[Guest]) -> int:
    """How many students come into a room, if nobody says how many: as many as a page carries with ease."""
    records = [engines.for_student(guest.run.config).engine.manifest["records"]["params"] for guest in guests]
    return min(MOST, max(1, BYTES // max(record["size"] // 2 for record in records)))


def invited(guests: Sequence[Guest], most: int) -> list[Place]:
    """At most so many students: each run's first seed at its newest checkpoint, other seeds, earlier checkpoints.

    Of earlier checkpoints those of first seeds are taken, the oldest first, all runs in turn.
    """
    newest = [[Place(g, seed, g.checkpoints[-1]) for seed in g.run.config.all_seeds] for g in guests]
    earlier = [[Place(g, g.run.config.seed, n) for n in g.checkpoints[:-1]] for g in guests]
    chosen = list(chain(_in_turn(newest), _in_turn(earlier)))[:most]
    return sorted(chosen, key=lambda p: (guests.index(p.guest), p.seed, -p.updates))


def _in_turn(lists: Sequence[Sequence[Place]]) -> Iterator[Place]:
    """All first ones, then all second ones …"""
    return (place for row in zip_longest(*lists) for place in row if place is not None)


def learned(places: Sequence[Place]) -> Iterator[Learned]:
    """The student of each place; each checkpoint is read once."""
    read: dict[tuple[Guest, int], Learned] = {}
    for place in places:
        key = place.guest, place.updates
        if key not in read:
            read[key] = place.guest.learned(place.updates)
        row = place.guest.run.config.all_seeds.index(place.seed)
        yield jax.tree.map(lambda x, row=row: jnp.asarray(x[row]), read[key])


def halved(weights: bytes) -> tuple[bytes, bool]:
    """Floats of half precision in place of single ones where that does no more than round, and whether it is so.

    It does more where a number is too large for half precision.
    """
    single = np.frombuffer(weights, np.float32)
    if not np.all(np.abs(single) <= LARGEST_HALF):  # nor is it so of what is no number
        return weights, False
    return single.astype(np.float16).tobytes(), True
