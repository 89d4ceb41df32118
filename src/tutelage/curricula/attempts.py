"""Many students, each on a level of its own, play one episode each: all of them side by side, in one loop.

An attempt is a student θ_source + scale · ε on a level, from its beginning to its end. However many there are, only so
many lanes walk at a time. A lane whose attempt is over takes the next, so that few wait; and when none is left, those
that still walk move up into fewer lanes. Under `vmap` the attempts of all seeds share the lanes.

An attempt leaves nothing to chance: its student acts by the mode of its policy, and how the level begins and what the
env draws follows from the level. So one says as much as many.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from tutelage.curricula.buffer import fingerprint
from tutelage.env import Env, Level, Obs, State
from tutelage.student.controller import Crowd
from tutelage.student.es import perturbation

BETWEEN = 16  # steps between two looks at which lanes are free
WAITING = 8  # one in so many lanes may be free before the others are given their next attempts
ON_CPU = 256  # lanes; more are no faster there
SHRINK = 4  # times fewer lanes, when few still walk


class Attempts(NamedTuple):
    """J attempts: whose parameters, which perturbation of them and how much of it, and on which level."""

    source: Int[Array, "*S J"]
    noise: Int[Array, "*S J"]
    scale: Float[Array, "*S J"]
    level: Int[Array, "*S J"]
    wanted: Bool[Array, "*S J"]


class Results(NamedTuple):
    """What came of each attempt; of those that were not wanted, zeros."""

    returns: Float[Array, "*S J"]
    length: Int[Array, "*S J"]


class _Lanes(NamedTuple):
    """K lanes: what each walks with, where it stands, and for which attempt."""

    members: PyTree  # of the crowd: lanes on the last axis
    memory: PyTree
    env: State
    obs: Obs
    key: Key[Array, " K"]
    attempt: Int[Array, " K"]
    time: Int[Array, " K"]
    returns: Float[Array, " K"]
    walking: Bool[Array, " K"]


def attempt_all(
    key: Key[Array, ""],
    env: Env,
    unflatten: Callable[[Float[Array, " n"]], PyTree],
    sources: Float[Array, "A n"],
    levels: Level,
    attempts: Attempts,
    usual: int,
) -> Results:
    """Plays all attempts that are wanted; `usual` is how many there are most of the time."""

    @custom_vmap
    def one(*given: Any) -> Results:
        return jax.tree.map(lambda x: x[0], play(*jax.tree.map(lambda x: x[None], given)))

    @one.def_vmap
    def many(size: int, batched: Any, *given: Any) -> tuple[Results, Any]:
        def stacked(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

        out = play(*jax.tree.map(stacked, given, tuple(batched)))
        return out, jax.tree.map(lambda _: True, out)

    play = partial(_play, env, unflatten, usual)
    return one(key, sources, levels, attempts)


def lanes_for(usual: int, most: int) -> tuple[int, ...]:
    """How many lanes there are, from the most to the fewest."""
    if jax.default_backend() != "gpu":
        return (min(most, ON_CPU),)
    sizes = (SHRINK * usual, usual, -(-usual // SHRINK))
    return tuple(dict.fromkeys(min(size, most) for size in sizes))


def _play(
    env: Env,
    unflatten: Callable[[Array], PyTree],
    usual: int,
    keys: Key[Array, " S"],
    sources: Float[Array, "S A n"],
    levels: Level,
    attempts: Attempts,
) -> Results:
    """The attempts of S seeds, as one queue."""
    seeds, number = attempts.source.shape
    pool = _Pool(env, unflatten, keys, sources, jax.vmap(jax.vmap(partial(_opening, env)))(levels), attempts)
    wanted = attempts.wanted.reshape(-1)
    count = jnp.sum(wanted, dtype=jnp.int32)
    place = jnp.where(wanted, jnp.cumsum(wanted) - 1, wanted.size + jnp.arange(wanted.size))
    queue = jnp.zeros(wanted.size, jnp.int32).at[place].set(jnp.arange(wanted.size), mode="drop", unique_indices=True)
    results = Results(jnp.zeros(wanted.size), jnp.zeros(wanted.size, jnp.int32))
    sizes = lanes_for(seeds * usual, seeds * number)
    lanes, taken = pool.empty(sizes[0]), jnp.int32(0)
    for size, fewer in zip(sizes, (*sizes[1:], 0), strict=True):
        lanes = _moved_up(lanes, size)

        def unfinished(carry: tuple[_Lanes, Array, Results], fewer: int = fewer) -> Array:
            lanes, taken, _ = carry
            return count - taken + jnp.sum(lanes.walking, dtype=jnp.int32) > fewer

        def go_on(carry: tuple[_Lanes, Array, Results], size: int = size) -> tuple[_Lanes, Array, Results]:
            lanes, taken, results = carry
            free = size - jnp.sum(lanes.walking, dtype=jnp.int32)
            due = (taken < count) & ((free * WAITING >= size) | (free >= count - taken))
            lanes, taken = lax.cond(due, lambda: pool.supplied(lanes, queue, taken, count), lambda: (lanes, taken))
            lanes = lax.fori_loop(0, BETWEEN, lambda _, lanes: pool.stepped(lanes), lanes)
            return _reported(lanes, results, taken)

        lanes, taken, results = lax.while_loop(unfinished, go_on, (lanes, taken, results))
    return jax.tree.map(lambda x: x.reshape(seeds, number), results)


class _Pool(NamedTuple):
    """The attempts of all seeds, and what they are made with."""

    env: Env
    unflatten: Callable[[Array], PyTree]
    keys: Key[Array, " S"]
    sources: Float[Array, "S A n"]
    openings: PyTree  # of every level: `[S, L, …]`
    attempts: Attempts

    def begun(self, attempt: Int[Array, " K"]) -> _Lanes:
        """Lanes in which these attempts are about to begin."""
        seed, number = attempt // self.attempts.source.shape[1], attempt % self.attempts.source.shape[1]
        source, noise, scale, level, _ = (x[seed, number] for x in self.attempts)
        size = self.sources.shape[-1]
        drawn = jax.vmap(lambda key, k: perturbation(key, k, size))(self.keys[seed], noise)
        students = jax.vmap(self.unflatten)(self.sources[seed, source] + scale[:, None] * drawn)
        crowd = Crowd.of(students)
        none = jnp.zeros(attempt.shape, jnp.int32)
        lanes = len(attempt)
        env, obs, keys = jax.tree.map(lambda x: x[seed, level], self.openings)
        return _Lanes(
            crowd.ready().members, crowd.memory(lanes), env, obs, keys, attempt, none, jnp.zeros(lanes), none == 0
        )

    def empty(self, lanes: int) -> _Lanes:
        """Lanes in which nobody walks."""
        shapes = jax.eval_shape(lambda: self.begun(jnp.zeros(lanes, jnp.int32)))
        return jax.tree.map(_blank, shapes)

    def supplied(
        self, lanes: _Lanes, queue: Int[Array, " J"], taken: Int[Array, ""], count: Int[Array, ""]
    ) -> tuple[_Lanes, Int[Array, ""]]:
        """The next attempts of the queue begin in the lanes that are free."""
        free = ~lanes.walking
        place = taken + jnp.cumsum(free, dtype=jnp.int32) - 1
        starts = free & (place < count)
        new = self.begun(queue[jnp.clip(place, 0, queue.size - 1)])
        members = jax.tree.map(lambda a, b: jnp.where(starts, a, b), new.members, lanes.members)
        rest = jax.tree.map(
            lambda a, b: jnp.where(_wide(starts, a), a, b), new._replace(members=()), lanes._replace(members=())
        )
        return rest._replace(members=members), taken + jnp.sum(starts, dtype=jnp.int32)

    def stepped(self, lanes: _Lanes) -> _Lanes:
        """One step of every lane; where nobody walks, nothing is counted."""
        memory, policy, _ = Crowd(lanes.members).act(lanes.memory, lanes.obs, lanes.time == 0)
        keys = jax.vmap(jax.random.fold_in)(lanes.key, lanes.time)
        env, after = jax.vmap(self.env.step)(keys, lanes.env, policy.mode())
        walked = lanes.walking
        return lanes._replace(
            memory=memory,
            env=env,
            obs=after.obs,
            time=lanes.time + walked,
            returns=lanes.returns + jnp.where(walked, after.reward, 0.0),
            walking=walked & ~after.done,
        )


def _opening(env: Env, level: Level) -> tuple[State, Obs, Key[Array, ""]]:
    """How an attempt on a level begins, and the key of all that its env draws: both follow from the level alone."""
    key = jax.random.wrap_key_data(fingerprint(level))
    return *env.reset(key, level), key


def _reported(lanes: _Lanes, results: Results, taken: Int[Array, ""]) -> tuple[_Lanes, Int[Array, ""], Results]:
    """Writes down what came of the attempts that are over; once more if nothing has begun in their lanes since."""
    number = results.returns.size
    spare = number + jnp.arange(len(lanes.attempt))
    place = jnp.where(~lanes.walking & (lanes.time > 0), lanes.attempt, spare)
    found = jax.tree.map(
        lambda all_, new: all_.at[place].set(new, mode="drop", unique_indices=True),
        results,
        Results(lanes.returns, lanes.time),
    )
    return lanes, taken, found


def _moved_up(lanes: _Lanes, size: int) -> _Lanes:
    """Those that walk, in the first lanes."""
    if len(lanes.walking) == size:
        return lanes
    first = jnp.argsort(~lanes.walking, stable=True)[:size]
    members = jax.tree.map(lambda x: x[..., first], lanes.members)
    return jax.tree.map(lambda x: x[first], lanes._replace(members=()))._replace(members=members)


def _blank(shape: Any) -> Array:
    if jax.dtypes.issubdtype(shape.dtype, jax.dtypes.prng_key):
        return jnp.broadcast_to(jax.random.key(0), shape.shape)
    return jnp.zeros(shape.shape, shape.dtype)


def _wide(flags: Bool[Array, " K"], x: Array) -> Array:
    return flags.reshape(flags.shape + (1,) * (x.ndim - 1))
