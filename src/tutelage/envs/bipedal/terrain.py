"""Terrain: gymnasium's normal and hardcore generators, and the parametrised one of POET and ACCEL.

All of them walk over 200 cells and alternate between stretches of grass and single obstacles. The random draws come
first, one of each sort for every cell (`drawn`); `layout` is what they make, a pure function. gymnasium's normal
terrain is the parametrised one of roughness 1 without obstacles.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.envs.bipedal.level import WalkerLevel

Rules = Literal["parametrised", "poet", "hardcore"]
"""Whose obstacles: those that genes describe, where the stretch of a stump stays flat to its end (parametrised) or ends
with the stump (poet); or gymnasium's hardcore ones, whatever the genes."""

CELLS = 200
CELL = 14 / 30  # m, the width of a cell
HEIGHT = 400 / 30 / 4  # m, where the terrain begins
START_PAD = 20  # cells without obstacles or bumps
FINISH = (CELLS - 10) * CELL  # m
BUMP = 1 / 30  # m, the largest change of slope at a cell
STAIR_WIDTH = 4  # cells
PIT_DEPTH = 4  # cells
LOWEST_STAIR = 0.01  # cells; one of no more height has no blocks
LOWEST_STUMP = 1e-3  # cells; one of less height has none either
MAX_FORCE = 5.0  # N

GRASS, STUMP, STAIRS, PIT = range(4)
KIND_THRESHOLDS = np.array(
    [0.2, 0.2, 0.8]
)  # of stump height, stair height, pit gap: there is none if the high end is less

_NODES = np.arange(CELLS + 64) * CELL  # where cells begin, on beyond the last, as obstacles may go on there


class Terrain(NamedTuple):
    """What the physics reads: a line of 200 vertices, and rectangles on it.

    Cell j is the strip from x = j·s to (j + 1)·s, s = 14/30 m. Vertex j stands where it begins, except for the last
    vertex of a pit, which is moved left by less than s, to the far edge of the pit's right block. No cell meets more
    than one rectangle. Rectangles beyond cell 199, which no walker reaches, are left out.
    """

    x: Float[Array, "200"]
    y: Float[Array, "200"]
    box: Float[
        Array, "200 4"
    ]  # left, right, top, bottom of the rectangle in this cell; left > right where there is none
    box_id: Int[Array, "200"]  # the first cell of that rectangle; -1 where there is none


class Draws(NamedTuple):
    """One of each for every cell. `bump` counts in grass, the others where a new stretch begins."""

    bump: Float[Array, "200"]  # -1 … 1
    length: Int[Array, "200"]  # of the stretch in cells, where its kind leaves it open
    kind: Int[Array, "200"]  # of the obstacle, if it is one's turn: STUMP, STAIRS, PIT, or GRASS if there are none
    size: Float[Array, "200"]  # in cells: height of the stump, height of a stair's step, opening of the pit
    width: Int[Array, "200"]  # of the stump in cells
    slope: Int[Array, "200"]  # of the stairs: 1 up, -1 down
    steps: Int[Array, "200"]  # of the stairs


def build(level: WalkerLevel, rules: Rules) -> tuple[Terrain, Float[Array, ""]]:
    """The level's terrain, and the force in N, left or right, that pushes the walker in its first step."""
    key_draws, key_force = random.split(random.key(level.seed))
    force = random.uniform(key_force, minval=-MAX_FORCE, maxval=MAX_FORCE)
    if rules == "hardcore":
        return layout(drawn_hardcore(key_draws), jnp.ones(()), rules), force
    return layout(drawn(key_draws, level.genes), level.genes[0], rules), force


def kinds(genes: Float[Array, "8"]) -> Bool[Array, "3"]:
    """Which obstacles there are: stumps, stairs, pits."""
    return genes[jnp.array([4, 6, 2])] >= KIND_THRESHOLDS


def drawn(key: Key[Array, ""], genes: Float[Array, "8"]) -> Draws:
    """The draws of the parametrised generator."""
    keys = random.split(key, 6)
    there = kinds(genes)
    turn = jnp.floor(random.uniform(keys[0], (CELLS,)) * there.sum())
    kind = 1 + jnp.searchsorted(jnp.cumsum(there), turn, side="right")
    kind = jnp.where(there.any(), kind, GRASS)
    low, high = genes[jnp.array([[0, 3, 5, 1], [0, 4, 6, 2]])][:, kind]
    steps = jnp.floor(random.uniform(keys[1], (CELLS,)) * genes[7])
    return Draws(
        bump=random.uniform(keys[2], (CELLS,), minval=-1.0),
        length=_stretches(keys[3]),
        kind=kind.astype(jnp.int32),
        size=low + (high - low) * random.uniform(keys[4], (CELLS,)),
        width=jnp.ones(CELLS, jnp.int32),
        slope=_either(keys[5], -1, 1),
        steps=steps.astype(jnp.int32),
    )


