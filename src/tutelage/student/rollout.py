"""Rollouts: T steps of P slots, and what happened in their episodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from tutelage.env import Action, Env, Level, Obs, Played, Player, State
from tutelage.student import distributions
from tutelage.student.nets import Student
from tutelage.student.prefix import running
from tutelage.student.rows import replaced


class Rollout(eqx.Module):
    """One slot plays the levels of its queue one after another; each starts anew when the episode before it ends."""

    obs: Obs
    action: Action
    log_prob: Float[Array, "T P"]
    value: Float[Array, "T P"]
    next_value: Float[Array, "T P"] | None  # of the observation after the step, before any reset; only if asked for
    reward: Float[Array, "T P"]
    terminated: Bool[Array, "T P"]
    truncated: Bool[Array, "T P"]
    start: Bool[Array, "T P"]  # the first step of an episode
    entry: Int[Array, "T P"]  # the queue entry being played

    @property
    def done(self) -> Bool[Array, "T P"]:
        """The last step of an episode; the rollout's end is none."""
        return self.terminated | self.truncated


class _Slots(NamedTuple):
    """The loop's state: where each slot stands."""

    env: PyTree
    obs: Obs
    memory: PyTree
    start: Bool[Array, " P"]
    entry: Int[Array, " P"]


def rollout(
    key: Key[Array, ""],
    env: Env,
    student: Student,
    pool: Level,
    queue: Int[Array, "P Q"],
    steps: int,
    *,
    next_values: bool = False,
) -> tuple[Rollout, State]:
    """Plays `steps` steps in P slots; slot p plays the levels `pool[queue[p, 0]], pool[queue[p, 1]], …` in a circle.

    A queue of one entry therefore repeats one level. An entry begins the same way each time it comes up: the reset key
    belongs to the entry. Beside the rollout comes the env's state in each slot after the last step.
    """
    slots, length = queue.shape
    student = student.ready()
    key_reset, key_noise, key_step = jax.random.split(key, 3)
    levels = jax.tree.map(lambda x: x[queue], pool)
    reset_keys = jax.random.split(key_reset, queue.shape)
    # All resets happen once, before the loop, which then only picks among their results.
    openings = jax.vmap(jax.vmap(env.reset))(reset_keys, levels)
    noise = distributions.noise(key_noise, env.actions, (steps, slots))
    if isinstance(env, Player) and not next_values:
        played = env.play(student, openings, noise)
        if played is not None:
            return _heard(student, played, length), played.end
    step_keys = jax.random.split(key_step, (steps, slots))

    def step(at: _Slots, inputs):
        noise, keys = inputs
        memory, policy, value = student.act(at.memory, at.obs, at.start)
        action = policy.sample(noise)
        env_state, after = jax.vmap(env.step)(keys, at.env, action)
        next_value = student.act(memory, after.obs, jnp.zeros_like(at.start))[2] if next_values else None
        record = (at.obs, action, policy, value, next_value, after.reward, after.terminated, after.truncated)
        entry = jnp.where(after.done, (at.entry + 1) % length, at.entry)
        env_state, obs = renewed(after.done, partial(_of_slots, entry), openings, (env_state, after.obs))
        return _Slots(env_state, obs, memory, after.done, entry), record

    first = jnp.zeros(slots, jnp.int32)
    env_state, obs = jax.tree.map(partial(_of_slots, first), openings)
    begin = _Slots(env_state, obs, student.memory(slots), jnp.ones(slots, bool), first)
    end, (obs, action, policy, *scalars) = lax.scan(step, begin, (noise, step_keys), unroll=_loop_unroll())
    return _assemble(obs, action, policy.log_prob(action), *scalars, queue_length=length), end.env


def _assemble(obs, action, log_prob, value, next_value, reward, terminated, truncated, *, queue_length: int) -> Rollout:
    """What follows from the loop's record is computed here, for all steps at once."""
    done = terminated | truncated
    start = jnp.concatenate([jnp.ones_like(done[:1]), done[:-1]])
    entry = (jnp.cumsum(start, axis=0, dtype=jnp.int32) - 1) % queue_length
    return Rollout(obs, action, log_prob, value, next_value, reward, terminated, truncated, start, entry)


def _heard(student: Student, played: Played, queue_length: int) -> Rollout:
    """The rollout that an env has played: what the student makes of it is computed here, for all steps at once."""
    obs, action, reward, terminated, truncated, _ = played
    done = terminated | truncated
    start = jnp.concatenate([jnp.ones_like(done[:1]), done[:-1]])
    policy, value = student.evaluate(obs, start)
    return _assemble(
        obs, action, policy.log_prob(action), value, None, reward, terminated, truncated, queue_length=queue_length
    )


