"""A maze level: its walls, where the student starts, where the goal is; and the same as rows of characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Bool, Int, Int32, Key

from tutelage.envs import grid

WALL = "#"


class MazeLevel(NamedTuple):
    """The interior of a maze; the border of walls around it is understood.

    Tiles are numbered row by row: `loc = y · width + x`, x growing right and y down. Start and goal differ, and neither
    is on a wall.
    """

    walls: Bool[Array, "h w"]
    agent: Int32[Array, ""]
    goal: Int32[Array, ""]
    direction: Int32[Array, ""]  # 0 right, 1 down, 2 left, 3 up


def make_level(walls: Bool[Array, "h w"], agent: Array | int, goal: Array | int, direction: Array | int) -> MazeLevel:
    """A level with every leaf in its proper type."""
    return MazeLevel(jnp.asarray(walls, bool), *(jnp.asarray(v, jnp.int32) for v in (agent, goal, direction)))


def level_from_rows(rows: Sequence[str], direction: int = 0) -> MazeLevel:
    """Reads one `S`, one `G`, and `#` for walls; everything else is floor."""
    walls, agent, goal = grid.read_rows(rows, WALL)
    return make_level(jnp.asarray(walls), agent, goal, direction)


def level_to_rows(level: MazeLevel) -> list[str]:
    """The interior, one string a row."""
    return grid.write_rows(level.walls, level.agent, level.goal, WALL)


def random_direction(key: Key[Array, ""]) -> Int[Array, ""]:
    """Uniform over the four directions, from two random bits."""
    return (random.bits(key) >> 30).astype(jnp.int32)
