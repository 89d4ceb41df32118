"""A step of many walkers as a few GPU kernels, one for each stage.

Compiled by XLA, a step is some hundred small kernels that wait for one another; at the few hundred walkers of a
training run that is all it does. Here the same functions are a dozen: every program holds a few walkers, side by side
on the last axis of all its values. One kernel for everything would save little, and takes the compiler many times as
long (see `packing`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from tutelage.envs.bipedal.physics.ground import Cells
from tutelage.envs.bipedal.physics.machine import machine
from tutelage.envs.bipedal.physics.step import World
from tutelage.envs.bipedal.run.launch import Launch, Size
from tutelage.envs.bipedal.run.moment import After, Moment, packed, unpacked
from tutelage.envs.bipedal.run.packing import Packed
from tutelage.envs.bipedal.run.stages import Stage, Table, Values, Way, sources, table

PROGRAMS = 1024  # that a GPU runs side by side about as fast as one
WAY = Way(solve=None, portions=(3,), later=(9, 48))  # iterations over positions after which most, and nearly all settle


def read_cells(tiles: Any, terrain: Int[Array, " n"], cell: Int[Array, "..."]) -> Cells:
    """`physics.ground.Ground`, in a kernel."""

    def columns(begin: int, n: int, cell: Array) -> tuple[Array, ...]:
        # No more than a thread reads at once, so that none has to ask another.
        shape = (n, *cell.shape)
        column = begin + lax.broadcasted_iota(jnp.int32, shape, 0)
        found = tiles[jnp.broadcast_to(terrain, shape), jnp.broadcast_to(cell, shape), column]
        return machine().entries(found)

    (x1, y1, left, right), (top, bottom, number, again) = columns(0, 4, cell), columns(4, 4, cell)
    x2, y2 = columns(0, 2, cell + 1)
    return Cells(x1, y1, x2, y2, left, right, top, bottom, number.astype(jnp.int32), again > 0)


# What stages ask for that is handed on with something else.
PARTS = {
    "world": Stage("world", itemgetter(0), ("given",), "world", anew=True),
    "efforts": Stage("efforts", itemgetter(1), ("given",), "efforts", anew=True),
    "look": Stage("look", lambda tiles, walker: partial(read_cells, tiles, walker), ("tiles", "walker"), "look"),
}


def step_by_kernels(
    tolerance: float,
    moment: Moment,
    action: Float[Array, "n 4"],
    tiles: Float[Array, "n 200 8"],
    *,
    walkers: int | None = None,
    interpret: bool = False,
) -> After:
    """The step of n walkers; with so many of them a program, if that is said."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    given = Packed.of((unpacked(moment), (action[0], action[1], action[2], action[3])))
    size = partial(_size, action.shape[1], walkers, interpret)
    stages = table(tolerance, WAY)
    there = _launched(stages, size, {"given": given, "tiles": tiles})
    values = Values(
        stages.anew, **{name: there[name].values() for name in sources(("push", "flight", "seen"), stages.anew)}
    )
    end, seen = values["flight"], values["seen"]
    after = After(packed(World(end.end, values["push"].joints, end.memory, end.feet, seen.fallen)), *seen)
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), after)


def _launched(stages: Table, size: Callable[[Stage], Size], there: dict[str, Any]) -> dict[str, Any]:
    """All that there is after all kernels, by name."""
    anew, made = stages.anew | PARTS, {}
    for stage in (*stages.stages, *stages.impact * stages.impacts):
        launch = Launch(stage, anew, there, size(stage), made)
        if stage.beside:
            found, beside = launch.beside(Launch(stage.beside, anew, there, size(stage.beside), made))
            there = {**there, stage.beside.writes: beside, stage.writes: found}
        elif not stage.anew:
            there = {**there, stage.writes: launch.run()}
    return there


def _size(n: int, walkers: int | None, interpret: bool, stage: Stage) -> Size:
    """How large the programs for n walkers are: few walkers are spread over the GPU, one a program; many fill its
    threads, as far as that helps. Where a program holds more than one, it waits for the slowest.
    """
    share = 1 << max(n // PROGRAMS, 1).bit_length() - 1
    return Size(walkers or min(share, stage.walkers), stage.registers if n > 2 * PROGRAMS else None, interpret)
