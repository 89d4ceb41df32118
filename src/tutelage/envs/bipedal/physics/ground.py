"""The one place where terrain is read: a few cells of it at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage.envs.bipedal.physics.body import Num
from tutelage.envs.bipedal.terrain import CELL, CELLS, Terrain

EDGES = CELLS - 1  # the last vertex begins none


class Cells(NamedTuple):
    """Some cells of a terrain: the edge over each, and the rectangle that covers it, if any."""

    x1: Num
    y1: Num
    x2: Num
    y2: Num
    left: Num
    right: Num
    top: Num
    bottom: Num
    box: Int[Array, "..."]  # the rectangle's number, −1 for none
    box_again: Bool[Array, "..."]  # the cell before has the same rectangle


Look = Callable[[Int[Array, "..."]], Cells]
Tiles = Float[Array, "200 8"]  # x, y, the four sides of the rectangle, its number, whether the last cell has it too


def paved(terrain: Terrain) -> Tiles:
    """The terrain cell by cell, as it is read."""
    number = terrain.box_id
    again = (number == jnp.roll(number, 1)).at[0].set(False)
    return jnp.stack([terrain.x, terrain.y, *terrain.box.T, number, again], axis=-1, dtype=jnp.float32)


def unpaved(tiles: Tiles) -> Terrain:
    """The terrain again."""
    return Terrain(tiles[:, 0], tiles[:, 1], tiles[:, 2:6], tiles[:, 6].astype(jnp.int32))


class Ground(NamedTuple):
    """The terrains of many walkers, and which of them each is on."""

    tiles: Float[Array, "terrains 200 8"]
    place: Int[Array, " n"]

    def __call__(self, cell: Int[Array, "... n"]) -> Cells:
        """The cells numbered `cell`, 0 … 198."""
        at = jnp.broadcast_to(self.place, cell.shape)

        def read(cell: Array, column: int) -> Array:
            return self.tiles.at[at, cell, column].get(mode="promise_in_bounds")

        x, y, left, right, top, bottom, number, again = (read(cell, k) for k in range(8))
        ends = (x, y, read(cell + 1, 0), read(cell + 1, 1))
        return Cells(*ends, left, right, top, bottom, number.astype(jnp.int32), again > 0)


def first_cell(x: Float[Array, "..."], cells: int) -> Int[Array, "..."]:
    """Where a window of `cells` cells begins that holds all that lies right of x, and one cell more."""
    at = jnp.floor((x - 0.02) * (1 / CELL)).astype(jnp.int32) - 1
    return jnp.clip(at, 0, EDGES - cells)
