"""The order in which Python goes through a set of tile numbers: the reference implementation edits tiles in it.

CPython keeps a set of numbers in a table, where a number is put at the first free slot of a path that begins at its
value modulo the table's size. A table that has come to hold enough grows: what is in it moves to a larger one, in
order. A set is gone through from the table's first slot to its last.
"""

from __future__ import annotations

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from tutelage.envs.grid import first_occurrences

SMALLEST = 8  # slots
NEIGHBOURS, SHIFT = 9, 5  # slots looked at beside one that is taken; bits that leave the number with each jump
NOTHING = -1


def set_order(tiles: Int[Array, " n"], count: int) -> Int[Array, " n"]:
    """The order of `set(tiles)`, for numbers from 0 to count − 1; after the distinct ones the first of them again."""
    fresh = first_occurrences(tiles)
    rank = jnp.cumsum(fresh) - 1
    distinct, known = rank[-1] + 1, jnp.zeros(0, jnp.int32)
    order, seen, slots = tiles, 0, SMALLEST
    while seen <= tiles.size:
        # The number that makes three fifths is put into this table still, and makes it grow.
        full = -(-3 * (slots - 1) // 5)
        new = jnp.where(fresh & (rank >= seen) & (rank < full), tiles, NOTHING)
        known = _table(jnp.concatenate([known, new]), slots, count)
        order = jnp.where(distinct >= seen, _front(known, tiles.size), order)
        seen, slots = full, 1 << (4 * full).bit_length()
    return order


def _table(numbers: Int[Array, " n"], slots: int, count: int) -> Int[Array, " slots"]:
    """A table into which numbers were put one after another."""
    paths = jnp.asarray(_paths(slots, count))

    def put(table: Int[Array, " slots"], number: Int[Array, ""]):
        path = paths[number]
        free = path[jnp.argmax(table[path] == NOTHING)]
        return jnp.where(number == NOTHING, table, table.at[free].set(number)), None

    return lax.scan(put, jnp.full(slots, NOTHING, numbers.dtype), numbers)[0]


def _front(table: Int[Array, " slots"], n: int) -> Int[Array, " n"]:
    """The first n numbers of a table, its first one where it has fewer."""
    numbers = table[jnp.argsort(table == NOTHING, stable=True)]
    numbers = jnp.where(numbers == NOTHING, numbers[0], numbers)
    return jnp.pad(numbers, (0, max(0, n - table.size)), mode="edge")[:n]


@lru_cache
def _paths(slots: int, count: int) -> Int[np.ndarray, "count slots"]:
    """The slots that each number tries, in turn."""
    return np.array([_path(number, slots) for number in range(count)], np.int32)


def _path(number: int, slots: int) -> list[int]:
    path: dict[int, None] = {}
    at, rest = number % slots, number
    while len(path) < slots:
        beside = NEIGHBOURS if at + NEIGHBOURS < slots else 0
        path |= dict.fromkeys(range(at, at + beside + 1))
        rest >>= SHIFT
        at = (5 * at + 1 + rest) % slots
    return list(path)
