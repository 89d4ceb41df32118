"""Which leg bodies are near which pieces of ground: a quick look, so that few pairs need a close one.

Every pair of a leg body and a piece of ground around it is a candidate: `[body, cell, …]` for the cells' edges, and as
many for their rectangles. Of these 64, one or two are near. They get a code each, 512 · body + 256 · kind + cell, kind
0 for edges and 1 for rectangles, in the order in which Box2D visits contacts, since what solvers find depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int

from tutelage.envs.bipedal.physics.body import HALF_LENGTH, HALF_WIDTH, LEGS, SKIN, Body, Num, Pose, cos_sin, unturn
from tutelage.envs.bipedal.physics.ground import Cells, Look, first_cell
from tutelage.envs.bipedal.physics.machine import fence, if_any, machine
from tutelage.envs.bipedal.physics.tools import choose, index, spread

WINDOW = 8  # cells around a body: its length and a step's movement fit in
AXIS = 8  # contacts that there may be; more are near in one of 10⁵ steps of random walkers
NOTHING = 2048  # after all codes
HALF_DIAGONAL = math.hypot(HALF_LENGTH, HALF_WIDTH[0])
CLOSE = SKIN + 1e-4  # metres, more than rounding could change

Legs = Sequence[Pose | Body]
Near = tuple[Bool[Array, "4 8 ..."], Bool[Array, "4 8 ..."]]  # of the cells' edges, and of their rectangles


class Surveyed(NamedTuple):
    """What is around each leg body."""

    first: Int[Array, "4 ..."]  # of its window's cells
    cells: Cells  # fields `[4, 8, …]`

    @property
    def number(self) -> Int[Array, "4 8 ..."]:
        """The number of each cell."""
        return _numbers(self.first)


def _numbers(first: Int[Array, "4 ..."]) -> Int[Array, "4 8 ..."]:
    return jnp.expand_dims(first, 1) + jnp.expand_dims(index(WINDOW, first.ndim - 1), 0)


def cells_around(legs: Legs, look: Look) -> Surveyed:
    """The cells around each leg body."""
    x = spread([leg[0] for leg in legs])
    reach = spread([jnp.abs(cos_sin(leg[2])[1]) for leg in legs]) * 0.57 + 0.14
    first = fence(first_cell(x - reach, WINDOW))
    return Surveyed(first, fence(look(_numbers(first))))


def box_again(cells: Cells) -> Bool[Array, "4 8 ..."]:
    """Whether the cell before has the same rectangle; not of a window's first, which stands for those before it."""
    return cells.box_again & (jnp.expand_dims(index(WINDOW, cells.box.ndim - 2), 0) > 0)


def touching(legs: Legs, cells: Cells) -> Near:
    """What the bodies may touch where they are."""
    body = _frame(legs)
    edges = _edges_within(body, cells, CLOSE)
    return fence((edges, _if_any(cells, lambda: _boxes_within(body, cells, CLOSE))))


def passed(start: Legs, end: Legs, cells: Cells, distance: float) -> Near:
    """What the bodies may come within a distance of on their way."""
    first, last = _frame(start), _frame(end)
    turn = last.angle - first.angle
    # Between its ends, a corner's way is higher by less than this than the straight line.
    reach = distance + 1e-4 + 0.125 * HALF_DIAGONAL * turn * turn
    edges = _edges_crossed(first, last, cells, reach)

    def boxes() -> Bool[Array, "4 8 ..."]:
        shift = (last.x - first.x, last.y - first.y)
        way = jnp.sqrt(shift[0] * shift[0] + shift[1] * shift[1]) + HALF_DIAGONAL * jnp.abs(turn)
        ground = (cells.left, cells.right, cells.bottom, cells.top)
        return _boxes_within(first, cells, reach + way) & _over_each_other(first, last, reach, *ground)

    return fence((edges, _if_any(cells, boxes)))


def _if_any(cells: Cells, boxes: Callable[[], Bool[Array, "4 8 ..."]]) -> Bool[Array, "4 8 ..."]:
    """The rectangles that are near, if there are any around."""
    there = cells.left < cells.right
    return if_any(there, lambda none: boxes() & there & ~box_again(cells), jnp.zeros_like(there))


def codes(near: Near, first: Int[Array, "4 ..."], most: int = AXIS) -> Int[Array, "most ..."]:
    """The codes of those that are near, in Box2D's order, `NOTHING` where there are no more.

    That is the right leg from below, the left from above, and of each body the newest first: rectangles are made before
    edges, both from left to right. (Box2D goes by when a body first came near, which is the same if it comes from
    above.)
    """
    right, left = (_bits(near, bodies) for bodies in ((3, 2), (0, 1)))
    slot, number = index(most, right.ndim), lax.population_count(right)
    is_right = slot < number
    place = fence(_place_of(jnp.where(is_right, right, left), jnp.where(is_right, slot, slot - number)))
    body = jnp.where(is_right, 3 - (place >> 4), place >> 4)
    cell = choose(body, machine().entries(first)) + (WINDOW - 1) - (place & 7)
    code = 512 * body + 256 * (place >> 3 & 1) + cell
    return fence(jnp.where(slot < number + lax.population_count(left), code, NOTHING))


class _Frame(NamedTuple):
    """The leg bodies as rectangles, with an axis for the cells: `[4, 1, …]`."""

    x: Num
    y: Num
    angle: Num
    cos: Num
    sin: Num
    half_width: Num

    @property
    def half(self) -> tuple[Num, Num]:
        """Half its width and half its height in the world."""
        cos, sin = jnp.abs(self.cos), jnp.abs(self.sin)
        return cos * self.half_width + sin * HALF_LENGTH, sin * self.half_width + cos * HALF_LENGTH

    def across(self, x: Num, y: Num) -> Num:
        """How far it reaches from its centre across the vector (x, y), times its length."""
        along, aside = unturn(self.cos, self.sin, x, y)
        return jnp.abs(along) * HALF_LENGTH + jnp.abs(aside) * self.half_width


