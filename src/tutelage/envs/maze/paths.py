"""Shortest paths through a maze, by flooding it from the start one tile at a time."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int32

from tutelage.envs import grid
from tutelage.envs.maze.level import MazeLevel


class _Flood(NamedTuple):
    reached: Bool[Array, "h w"]
    moves: Int32[Array, ""]
    spreading: Bool[Array, ""]


def path_length(level: MazeLevel) -> Float[Array, ""]:
    """The fewest tile moves from start to goal, turns not counted; NaN if no path exists."""
    free = ~level.walls

    def at_goal(flood: _Flood) -> Bool[Array, ""]:
        return flood.reached.reshape(-1)[level.goal]

    def spread(flood: _Flood) -> _Flood:
        reached = dilate(flood.reached) & free
        return _Flood(reached, flood.moves + 1, jnp.any(reached != flood.reached))

    start = jnp.zeros(free.size, bool).at[level.agent].set(True).reshape(free.shape)
    begin = _Flood(start, jnp.int32(0), jnp.bool_(True))
    end = lax.while_loop(lambda flood: flood.spreading & ~at_goal(flood), spread, begin)
    return jnp.where(at_goal(end), end.moves.astype(jnp.float32), jnp.nan)


def shortest_path(level: MazeLevel) -> Bool[Array, "h w"]:
    """The tiles of one shortest path from start to goal, both included; none if no path exists."""
    return grid.shortest_path(~level.walls, level.agent, level.goal, dilate)


def dilate(tiles: Bool[Array, "h w"]) -> Bool[Array, "h w"]:
    """The tiles and their four neighbours."""
    padded = jnp.pad(tiles, 1)
    return tiles | padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
