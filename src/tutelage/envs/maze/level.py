"""A maze level: its walls, where the student starts, where the goal is; and the same as rows of characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Bool, Int, Int32, Key

WALL, FLOOR, START, GOAL = "#", ".", "S", "G"


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
    text = np.array([list(row) for row in rows])
    agent, goal = (int(np.flatnonzero(text == mark)[0]) for mark in (START, GOAL))
    return make_level(jnp.asarray(text == WALL), agent, goal, direction)


def level_to_rows(level: MazeLevel) -> list[str]:
    """The interior, one string a row."""
    text = np.where(np.asarray(level.walls), WALL, FLOOR)
    text.flat[int(level.agent)] = START
    text.flat[int(level.goal)] = GOAL
    return ["".join(row) for row in text]


def random_tile(key: Key[Array, ""], among: Bool[Array, " tiles"]) -> Int[Array, ""]:
    """A uniformly random true tile of `among`, of which there must be one."""
    rank = jnp.cumsum(among)
    return jnp.argmax(rank > random.randint(key, (), 0, rank[-1])).astype(jnp.int32)


def random_direction(key: Key[Array, ""]) -> Int[Array, ""]:
    """Uniform over the four directions, from two random bits."""
    return (random.bits(key) >> 30).astype(jnp.int32)
