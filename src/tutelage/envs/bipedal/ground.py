"""The one place where terrain is read: a few cells of it at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage.envs.bipedal.body import Num
from tutelage.envs.bipedal.terrain import Terrain

CELL = 14 / 30  # metres
CELLS = 199  # edges; the last vertex begins none


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


def look(terrain: Terrain, cell: Int[Array, "..."]) -> Cells:
    """The cells numbered `cell`, 0 … 198."""
    left, right, top, bottom = (terrain.box[cell, k] for k in range(4))
    number = terrain.box_id[cell]
    again = (number == terrain.box_id[jnp.maximum(cell - 1, 0)]) & (cell > 0)
    ends = (terrain.x[cell], terrain.y[cell], terrain.x[cell + 1], terrain.y[cell + 1])
    return Cells(*ends, left, right, top, bottom, number, again)


class Ground(NamedTuple):
    """The terrains of many environments, one a lane."""

    terrain: Terrain  # [environments, …]
    lane: Int[Array, " lanes"]

    def __call__(self, cell: Int[Array, "... lanes"]) -> Cells:
        """The cells numbered `cell`, 0 … 198."""
        at = jnp.broadcast_to(self.lane, cell.shape)

        def read(values: Array, *place: Array | int) -> Array:
            return values.at[(at, *place)].get(mode="promise_in_bounds")

        x, y, box, number = self.terrain
        here, before = read(number, cell), read(number, jnp.maximum(cell - 1, 0))
        left, right, top, bottom = (read(box, cell, k) for k in range(4))
        ends = (read(x, cell), read(y, cell), read(x, cell + 1), read(y, cell + 1))
        return Cells(*ends, left, right, top, bottom, here, (here == before) & (cell > 0))


def first_cell(x: Float[Array, "..."], cells: int) -> Int[Array, "..."]:
    """Where a window of `cells` cells begins that holds all that lies right of x, and one cell more."""
    at = jnp.floor((x - 0.02) * (1 / CELL)).astype(jnp.int32) - 1
    return jnp.clip(at, 0, CELLS - cells)
