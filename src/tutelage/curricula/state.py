"""The state of one seed of a run."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax
from jaxtyping import Array, Int, Key, PyTree

from tutelage.curricula.buffer import Buffer
from tutelage.curricula.log import Log, Totals
from tutelage.student.learning import Learner


class State(eqx.Module):
    """All that a cycle reads and changes; its arrays are what a checkpoint holds."""

    key: Key[Array, ""]
    learner: Learner
    buffer: Buffer
    updates: Int[Array, ""]  # student updates
    cycles: Int[Array, ""]
    rollouts: Int[Array, ""]  # of any kind, one of 3P slots counting as 3; env steps = rollouts × slots × steps
    waits: Int[Array, ""]  # cycles since the last student update
    log: Log | None
    own: PyTree = ()  # what this method keeps besides: other agents, a model of the tasks

    def next_key(self) -> tuple[State, Key[Array, ""]]:
        """A key that was not used before."""
        key, fresh = jax.random.split(self.key)
        return replace(self, key=key), fresh

    def next_cycle(self) -> State:
        """Counts a cycle."""
        return replace(self, cycles=self.cycles + 1, waits=self.waits + 1)

    def with_log(self, log: Log | None) -> State:
        """This state with another log, or none; of one seed or of many stacked."""
        return eqx.tree_at(lambda s: s.log, self, log, is_leaf=lambda x: x is None)

    def note(self, totals: Totals) -> State:
        """Adds to the means of the log, if one is kept."""
        return self if self.log is None else replace(self, log=self.log.note(totals))
