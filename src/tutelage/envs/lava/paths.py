"""Shortest paths around lava, by flooding the room from the start one step at a time."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from tutelage.envs import grid
from tutelage.envs.lava.level import TILES, LavaLevel

# A shortest path visits at most two tiles of a 2×2 square, and 16 such squares cover the room.
LONGEST_PATH = 2 * 16 - 1


def path_length(level: LavaLevel) -> Float[Array, ""]:
    """The fewest moves from start to goal, diagonal ones included; NaN if lava leaves no path."""
    free = ~level.lava

    def spread(reached: Bool[Array, "7 7"], _: None) -> tuple[Bool[Array, "7 7"], Bool[Array, ""]]:
        reached = dilate(reached) & free
        return reached, reached.reshape(-1)[level.goal]

    start = jnp.zeros(TILES, bool).at[level.agent].set(True).reshape(free.shape)
    _, arrived = lax.scan(spread, start, length=LONGEST_PATH)
    moves = jnp.argmax(arrived) + 1
    return jnp.where(arrived[-1], moves.astype(jnp.float32), jnp.nan)


def shortest_path(level: LavaLevel) -> Bool[Array, "7 7"]:
    """The tiles of one shortest path from start to goal, both included; none if lava leaves no path."""
    return grid.shortest_path(~level.lava, level.agent, level.goal, dilate)


def dilate(tiles: Bool[Array, "7 7"]) -> Bool[Array, "7 7"]:
    """The tiles and their eight neighbours."""
    rows = jnp.pad(tiles, 1)
    rows = rows[:-2] | rows[1:-1] | rows[2:]
    return rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:]
