"""ReMiDi: when regret cannot fall on some levels, go on with levels that can be told apart from them.

Beukman et al. 2024, in our words; the numbers are those in the comments below. A level whose regret stays, whatever the
student learns, would fill robust PLR's buffer for good. So buffers are filled one after another:

     1  every so many cycles, the buffer is put aside with all its levels, and an empty one begins
     2  explore, as robust PLR
     3      a step counts if, by what was seen so far in its episode, it can be on no level put aside
     4      a level on which no step counts is not kept
     5  replay, as robust PLR
     6      the student learns from the steps that count

so that what was learned on earlier levels stays as it is, where the student cannot tell them from others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, Key

from tutelage.curricula import buffer as buffers
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Trial
from tutelage.curricula.robust_plr import RobustPLR
from tutelage.curricula.seeds import when
from tutelage.curricula.state import State
from tutelage.env import Env, Level, Obs
from tutelage.student.rollout import Rollout


class Aside(eqx.Module):
    """The levels of earlier buffers, B − 1 times K."""

    levels: Level
    there: Bool[Array, "B K"]
    number: Int[Array, ""]  # of buffers put aside


@dataclass(frozen=True)
class ReMiDi(RobustPLR):
    """Refining minimax regret distributions (Beukman et al. 2024), for envs in which nothing is left to chance."""

    buffers: int = 4
    """Buffers, the last of which stays."""
    cycles_each: int = 1000
    """Cycles with a buffer before it is put aside."""

    notes = ("remidi/overlap",)
    """Share of the steps that cannot be told from those on levels put aside."""

    def __post_init__(self):
        if self.buffers < 2 or self.cycles_each < 1:
            raise ValueError("`buffers` must be at least 2, and `cycles_each` at least 1.")

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student, and nothing put aside."""
        s = super().init(room, key)
        earlier = self.buffers - 1
        levels = jax.tree.map(lambda x: jnp.zeros((earlier, *x.shape), x.dtype), s.buffer.level)
        return replace(s, own=Aside(levels, jnp.zeros((earlier, self.buffer.capacity), bool), jnp.int32(0)))

    def cycle(self, room: Classroom, s: State) -> State:
        """Explore or replay; now and then, put the buffer aside before."""
        due = (s.cycles > 0) & (s.cycles % self.cycles_each == 0) & (s.own.number < self.buffers - 1)
        return super().cycle(room, when(due, self.put_aside, s))

    def put_aside(self, s: State) -> State:
        """An empty buffer in the place of the present one."""  # 1
        number = s.own.number
        levels = jax.tree.map(lambda all_, new: all_.at[number].set(new), s.own.levels, s.buffer.level)
        there = s.own.there.at[number].set(jnp.arange(self.buffer.capacity) < s.buffer.filled)
        level = jax.tree.map(lambda x: x[0], s.buffer.level)
        empty = replace(buffers.empty(level, self.buffer), next_id=s.buffer.next_id)
        return replace(s, buffer=empty, own=Aside(levels, there, number + 1))

    def explore(self, room: Classroom, s: State) -> State:
        """Score new levels and keep those of high regret that can be told from all put aside."""  # 2
        s, key = s.next_key()
        levels = self.generate(room, key)
        s, trial = self.play(room, s, levels, "explore")
        s, counts = self.told_apart(room, s, trial)
        finished = trial.marks.finished & counts.any(axis=0)[:, None]  # 4
        return self.offer(s, levels, replace(trial, marks=replace(trial.marks, finished=finished)), "explore")

    def replay(self, room: Classroom, s: State) -> State:
        """Roll out on levels of the buffer, renew their scores, learn from the steps that count."""  # 5
        s, trial, _ = self.play_buffer(room, s)
        s, counts = self.told_apart(room, s, trial)
        return self.learn(room, s, replace(trial, counts=counts))  # 6

    def told_apart(self, room: Classroom, s: State, trial: Trial) -> tuple[State, Bool[Array, "T P"]]:
        """The steps that count."""  # 3
        levels = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), s.own.levels)
        look = lambda _, levels, there, r: overlap(room.env, levels, there, r)  # noqa: E731
        nothing = jnp.zeros_like(trial.rollout.start)
        like = when(s.own.number > 0, look, nothing, levels, s.own.there.ravel(), trial.rollout)
        s = s.note({"remidi/overlap": (like.sum(dtype=jnp.float32), jnp.float32(like.size))})
        return s, ~like


def overlap(env: Env, levels: Level, there: Bool[Array, " E"], r: Rollout) -> Bool[Array, "T P"]:
    """Whether one of the levels would have shown the same at each step of the episode so far, by the same actions.

    Every slot plays all E levels beside its own.
    """
    key = jax.random.key(0)  # nothing is drawn from it
    openings = jax.vmap(lambda level: env.reset(key, level))(levels)
    in_all = jax.vmap(lambda state, action: env.step(key, state, action), in_axes=(0, None))

    def step(at: tuple[Level, Bool[Array, "P E"]], now: tuple[Obs, Array, Array]):
        (state, seen), alike = at
        obs, action, start = now
        state, seen = jax.tree.map(lambda new, old: jnp.where(_wide(start, old), new, old), openings, (state, seen))
        equal = jax.tree.map(lambda a, b: (a == b[:, None]).reshape(*a.shape[:2], -1).all(axis=-1), seen, obs)
        alike = jnp.where(start[:, None], there, alike)
        for leaf in jax.tree.leaves(equal):
            alike &= leaf
        state, after = jax.vmap(in_all)(state, action)
        return ((state, after.obs), alike & ~after.done), alike.any(axis=1)

    slots, many = r.start.shape[1], there.size
    begin = jax.tree.map(lambda x: jnp.broadcast_to(x, (slots, *x.shape)), openings)
    return lax.scan(step, (begin, jnp.zeros((slots, many), bool)), (r.obs, r.action, r.start))[1]


def _wide(flags: Bool[Array, " P"], x: Array) -> Bool[Array, "P ..."]:
    return flags.reshape(flags.shape + (1,) * (x.ndim - 1))
