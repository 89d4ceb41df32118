"""SFL, sampling for learnability: now and then look for the levels that are solved about half the time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key, PyTree

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import Buffer, BufferConfig
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated
from tutelage.curricula.log import Journal
from tutelage.curricula.record import newborn
from tutelage.curricula.scores import Evidence, Marks, ScoreName, mark
from tutelage.curricula.seeds import when
from tutelage.curricula.state import State
from tutelage.env import Level
from tutelage.student.rollout import episodes, rollout


@dataclass(frozen=True)
class SFL(Curated):
    """Sampling for learnability (Rutherford et al. 2024).

    Every so many updates the student is rolled out on many random levels, and the K of highest learnability p(1 − p)
    make up the buffer until the next time. A part of the slots trains on levels drawn from it uniformly, the others on
    new random levels.
    """

    measures_novelty: ClassVar[bool] = False

    buffer: BufferConfig = BufferConfig(capacity=1000, prioritisation="top-k", top_k=1000, staleness=0.0, min_fill=0.0)
    """The K chosen levels. They are replaced all at once and drawn uniformly: only `capacity` matters."""
    score: ScoreName = "learnability"
    """What the log calls the score of a level in a training rollout. The choice is by learnability in any case."""
    scout_every: int = 100
    """Student updates between two searches."""
    scout_batches: int = 5
    """Batches of random levels in a search, played one after another."""
    scout_levels: int = 5000
    """Levels in such a batch, played side by side."""
    scout_episodes: int = 8
    """The fewest episodes on each of them: a search lasts this many times as long as an episode may."""
    chosen_share: float = 0.5
    """Share of the slots that train on chosen levels."""

    notes = ("sfl/learnability", "sfl/learnability_random")
    """Mean learnability of the levels chosen by a search, and of all it looked at."""

    def __post_init__(self):
        if min(self.scout_every, self.scout_batches, self.scout_levels, self.scout_episodes) < 1:
            raise ValueError("`scout_every`, `scout_batches`, `scout_levels` and `scout_episodes` must be at least 1.")
        if self.scout_batches * self.scout_levels < self.buffer.capacity:
            raise ValueError("`scout_batches` × `scout_levels` must be at least `buffer.capacity`.")
        if not 0 <= self.chosen_share <= 1:
            raise ValueError(f"`chosen_share` must lie in [0, 1], not {self.chosen_share}.")

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """K levels at every search."""
        return -(-self.buffer.capacity // room.slots) * -(-cycles // self.scout_every)

    def cycle(self, room: Classroom, s: State) -> State:
        """Search if it is time; then roll out on chosen and on new levels, and learn from both."""
        s = when(s.updates % self.scout_every == 0, partial(self.scout, room), s.next_cycle())
        s, key = s.next_key()
        key_drawn, key_new = jax.random.split(key)
        count = round(self.chosen_share * room.slots)
        drawn = jax.random.randint(key_drawn, (count,), 0, self.buffer.capacity)
        chosen = s.buffer.record.at(drawn).level
        new = self.generate(room, key_new, room.slots - count)
        s, trial = self.play_together(room, s, {"replay": chosen, "explore": new})
        return self.learn(room, s, trial)

    def scout(self, room: Classroom, s: State) -> State:
        """Estimate the learnability of many random levels and keep the best."""
        s, key = s.next_key()

        def batch(key: Key[Array, ""]) -> tuple[Level, Marks]:
            key_new, key_play = jax.random.split(key)
            levels = self.generate(room, key_new, self.scout_levels)
            return levels, learnability(room, key_play, s.learner.student, levels, self._scout_steps(room))

        found = lax.map(batch, jax.random.split(key, self.scout_batches))
        levels, marks = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), found)
        score, best = lax.top_k(marks.score[:, 0], self.buffer.capacity)
        levels, best_return = jax.tree.map(lambda x: x[best], (levels, marks.best_return[:, 0]))
        steps = self.scout_batches * self.scout_levels * self._scout_steps(room)
        rollouts = scouted(s, s.updates // self.scout_every, steps, room)
        s = replace(s, buffer=filled_with(s, levels, score, best_return), rollouts=rollouts)
        if s.log is None:
            return s
        entries = Journal(**vars(s.buffer.record), admitted=jnp.ones_like(score, bool))
        notes = {name: (x.sum(), jnp.float32(x.size)) for name, x in zip(self.notes, (score, marks.score), strict=True)}
        return replace(s, log=s.log.write(entries)).note(notes)

    def _scout_steps(self, room: Classroom) -> int:
        return self.scout_episodes * room.env.max_steps


def scouted(s: State, before: Array, steps: int, room: Classroom) -> Array:
    """Rollouts after a search of so many env steps: it counts as the rollouts of P slots that play as many.

    What is left over goes to later ones; `before` counts the searches so far.
    """
    unit = room.slots * room.steps
    left_over = (before + 1) * (steps % unit) // unit - before * (steps % unit) // unit
    return s.rollouts + steps // unit + left_over


def learnability(room: Classroom, key: Key[Array, ""], student: PyTree, levels: Level, steps: int) -> Marks:
    """p(1 − p) of each level, p the share of the episodes solved that ended within `steps` steps of playing it."""
    queue = jnp.arange(jax.tree.leaves(levels)[0].shape[0], dtype=jnp.int32)[:, None]
    r, _ = rollout(key, room.env, student, levels, queue, steps)
    eps = episodes(r)
    evidence = Evidence(r, eps, jnp.zeros_like(r.reward), room.env.solved(eps.returns))
    return mark("learnability", "mean", evidence, None, 1)


def filled_with(s: State, levels: Level, score: Float[Array, " K"], best_return: Float[Array, " K"]) -> Buffer:
    """A buffer of these levels alone, with ids never used before."""
    count, old = score.shape[0], s.buffer
    record = newborn(levels, score, s.updates)
    return Buffer(
        **vars(replace(record, id=old.next_id + jnp.arange(count, dtype=jnp.int32))),
        best_return=best_return,
        staleness=jnp.zeros_like(old.staleness),
        filled=jnp.int32(count),
        fingerprint=jax.vmap(buffers.fingerprint)(levels),
        next_id=old.next_id + count,
    )
