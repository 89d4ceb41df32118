"""NCC: levels are drawn from a distribution that climbs the student's learnability, kept wide by its entropy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated
from tutelage.curricula.log import Journal
from tutelage.curricula.record import Record, newborn
from tutelage.curricula.scores import Marks, ScoreName
from tutelage.curricula.seeds import when
from tutelage.curricula.sfl import filled_with, learnability, scouted
from tutelage.curricula.state import State
from tutelage.env import Level

FLOOR = 1e-5  # the smallest probability of a level


class Tilt(eqx.Module):
    """The distribution over the buffer's levels, and what its ascent has to remember."""

    y: Float[Array, " K"]
    squares: Float[Array, " K"]  # Σ g², from 0.1


@dataclass(frozen=True)
class NCC(Curated):
    """Generalised learnability (Monette et al. 2025), with the sign of its theory.

    Each cycle estimates the learnability s of all K levels, lets new random levels take the place of the least
    learnable, and moves the distribution y over the buffer towards the maximum of yᵀs + η·H(y). The student trains on
    levels drawn from y.
    """

    measures_novelty: ClassVar[bool] = False

    buffer: BufferConfig = BufferConfig(capacity=4000, staleness=0.0, min_fill=0.0)
    """The K levels. They are drawn from y: only `capacity` matters."""
    score: ScoreName = "learnability"
    """What the log calls the score of a level in a training rollout. y climbs learnability in any case."""
    attempts: int = 5
    """Episodes on each level by which learnability is estimated: as many as fit into so many times the time limit."""
    look_every: int = 1
    """Student updates between two estimates of all K levels, which are most of the env steps."""
    entropy: float = 0.05
    """η, the weight of the distribution's entropy."""
    ascent: Literal["softmax", "gradient"] = "softmax"
    """How y moves: to its maximum softmax(s/η), or by a step of the gradient, projected, as in the paper's code."""
    step: float = 0.1
    """Size of a gradient step. At the paper's 0.1 y swings between two supports; it settles at 0.01."""

    notes = ("ncc/learnability", "ncc/learnability_drawn", "ncc/spread")
    """Mean learnability of the buffer's levels, plain and as they are drawn; how many levels y is spread over."""

    def __post_init__(self):
        if min(self.attempts, self.look_every) < 1:
            raise ValueError("`attempts` and `look_every` must be at least 1.")
        if self.entropy <= 0 or self.step <= 0:
            raise ValueError("`entropy` and `step` must be positive.")

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """The first levels, and a row of new ones at every look."""
        return -(-self.buffer.capacity // room.slots) + cycles // self.look_every + 1

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student, an empty buffer, a flat distribution."""
        flat = jnp.full(self.buffer.capacity, 1 / self.buffer.capacity)
        return replace(super().init(room, key), own=Tilt(flat, jnp.full_like(flat, 0.1)))

    def cycle(self, room: Classroom, s: State) -> State:
        """Draw levels and learn from them; look at all levels, now and then; the draw is from y before the look."""
        s = when(s.buffer.filled == 0, partial(self.fill, room), s.next_cycle())
        s, key = s.next_key()
        drawn = jax.random.choice(key, self.buffer.capacity, (room.slots,), p=s.own.y).astype(jnp.int32)
        levels = s.buffer.record.at(drawn).level
        s = when(s.updates % self.look_every == 0, partial(self.look, room), s)
        s, trial = self.play(room, s, levels, "replay")
        return self.learn(room, s, trial)

    def fill(self, room: Classroom, s: State) -> State:
        """The first K levels, of which nothing is known."""
        s, key = s.next_key()
        levels = self.generate(room, key, self.buffer.capacity)
        unknown = jnp.zeros(self.buffer.capacity)
        s = replace(s, buffer=filled_with(s, levels, unknown, unknown))
        if s.log is None:
            return s
        return replace(s, log=s.log.write(Journal(**vars(s.buffer.record), admitted=jnp.ones_like(unknown, bool))))

    def look(self, room: Classroom, s: State) -> State:
        """Estimates the learnability of all levels, lets new ones in, and moves y."""
        s, key = s.next_key()
        key_old, key_levels, key_new = jax.random.split(key, 3)
        score = self.estimate(room, key_old, s, s.buffer.level).score[:, 0]
        new = self.generate(room, key_levels)
        s = self.admit(replace(s, buffer=replace(s.buffer, score=score)), new, self.estimate(room, key_new, s, new))
        looks, steps = s.updates // self.look_every, self.attempts * room.env.max_steps
        s = replace(s, rollouts=scouted(s, looks, (self.buffer.capacity + room.slots) * steps, room))
        s = replace(s, own=self.climb(s.own, s.buffer.score))
        y, score = s.own.y, s.buffer.score
        spread = jnp.exp(-jnp.where(y > 0, y * jnp.log(y), 0.0).sum())
        values = zip(self.notes, (score.mean(), (y * score).sum(), spread), strict=True)
        return s.note({name: (value, jnp.float32(1)) for name, value in values})

    def estimate(self, room: Classroom, key: Key[Array, ""], s: State, levels: Level) -> Marks:
        """Learnability of each level, as many side by side as a rollout has slots, the last of them perhaps twice."""
        count, slots = jax.tree.leaves(levels)[0].shape[0], room.slots
        batches = -(-count // slots)
        index = jnp.minimum(jnp.arange(batches * slots), count - 1).reshape(batches, slots)

        def batch(given: tuple[Key[Array, ""], Int[Array, " P"]]) -> Marks:
            key, index = given
            some = jax.tree.map(lambda x: x[index], levels)
            return learnability(room, key, s.learner.student, some, self.attempts * room.env.max_steps)

        marks = lax.map(batch, (jax.random.split(key, batches), index))
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], marks)

    def admit(self, s: State, levels: Level, marks: Marks) -> State:
        """The best new level takes the place of the least learnable if it is more so, the next best of the next."""
        known = jnp.where(marks.finished, marks.score, -1.0)[:, 0]
        worst = jnp.argsort(s.buffer.score)[: known.size]
        best = jnp.argsort(-known)[: worst.size]
        levels, best_return, score = jax.tree.map(lambda x: x[best], (levels, marks.best_return[:, 0], known))
        wins = score > s.buffer.score[worst]
        ids = jnp.where(wins, s.buffer.next_id + jnp.cumsum(wins, dtype=jnp.int32) - 1, -1)
        record = replace(newborn(levels, score, s.updates), id=ids)
        s = replace(s, buffer=_replaced(s.buffer, worst, wins, record, best_return))
        if s.log is None:
            return s
        share = (wins.sum(dtype=jnp.float32), jnp.float32(wins.size))
        return replace(s, log=s.log.write(Journal(**vars(record), admitted=wins))).note({"explore/admitted": share})

    def climb(self, tilt: Tilt, s: Float[Array, " K"]) -> Tilt:
        """y after a look: argmax yᵀs + η·H(y), or a step towards it.

        g = s − η (log y + 1),  a ← a + g²,  y ← Proj(y + step · g / (a + 10⁻⁷)^0.4)
        """
        if self.ascent == "softmax":
            return replace(tilt, y=jax.nn.softmax(s / self.entropy))
        gradient = s - self.entropy * (jnp.log(tilt.y) + 1)
        squares = tilt.squares + gradient**2
        return Tilt(projected(tilt.y + self.step * gradient * (squares + 1e-7) ** -0.4), squares)


def projected(x: Float[Array, " K"]) -> Float[Array, " K"]:
    """The nearest point whose coordinates are at least FLOOR and sum to 1: max(x − θ, FLOOR) for the one θ."""
    above = x - FLOOR
    mass = 1 - FLOOR * x.size
    down = jnp.sort(above, descending=True)
    thetas = (jnp.cumsum(down) - mass) / jnp.arange(1, x.size + 1)
    theta = thetas[jnp.sum(down > thetas) - 1]
    return jnp.maximum(above - theta, 0.0) + FLOOR


def _replaced(
    buffer: buffers.Buffer, where: Int[Array, " P"], wins: Bool[Array, " P"], new: Record, best_return: Array
) -> buffers.Buffer:
    """The buffer with the winners in these slots."""
    place = jnp.where(wins, where, buffer.score.size + jnp.arange(where.size))  # beyond the last slot: dropped

    def put(old: Array, new: Array) -> Array:
        return old.at[place].set(new, mode="drop", unique_indices=True)

    return buffers.Buffer(
        **vars(jax.tree.map(put, buffer.record, new)),
        best_return=put(buffer.best_return, best_return),
        staleness=buffer.staleness,
        filled=buffer.filled,
        fingerprint=put(buffer.fingerprint, jax.vmap(buffers.fingerprint)(new.level)),
        next_id=buffer.next_id + wins.sum(dtype=jnp.int32),
    )
