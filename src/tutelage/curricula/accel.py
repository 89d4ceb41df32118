"""ACCEL: keep the levels of highest regret, edit them a little, keep the children that are at the frontier again.

Algorithm 1 of Parker-Holder et al. 2022, in our words; the numbers are those in the comments below.

     1  fill the buffer with levels of the generator, down to a share of its slots
     2  until the student is good enough:
     3      decide: explore or replay
     4      explore:
     5          new levels from the generator
     6          roll the student out on them, without learning
     7          estimate its regret on each (Equation 5)
     8          offer the levels to the buffer, which keeps those of high regret
     9      replay:
    10          draw levels from the buffer
    11          roll the student out on them
    12          student update
    13          edit the levels
    14          roll the student out on the children, without learning
    15          estimate its regret on parents and children
    16          parents get their new scores; the buffer keeps children of high regret
    17          an editor that learns does so now (`learned_editor.py`)

Every method is a frozen dataclass of its hyperparameters, and pure functions from one state of one seed to the next.
`room` has what stays as it is: env, design space, PPO, P slots, T steps. `s` has what changes: the student, the buffer,
a key, counters, a log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from tutelage.curricula import buffer as buffers
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated, Trial, explore_or_replay
from tutelage.curricula.seeds import shared_uniform, when
from tutelage.curricula.state import State


@dataclass(frozen=True)
class ACCEL(Curated):
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
    extinction_every: int = 0
    """Student updates between two extinctions, of which the paper speaks as future work: a random share of the levels
    survives, and their children may have the places of the others. 0 for none."""
    survivors: float = 0.5
    """Share of the levels that survive an extinction. If it is below the buffer's `min_fill`, new levels come first."""

    def __post_init__(self):
        if self.edits < 1 or not 0 <= self.edit_rate <= 1:
            raise ValueError("`edits` must be at least 1, and `edit_rate` lie in [0, 1].")
        if self.extinction_every < 0 or not 0 < self.survivors <= 1:
            raise ValueError("`extinction_every` must not be negative, and `survivors` lie in (0, 1].")

    def cycle(self, room: Classroom, s: State) -> State:
        """Explore without learning, or replay, learn and edit; explore only, while the buffer is too empty."""
        return explore_or_replay(self, room, s)  # 1, 3

    def explore(self, room: Classroom, s: State) -> State:
        """Score new levels and keep those of high regret."""
        s, key = s.next_key()
        levels = self.generate(room, key)  # 5
        s, trial = self.play(room, s, levels, "explore")  # 6, 7
        return self.offer(s, levels, trial, "explore")  # 8

    def replay(self, room: Classroom, s: State) -> State:
        """Roll out on levels of the buffer, renew their scores, learn; then edit."""
        if self.extinction_every:
            due = (s.updates > 0) & (s.updates % self.extinction_every == 0)
            s = when(due, self.extinguish, s)
        s, trial, drawn = self.play_buffer(room, s)  # 10, 11; 15, 16 for parents
        s = self.learn(room, s, trial)  # 12
        parents = drawn if self.parents == "replayed" else drawn[lowest_slots(trial)]
        return when(shared_uniform(s, 1) < self.edit_rate, partial(self.edit, room), s, parents)

    def extinguish(self, s: State) -> State:
        """Most levels of the buffer are gone, whatever they were worth."""
        s, key = s.next_key()
        return replace(s, buffer=buffers.cull(key, s.buffer, self.survivors))

    def edit(self, room: Classroom, s: State, parents: Int[Array, " P"]) -> State:
        """Score the children of the levels in these slots of the buffer, and keep those of high regret."""
        s, key = s.next_key()
        keys = jax.random.split(key, room.slots)
        levels = s.buffer.record.at(parents).level
        children = jax.vmap(lambda k, level: room.design.edit(k, level, self.edits))(keys, levels)  # 13
        s, trial = self.play(room, s, children, "edit")  # 14, 15
        return self.offer(s, children, trial, "edit", parents)  # 16


def lowest_slots(trial: Trial, n: int = 4) -> Int[Array, " P"]:
    """The n slots of lowest mean return − clip(mean_t |A_t|, −1, 1), repeated until every slot has one."""
    ended = trial.episodes.ended
    mean_return = jnp.where(ended, trial.episodes.returns, 0.0).sum(axis=0) / jnp.maximum(ended.sum(axis=0), 1)
    value_loss = jnp.clip(jnp.abs(trial.advantage).mean(axis=0), -1.0, 1.0)
    slots = mean_return.shape[0]
    lowest = jnp.argsort(mean_return - value_loss)[: min(n, slots)]
    return lowest[jnp.arange(slots) % lowest.shape[0]]
