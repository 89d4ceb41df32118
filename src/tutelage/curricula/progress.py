"""Absolute learning progress: how differently an episode went from the most similar one before it."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

FEW = 5  # as long as no more tasks are known, none counts as near
QUERIES, BLOCK = 64, 16_384  # tasks compared at a time: new ones with known ones


class History(eqx.Module):
    """The latest H tasks with what came of them, as a ring: task number i is at i mod H."""

    tasks: Float[Array, "H n"]
    rewards: Float[Array, " H"]
    alps: Float[Array, " H"]
    count: Int[Array, ""]  # of all tasks ever

    @staticmethod
    def new(capacity: int, dimensions: int) -> History:
        """Nothing has been tried yet."""
        zero = jnp.zeros(capacity)
        return History(jnp.zeros((capacity, dimensions)), zero, zero, jnp.int32(0))

    @property
    def number(self) -> Int[Array, " H"]:
        """The number of the task at each place; negative where there is none yet."""
        last, capacity = self.count - 1, self.rewards.shape[0]
        return last - (last - jnp.arange(capacity)) % capacity

    def latest(self, n: int) -> Float[Array, "n d"]:
        """The last n tasks, each with its ALP as one more coordinate."""
        place = (self.count - n + jnp.arange(n)) % self.rewards.shape[0]
        return jnp.concatenate([self.tasks[place], self.alps[place, None]], axis=1)


def remember(
    history: History, tasks: Float[Array, "E n"], rewards: Float[Array, " E"], valid: Bool[Array, " E"]
) -> tuple[History, Float[Array, " E"]]:
    """Adds tasks one after another, valid ones first, and returns the ALP of each.

    ALP = |r − r of the nearest earlier task|, 0 while there are no more than a few.
    """
    capacity, count = history.rewards.shape[0], history.count
    number = count + jnp.arange(valid.size)
    place = jnp.where(valid, number % capacity, capacity)
    history = replace(
        history,
        tasks=history.tasks.at[place].set(tasks, mode="drop"),
        rewards=history.rewards.at[place].set(rewards, mode="drop"),
        count=count + valid.sum(dtype=jnp.int32),
    )
    near = nearest_earlier(history, tasks, number, valid.sum())
    alps = jnp.where(valid & (number > FEW), jnp.abs(rewards - history.rewards[near]), 0.0)
    return replace(history, alps=history.alps.at[place].set(alps, mode="drop")), alps


def nearest_earlier(
    history: History, tasks: Float[Array, "E n"], number: Int[Array, " E"], count: Int[Array, ""]
) -> Int[Array, " E"]:
    """Places of the tasks nearest to the first `count` of those given, among tasks of smaller number."""
    size = tasks.shape[0]
    queries = min(QUERIES, size)

    def some(carry):
        first, near = carry
        at = jnp.minimum(first, size - queries)
        found = _nearest(history, *(lax.dynamic_slice_in_dim(x, at, queries) for x in (tasks, number)))
        return first + queries, lax.dynamic_update_slice_in_dim(near, found, at, 0)

    return lax.while_loop(lambda c: c[0] < count, some, (jnp.int32(0), jnp.zeros(size, jnp.int32)))[1]


def _nearest(history: History, tasks: Float[Array, "B n"], number: Int[Array, " B"]) -> Int[Array, " B"]:
    """Compares with the filled part of the history, block by block."""
    capacity = history.rewards.shape[0]
    block, known = min(BLOCK, capacity), history.number

    def compare(carry):
        first, nearest, place = carry
        at = jnp.minimum(first, capacity - block)
        others, age = (lax.dynamic_slice_in_dim(x, at, block) for x in (history.tasks, known))
        # Coordinate by coordinate, so that the many known tasks are the innermost axis: several times as fast.
        distance = sum((a[:, None] - b) ** 2 for a, b in zip(tasks.T, others.T, strict=True))
        distance = jnp.where((age >= 0) & (age < number[:, None]), distance, jnp.inf)
        best = jnp.argmin(distance, axis=1)
        found = jnp.take_along_axis(distance, best[:, None], axis=1)[:, 0]
        place = jnp.where(found < nearest, at + best, place).astype(jnp.int32)
        return first + block, jnp.minimum(nearest, found), place

    start = (jnp.int32(0), jnp.full(tasks.shape[0], jnp.inf), jnp.zeros(tasks.shape[0], jnp.int32))
    return lax.while_loop(lambda c: c[0] < jnp.minimum(history.count, capacity), compare, start)[2]
