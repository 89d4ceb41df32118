"""A lava level: its lava, where the student starts, where the goal is; and the same as rows of characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

SIDE = 7
TILES = SIDE * SIDE

LAVA, FLOOR, START, GOAL = "L", ".", "S", "G"


class LavaLevel(NamedTuple):
    """A lit room of 7×7 tiles in solid stone.

    Tiles are numbered row by row: `loc = 7·y + x`, x growing east and y south. Start and goal differ, and neither is
    lava.
    """

    lava: Bool[Array, "7 7"]
    agent: Int32[Array, ""]
    goal: Int32[Array, ""]


def make_level(lava: Bool[Array, "7 7"], agent: Array | int, goal: Array | int) -> LavaLevel:
    """A level with every leaf in its proper type."""
    return LavaLevel(jnp.asarray(lava, bool), jnp.asarray(agent, jnp.int32), jnp.asarray(goal, jnp.int32))


def level_from_rows(rows: Sequence[str]) -> LavaLevel:
    """Reads one `S`, one `G`, and `L` for lava; everything else is floor."""
    text = np.array([list(row) for row in rows])
    agent, goal = (int(np.flatnonzero(text == mark)[0]) for mark in (START, GOAL))
    return make_level(jnp.asarray(text == LAVA), agent, goal)


def level_to_rows(level: LavaLevel) -> list[str]:
    """The room, one string a row."""
    text = np.where(np.asarray(level.lava), LAVA, FLOOR)
    text.flat[int(level.agent)] = START
    text.flat[int(level.goal)] = GOAL
    return ["".join(row) for row in text]
