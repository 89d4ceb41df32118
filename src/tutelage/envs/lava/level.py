"""A lava level: its lava, where the student starts, where the goal is; and the same as rows of characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from tutelage.envs import grid

SIDE = 7
TILES = SIDE * SIDE

LAVA = "L"


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
    lava, agent, goal = grid.read_rows(rows, LAVA)
    return make_level(jnp.asarray(lava), agent, goal)


def level_to_rows(level: LavaLevel) -> list[str]:
    """The room, one string a row."""
    return grid.write_rows(level.lava, level.agent, level.goal, LAVA)