def drawn_hardcore(key: Key[Array, ""]) -> Draws:
    """The draws of gymnasium's hardcore generator."""
    keys = random.split(key, 6)
    kind = random.randint(keys[0], (CELLS,), STUMP, PIT + 1)
    thick, wide = _either(keys[1], 1, 2), _either(keys[1], 2, 3)
    return Draws(
        bump=random.uniform(keys[2], (CELLS,), minval=-1.0),
        length=_stretches(keys[3]),
        kind=kind,
        size=jnp.where(kind == STUMP, thick, jnp.where(kind == PIT, wide, 1)).astype(jnp.float32),
        width=thick,
        slope=_either(keys[4], -1, 1),
        steps=_either(keys[5], 3, 4),
    )


def _stretches(key: Key[Array, ""]) -> Int[Array, "200"]:
    return random.randint(key, (CELLS,), 5, 10)


def _either(key: Key[Array, ""], a: int, b: int) -> Int[Array, "200"]:
    return jnp.where(random.bernoulli(key, shape=(CELLS,)), a, b)


class _Stretch(NamedTuple):
    """Where the generator stands: in which stretch, how far, at what height."""

    kind: Int[Array, ""]
    first: Int[Array, ""]  # cell
    left: Int[Array, ""]  # cells, this one included
    base: Float[Array, ""]  # height at the first cell
    y: Float[Array, ""]
    velocity: Float[Array, ""]  # of y, a cell
    plan: Draws  # of the first cell


def layout(draws: Draws, roughness: Float[Array, ""], rules: Rules) -> Terrain:
    """The terrain that draws make."""

    def cell(at: _Stretch, inputs: tuple[Int[Array, ""], Draws, Int[Array, ""]]) -> tuple[_Stretch, _Stretch]:
        i, here, span = inputs
        new = at.left == 0
        at = jax.tree.map(lambda a, b: jnp.where(new, a, b), _next_stretch(at, i, here, span), at)
        rolled = _rolled(at, roughness, jnp.where(i > START_PAD, here.bump, 0.0))
        at = jax.tree.map(lambda a, b: jnp.where(~new & (at.kind == GRASS), a, b), rolled, at)
        at = at._replace(y=jnp.where(new, at.y, _under_obstacle(at, rules)))
        return at._replace(left=at.left - 1), at

    index = jnp.arange(CELLS, dtype=jnp.int32)
    height = jnp.asarray(HEIGHT, draws.bump.dtype)
    grass, zero, pad = (jnp.int32(n) for n in (GRASS, 0, START_PAD))
    begin = _Stretch(grass, zero, pad, height, height, jnp.zeros_like(height), jax.tree.map(lambda x: x[0], draws))
    cells = lax.scan(cell, begin, (index, draws, _spans(draws, rules)))[1]
    return Terrain(_vertices(cells), cells.y, *_rectangles(cells, rules))


def _spans(draws: Draws, rules: Rules) -> Int[Array, "200"]:
    """How many cells an obstacle takes."""
    stump = draws.length if rules == "parametrised" else draws.width
    stairs = STAIR_WIDTH * draws.steps
    if rules != "hardcore":
        stairs = jnp.where(draws.size > LOWEST_STAIR, stairs + 1, draws.length)
    pit = _pit(draws)[1] + 2
    return jnp.select([draws.kind == STUMP, draws.kind == STAIRS], [stump, stairs], pit)


def _pit(plan: Draws) -> tuple[Float[Array, "..."], Int[Array, "..."]]:
    """Cells from the left to the right block of a pit, and the same rounded up."""
    way = 1 + plan.size
    return way, jnp.ceil(way).astype(jnp.int32)


def _next_stretch(at: _Stretch, i: Int[Array, ""], here: Draws, span: Int[Array, ""]) -> _Stretch:
    """What begins at cell i: an obstacle after grass, grass after an obstacle."""
    kind = jnp.where(at.kind == GRASS, here.kind, GRASS)
    left = jnp.where(kind == GRASS, here.length, span)
    return _Stretch(kind, i, left, at.y, at.y, at.velocity, here)