def _loop_unroll() -> int:
    return 4 if jax.default_backend() == "gpu" else 1


def _of_slots(entry: Int[Array, " P"], x: Array) -> Array:
    return x[jnp.arange(len(entry)), entry]


LONG = 256  # numbers of a slot


def renewed(
    done: Bool[Array, " P"], find: Callable[[Array], Array], openings: tuple[State, Obs], going: tuple[State, Obs]
) -> tuple[State, Obs]:
    """What `find` finds in the openings for slots whose episode is done, and for the others what goes on.

    Few episodes are done at a time: where a slot has much, on GPUs, nothing is read or written of the others.
    """

    def one(new: Array, old: Array) -> Array:
        if jax.default_backend() == "gpu" and old[0].size >= LONG:
            before = new.shape[: new.ndim - old.ndim + 1]
            row = find(jnp.arange(math.prod(before)).reshape(before))
            flat = (len(done), -1)
            return replaced(old.reshape(flat), done, new.reshape(-1, old[0].size), row).reshape(old.shape)
        return jnp.where(done.reshape(done.shape + (1,) * (old.ndim - 1)), find(new), old)

    return jax.tree.map(one, openings, going)


class Episodes(eqx.Module):
    """Running figures of the episode each step belongs to; where `ended`, those of a completed episode."""

    ended: Bool[Array, "T P"]
    returns: Float[Array, "T P"]
    length: Float[Array, "T P"]


def episodes(r: Rollout) -> Episodes:
    """Undiscounted return and length of every episode up to each step."""
    return Episodes(r.done, running_sum(r.reward, r.start), running_sum(jnp.ones_like(r.reward), r.start))


def mean_return(e: Episodes) -> Float[Array, " P"]:
    """Each slot's mean return over the episodes that ended; 0 if none did."""
    return jnp.where(e.ended, e.returns, 0.0).sum(axis=0) / jnp.maximum(e.ended.sum(axis=0), 1)


def running_sum(x: Float[Array, "T P"], start: Bool[Array, "T P"]) -> Float[Array, "T P"]:
    """Σ x_k over the steps k of the episode up to each step, `[T, P]`; `start` marks the first step of an episode."""

    def combine(a, b):
        (sum_a, cut_a), (sum_b, cut_b) = a, b
        return jnp.where(cut_b, sum_b, sum_a + sum_b), cut_a | cut_b

    return running(combine, (x, start))[0]


TimeLimit = Literal["cut", "end"]


def gae(
    r: Rollout,
    *,
    discount: float | Float[Array, ""],
    gae_lambda: float | Float[Array, ""],
    bootstrap: bool = False,
    time_limit: TimeLimit = "cut",
) -> tuple[Float[Array, "T P"], Float[Array, "T P"]]:
    """Generalised advantage estimation (Schulman et al. 2016): advantages A and targets R = A + V, `[T, P]` each.

        δ_t = r_t + γ V_{t+1} − V_t
        A_t = Σ_{k ≥ t} (γλ)^{k−t} δ_k = δ_t + γλ A_{t+1}

    The sum is over steps of one episode, and V_{t+1} is 0 after its last step and the rollout's. With `bootstrap`, it
    is the value of the observation at which the time limit or the rollout's end has cut an episode short; without, it
    is 0 there too, as in the reference implementation. Where a time limit is an `end`, only the rollout's end cuts.
    """
    goes_on = jnp.concatenate([~r.done[:-1], jnp.zeros_like(r.done[:1])])
    following = jnp.concatenate([r.value[1:], jnp.zeros_like(r.value[:1])]) * goes_on
    if bootstrap:
        assert r.next_value is not None, "bootstrapping needs a rollout with next_values=True"
        over = r.terminated if time_limit == "cut" else r.done
        following = jnp.where(~goes_on & ~over, r.next_value, following)
    delta = r.reward + discount * following - r.value
    advantage = _linear_recurrence(delta, discount * gae_lambda * goes_on)
    return advantage, advantage + r.value


def _linear_recurrence(b: Float[Array, "T P"], a: Float[Array, "T P"]) -> Float[Array, "T P"]:
    """y_t = b_t + a_t · y_{t+1}, from the last step backwards, in logarithmic depth."""

    def combine(late, early):
        (a_late, b_late), (a_early, b_early) = late, early
        return a_early * a_late, b_early + a_early * b_late

    return running(combine, (a, b), reverse=True)[1]
