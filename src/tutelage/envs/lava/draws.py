"""Where test levels come from. Each is a function from a key to the level of one episode, hashable by value."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Key

from tutelage.envs.lava.design import LavaDesign
from tutelage.envs.lava.level import SIDE, TILES, LavaLevel, make_level


@dataclass(frozen=True)
class Tiles:
    """Start and goal at random, and `lava` placements of lava, as a random teacher makes them.

    Placements may coincide or be taken back by start and goal, and nothing asks for a way.
    """

    lava: int

    def __call__(self, key: Key[Array, ""]) -> LavaLevel:
        key_locs, key_build = random.split(key)
        design = LavaDesign("uniform", self.lava)
        locs = random.randint(key_locs, (design.design_steps,), 0, TILES)
        return design.build(key_build, locs, jnp.ones(self.lava, bool))


@dataclass(frozen=True)
class Crossing:
    """MiniGrid's LavaCrossing S9N1: from corner to corner across one river of lava with one gap.

    The river is one of the three columns or three rows at odd coordinates, the gap any of its seven tiles: 42 levels.
    """

    def __call__(self, key: Key[Array, ""]) -> LavaLevel:
        number = random.randint(key, (), 0, 6 * SIDE)
        river, gap = number // SIDE, number % SIDE
        row, column = np.indices((SIDE, SIDE))
        lava = (row == 1 + 2 * (river % 3)) & (column != gap)
        return make_level(jnp.where(river < 3, lava, lava.T), 0, TILES - 1)