def _frame(legs: Legs) -> _Frame:
    x, y, angle = (spread([leg[k] for leg in legs]) for k in range(3))
    upper = index(LEGS, x.ndim - 1) % 2 == 0
    frame = _Frame(x, y, angle, *cos_sin(angle), jnp.where(upper, *HALF_WIDTH))
    return fence(jax.tree.map(lambda v: jnp.expand_dims(v, 1), frame))


def _edges_within(body: _Frame, cells: Cells, distance: float) -> Bool[Array, "4 8 ..."]:
    """By the axes of the body and of the edge."""
    to_middle = (0.5 * (cells.x1 + cells.x2) - body.x, 0.5 * (cells.y1 + cells.y2) - body.y)
    half = (0.5 * (cells.x2 - cells.x1), 0.5 * (cells.y2 - cells.y1))
    (mx, my), (hx, hy) = (unturn(body.cos, body.sin, *v) for v in (to_middle, half))
    ax, ay, width, length = jnp.abs(hx), jnp.abs(hy), body.half_width + distance, HALF_LENGTH + distance
    near = (jnp.abs(mx) <= ax + width) & (jnp.abs(my) <= ay + length)
    return near & (jnp.abs(mx * hy - my * hx) <= ay * width + ax * length)


def _edges_crossed(first: _Frame, last: _Frame, cells: Cells, distance: Num) -> Bool[Array, "4 8 ..."]:
    """By the edge's axis: seen from the side on which a body begins, how far away it is at both ends of its way."""
    mx, my = 0.5 * (cells.x1 + cells.x2) - first.x, 0.5 * (cells.y1 + cells.y2) - first.y
    hx, hy = 0.5 * (cells.x2 - cells.x1), 0.5 * (cells.y2 - cells.y1)
    before = mx * hy - my * hx
    after = before - ((last.x - first.x) * hy - (last.y - first.y) * hx)
    gap = jnp.abs(before) - first.across(hx, hy)
    gap = jnp.minimum(gap, jnp.where(before < 0, -after, after) - last.across(hx, hy))
    low, high = jnp.minimum(cells.y1, cells.y2), jnp.maximum(cells.y1, cells.y2)
    reached = _over_each_other(first, last, distance, cells.x1, cells.x2, low, high)
    return reached & (gap <= distance * (jnp.abs(hx) + jnp.abs(hy)))


def _over_each_other(
    first: _Frame, last: _Frame, distance: Num, left: Num, right: Num, bottom: Num, top: Num
) -> Bool[Array, "4 8 ..."]:
    """By the axes of the world: whether something lies within what a body comes over on its way."""
    (ax, ay), (bx, by) = first.half, last.half
    out = (jnp.minimum(first.x - ax, last.x - bx) - distance <= right) & (
        jnp.maximum(first.x + ax, last.x + bx) + distance >= left
    )
    out &= jnp.minimum(first.y - ay, last.y - by) - distance <= top
    return out & (jnp.maximum(first.y + ay, last.y + by) + distance >= bottom)


def _boxes_within(body: _Frame, cells: Cells, distance: Num | float) -> Bool[Array, "4 8 ..."]:
    """By the axes of both."""
    dx, dy = 0.5 * (cells.left + cells.right) - body.x, 0.5 * (cells.top + cells.bottom) - body.y
    mx, my = unturn(body.cos, body.sin, dx, dy)
    cos, sin, (half_x, half_y) = jnp.abs(body.cos), jnp.abs(body.sin), body.half
    wide, high = 0.5 * (cells.right - cells.left), 0.5 * (cells.top - cells.bottom)
    near = (jnp.abs(dx) <= wide + half_x + distance) & (jnp.abs(dy) <= high + half_y + distance)
    near &= jnp.abs(mx) <= body.half_width + cos * wide + sin * high + distance
    return near & (jnp.abs(my) <= HALF_LENGTH + sin * wide + cos * high + distance)


def _bits(near: Near, bodies: tuple[int, int]) -> Int[Array, "..."]:
    """What is near two bodies, as the bits of a number: of each the edges, then the rectangles, the last cell first."""
    lanes = near[0].ndim - 2
    body, cell = index(LEGS, lanes + 1), jnp.expand_dims(index(WINDOW, lanes), 0)
    first = WINDOW - 1 - cell + jnp.where(body == bodies[1], 2 * WINDOW, 0)
    is_one = (body == bodies[0]) | (body == bodies[1])
    edges, boxes = (jnp.where(n & is_one, 1 << (first + WINDOW * kind), 0) for kind, n in enumerate(near))
    return jnp.sum(edges | boxes, axis=(0, 1), dtype=jnp.int32)


def _place_of(bits: Int[Array, "..."], n: Int[Array, "..."]) -> Int[Array, "..."]:
    """Which bit is the n-th that is set, from the lowest, which is bit 0, and n = 0 on."""
    place = jnp.zeros_like(bits)
    for half in (16, 8, 4, 2, 1):
        number = lax.population_count(bits & ((1 << half) - 1))
        beyond = n >= number
        n = jnp.where(beyond, n - number, n)
        bits = jnp.where(beyond, lax.shift_right_logical(bits, jnp.full_like(bits, half)), bits)
        place = jnp.where(beyond, place + half, place)
    return place