def _rolled(at: _Stretch, roughness: Float[Array, ""], bump: Float[Array, ""]) -> _Stretch:
    """One cell on over grass: its slope decays, is pulled back to the first height, and changed by the bump."""
    velocity = 0.8 * at.velocity + 0.01 * jnp.sign(HEIGHT - at.y) + bump * BUMP
    return at._replace(velocity=velocity, y=at.y + roughness * velocity)


def _under_obstacle(at: _Stretch, rules: Rules) -> Float[Array, ""]:
    """The height of the ground below an obstacle, after its first cell."""
    bottom = jnp.where(at.left > 1, at.base - PIT_DEPTH * CELL, at.base)
    return jnp.where(at.kind == STAIRS, _under_stairs(at, rules), jnp.where(at.kind == PIT, bottom, at.y))


def _under_stairs(at: _Stretch, rules: Rules) -> Float[Array, ""]:
    """A ramp in the hardcore rules, steps in the others."""
    height, slope = at.plan.size, at.plan.slope
    behind = STAIR_WIDTH * at.plan.steps - at.left
    if rules == "hardcore":
        return at.base + ((behind - slope).astype(height.dtype) / STAIR_WIDTH * slope) * CELL
    down = jnp.where(slope == -1, height, 0.0)
    return at.base + (behind // STAIR_WIDTH * height * slope) * CELL - down * CELL


def _vertices(cells: _Stretch) -> Float[Array, "200"]:
    """The last vertex of a pit meets its right block's far edge."""
    way, rounded = _pit(cells.plan)
    last = (cells.kind == PIT) & (_offset(cells) == rounded + 1)
    return jnp.asarray(_NODES[:CELLS], way.dtype) - jnp.where(last, (rounded - way) * CELL, 0.0)


def _offset(cells: _Stretch) -> Int[Array, "200"]:
    """How many cells of its stretch are before each."""
    return jnp.arange(CELLS, dtype=jnp.int32) - cells.first


class _Blocks(NamedTuple):
    """Rectangles of one kind of obstacle, cell by cell."""

    there: Bool[Array, "200"]
    sides: tuple[Float[Array, "200"], ...]  # left, right, top, bottom
    first: Int[Array, "200"]  # the first cell of the rectangle


def _rectangles(cells: _Stretch, rules: Rules) -> tuple[Float[Array, "200 4"], Int[Array, "200"]]:
    blocks = _stumps(cells), _stairs(cells, rules), _pits(cells)
    there = [b.there for b in blocks]
    nowhere = (1.0, 0.0, 0.0, 0.0)
    box = [jnp.select(there, sides, none) for *sides, none in zip(*(b.sides for b in blocks), nowhere, strict=True)]
    return jnp.stack(box, axis=1), jnp.select(there, [b.first for b in blocks], -1)


def _stumps(cells: _Stretch) -> _Blocks:
    plan, first, ground = cells.plan, cells.first, cells.base
    there = (cells.kind == STUMP) & (_offset(cells) < plan.width) & (plan.size >= LOWEST_STUMP)
    return _Blocks(
        there, (_node(cells, first), _node(cells, first + plan.width), ground + plan.size * CELL, ground), first
    )


def _stairs(cells: _Stretch, rules: Rules) -> _Blocks:
    plan, step = cells.plan, _offset(cells) // STAIR_WIDTH
    there = (cells.kind == STAIRS) & (step < plan.steps)
    if rules != "hardcore":
        there &= plan.size > LOWEST_STAIR
    first = cells.first + STAIR_WIDTH * step
    top = cells.base + (step * plan.size * plan.slope) * CELL
    sides = _node(cells, first), _node(cells, first + STAIR_WIDTH), top, top - plan.size * CELL
    return _Blocks(there, sides, first)


def _pits(cells: _Stretch) -> _Blocks:
    """A block of one cell on either side; the right one may begin within a cell and then lies in two."""
    way, rounded = _pit(cells.plan)
    offset, within = _offset(cells), rounded > way
    there = (offset == 0) | (offset == rounded) | (within & (offset == rounded - 1))
    beyond = jnp.where(offset == 0, 0, rounded)
    back = jnp.where(offset == 0, 0.0, (rounded - way) * CELL)
    left, right = (_node(cells, cells.first + beyond + end) - back for end in (0, 1))
    first = cells.first + jnp.where(offset == 0, 0, rounded - within)
    return _Blocks((cells.kind == PIT) & there, (left, right, cells.base, cells.base - PIT_DEPTH * CELL), first)


def _node(cells: _Stretch, index: Int[Array, "200"]) -> Float[Array, "200"]:
    return jnp.asarray(_NODES, cells.base.dtype)[index]
