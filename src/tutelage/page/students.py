"""Students for a page: which of some runs' come in, and their weights as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from tutelage.curricula.state import State
from tutelage.errors import UserError
from tutelage.runs.run import Run

LARGEST_HALF = float(np.finfo(np.float16).max)


@dataclass(frozen=True, eq=False)
class Guest:
    """A run that comes to a page, under a name of its own; what is read of it stays read."""

    run: Run
    name: str

    @cached_property
    def checkpoints(self) -> list[int]:
        """Those of students who have learned something, and the newest."""
        found = self.run.checkpoints
        if not found:
            raise UserError(f"{self.run.path} has no checkpoint yet.")
        return [n for n in found[:-1] if n > 0] + found[-1:]

    @cached_property
    def state(self) -> State:
        """The newest, on the host."""
        return jax.device_get(self.run.state(self.checkpoints[-1]))

    def at(self, updates: int) -> State:
        """The state at a checkpoint."""
        return self.state if updates == self.checkpoints[-1] else jax.device_get(self.run.state(updates))


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


def learners(places: Sequence[Place]) -> Iterator[PyTree]:
    """The learner of each place; each checkpoint is read once."""
    read: dict[tuple[Guest, int], State] = {}
    for place in places:
        key = place.guest, place.updates
        if key not in read:
            read[key] = place.guest.at(place.updates)
        row = place.guest.run.config.all_seeds.index(place.seed)
        yield jax.tree.map(lambda x, row=row: jnp.asarray(x[row]), read[key].learner)


def halved(weights: bytes) -> tuple[bytes, bool]:
    """Floats of half precision in place of single ones where that does no more than round, and whether it is so.

    It does more where a number is too large for half precision.
    """
    single = np.frombuffer(weights, np.float32)
    if not np.all(np.abs(single) <= LARGEST_HALF):  # nor is it so of what is no number
        return weights, False
    return single.astype(np.float16).tobytes(), True
