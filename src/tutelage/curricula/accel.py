"""ACCEL: keep the levels of highest regret, edit them a little, keep the children that are at the frontier again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from tutelage.curricula.classroom import Classroom, State, Trial, shared_uniform, when
from tutelage.curricula.robust_plr import RobustPLR


@dataclass(frozen=True)
class ACCEL(RobustPLR):
    """Adversarially compounding complexity by editing levels (Parker-Holder et al. 2022), Algorithm 1.

    Robust PLR, and after each replay the replayed levels are edited, the children rolled out with the updated student
    and offered to the buffer. Whether complexity grows from empty rooms or from random levels is the generator's
    choice (`--env.generator`).
    """

    edits: int = 5
    """Edits between a parent and its child."""
    edit_rate: float = 1.0
    """Probability that a replay is followed by editing."""
    parents: Literal["replayed", "lowest"] = "replayed"
    """Which levels are edited: each replayed level once (Algorithm 1); or those of the four slots with the lowest
    return − |value loss|, shared out among all children (the reference implementation)."""

    def __post_init__(self):
        if self.edits < 1 or not 0 <= self.edit_rate <= 1:
            raise ValueError("method.edits must be at least 1 and method.edit-rate lie in [0, 1].")

    def replay(self, room: Classroom, s: State) -> State:
        """Roll out on levels of the buffer, renew their scores, learn; then edit."""
        s, trial, drawn = self.play_buffer(room, s)
        s = self.learn(room, s, trial)
        parents = drawn if self.parents == "replayed" else drawn[lowest_slots(trial)]
        edit = shared_uniform(s, 1) < self.edit_rate
        s, _ = when(edit, lambda a: (self.edit(room, *a), a[1]), (s, parents))
        return s

    def edit(self, room: Classroom, s: State, parents: Int[Array, " P"]) -> State:
        """Score the children and keep those of high regret."""
        s, key = s.next_key()
        keys = jax.random.split(key, room.slots)
        levels = jax.tree.map(lambda x: x[parents], s.buffer.levels)
        children = jax.vmap(lambda k, level: room.design.edit(k, level, self.edits))(keys, levels)
        s, trial = self.play(room, s, children, "edit")
        return self.offer(s, children, trial, "edit", parents)


def lowest_slots(trial: Trial, n: int = 4) -> Int[Array, " P"]:
    """The n slots of lowest mean return − clip(mean_t |A_t|, −1, 1), repeated until every slot has one."""
    ended = trial.episodes.ended
    mean_return = jnp.where(ended, trial.episodes.returns, 0.0).sum(axis=0) / jnp.maximum(ended.sum(axis=0), 1)
    value_loss = jnp.clip(jnp.abs(trial.advantage).mean(axis=0), -1.0, 1.0)
    slots = mean_return.shape[0]
    lowest = jnp.argsort(mean_return - value_loss)[: min(n, slots)]
    return lowest[jnp.arange(slots) % lowest.shape[0]]
