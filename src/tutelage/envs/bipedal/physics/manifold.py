"""Where a body and a piece of ground touch: Box2D's contact manifolds, two points at most.

One of the two shapes lends a side as *reference*; the facing side of the other is clipped to it. Which side, which
points, and the names (*features*) by which a point is known again in the next step are Box2D's.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from tutelage.envs.bipedal.physics.body import SKIN, Num, Polygon
from tutelage.envs.bipedal.physics.machine import fence
from tutelage.envs.bipedal.physics.tools import choose, first_best, where

FACE_A, FACE_B = 64, 128  # bits of a feature; below them the index in A, and 8 × the index in B


class Manifold(NamedTuple):
    """A contact as it is in the world. The ground is Box2D's shape A, the body shape B."""

    on: tuple[Bool[Array, "..."], ...]  # which of the two points there are
    x: tuple[Num, ...]  # the clipped corners
    y: tuple[Num, ...]
    feature: tuple[Int[Array, "..."], ...]
    normal_x: Num  # of the reference side, outwards
    normal_y: Num
    plane_x: Num  # a point of the reference side
    plane_y: Num
    by_body: Bool[Array, "..."]  # the reference side is the body's
    depth: Num  # the smaller distance of the two points to the reference side; infinite without contact


class _Corner(NamedTuple):
    x: Num
    y: Num
    feature: Int[Array, "..."]


class _Side(NamedTuple):
    """A reference side from (x1, y1) to (x2, y2), whose corners have the numbers i1 and i2."""

    x1: Num
    y1: Num
    x2: Num
    y2: Num
    i1: Int[Array, "..."]
    i2: Int[Array, "..."]
    normal_x: Num
    normal_y: Num


def with_edge(body: Polygon, x1: Num, y1: Num, x2: Num, y2: Num) -> Manifold:
    """The contact with an edge that collides on both sides; on which is decided by the body's centre."""
    dx, dy = x2 - x1, y2 - y1
    length = jnp.sqrt(dx * dx + dy * dy)
    nx, ny = dy / length, -dx / length
    front = nx * (body.centre_x - x1) + ny * (body.centre_y - y1) >= 0
    nx, ny = jnp.where(front, nx, -nx), jnp.where(front, ny, -ny)
    edge_gap = _least([nx * (px - x1) + ny * (py - y1) for px, py in zip(body.x, body.y, strict=True)])
    body_gap, face = first_best(
        [
            jnp.minimum(mx * (x1 - px) + my * (y1 - py), mx * (x2 - px) + my * (y2 - py))
            for px, py, mx, my in zip(*body[:4], strict=True)
        ]
    )
    nx, ny, front, edge_gap, body_gap, face = fence((nx, ny, front, edge_gap, body_gap, face))
    by_body = body_gap > 0.98 * edge_gap + 0.001
    x_from, y_from, x_to, y_to = where(front, (x1, y1, x2, y2), (x2, y2, x1, y1))
    of_edge = _Side(x_from, y_from, x_to, y_to, jnp.where(front, 0, 1), jnp.where(front, 1, 0), nx, ny)
    ends = (_Corner(x1, y1, 8 * face + FACE_B), _Corner(x2, y2, 8 * face + FACE_B))
    side = where(by_body, _side(body, face), of_edge)
    facing = where(by_body, ends, _facing_side(body, nx, ny, FACE_A))
    near = (edge_gap <= SKIN) & (body_gap <= SKIN)
    return _clipped(side, facing, by_body, near, 0.0)


def with_box(body: Polygon, left: Num, right: Num, top: Num, bottom: Num) -> Manifold:
    """The contact with an upright rectangle."""
    box = box_polygon(left, right, top, bottom)
    box_gap, box_face = first_best(
        [_least(body.x) - right, _least(body.y) - top, left - _most(body.x), bottom - _most(body.y)]
    )
    body_gap, body_face = first_best(
        [
            mx * (jnp.where(mx > 0, left, right) - px) + my * (jnp.where(my > 0, bottom, top) - py)
            for px, py, mx, my in zip(*body[:4], strict=True)
        ]
    )
    box_gap, box_face, body_gap, body_face = fence((box_gap, box_face, body_gap, body_face))
    by_body = body_gap > 0.98 * box_gap + 0.001
    of_box, of_body = fence((_side(box, box_face), _side(body, body_face)))
    side = where(by_body, of_body, of_box)
    facing = where(
        by_body,
        _facing_side(box, of_body.normal_x, of_body.normal_y, FACE_A + body_face),
        _facing_side(body, of_box.normal_x, of_box.normal_y, FACE_A + box_face),
    )
    near = (box_gap <= SKIN) & (body_gap <= SKIN) & (left < right)
    return _clipped(side, facing, by_body, near, SKIN)


def box_polygon(left: Num, right: Num, top: Num, bottom: Num) -> Polygon:
    """A rectangle of the ground, its corners from the lower right one on."""
    one, none = jnp.ones_like(left), jnp.zeros_like(left)
    return Polygon(
        (right, right, left, left),
        (bottom, top, top, bottom),
        (one, none, -one, none),
        (none, one, none, -one),
        0.5 * (left + right),
        0.5 * (top + bottom),
    )


def _clipped(
    side: _Side, facing: tuple[_Corner, _Corner], by_body: Bool[Array, "..."], near: Bool[Array, "..."], beyond: float
) -> Manifold:
    """The facing side, cut off `beyond` the ends of the reference side; what is left within the skin touches."""
    side, facing = fence((side, facing))
    tx, ty = -side.normal_y, side.normal_x
    low = tx * side.x1 + ty * side.y1 - beyond
    high = tx * side.x2 + ty * side.y2 + beyond
    facing, whole = fence(_cut(facing, -tx, -ty, -low, side.i1))
    facing, still_whole = fence(_cut(facing, tx, ty, high, side.i2))
    depths = [side.normal_x * (p.x - side.x1) + side.normal_y * (p.y - side.y1) for p in facing]
    a, b = (near & whole & still_whole & (depth <= SKIN) for depth in depths)
    return Manifold(
        on=(a, b),
        x=(facing[0].x, facing[1].x),
        y=(facing[0].y, facing[1].y),
        feature=tuple(jnp.where(by_body, _swapped(p.feature), p.feature) for p in facing),
        normal_x=side.normal_x,
        normal_y=side.normal_y,
        plane_x=side.x1,
        plane_y=side.y1,
        by_body=by_body,
        depth=jnp.minimum(jnp.where(a, depths[0], jnp.inf), jnp.where(b, depths[1], jnp.inf)),
    )


def _cut(
    points: tuple[_Corner, _Corner], nx: Num, ny: Num, offset: Num, corner: Int[Array, "..."]
) -> tuple[tuple[_Corner, _Corner], Bool[Array, "..."]]:
    """The part of a segment behind the line n·p = offset, in Box2D's order, and whether two points are left of it."""
    a, b = points
    over_a, over_b = nx * a.x + ny * a.y - offset, nx * b.x + ny * b.y - offset
    in_a, in_b, crosses = over_a <= 0, over_b <= 0, over_a * over_b < 0
    share = over_a / jnp.where(crosses, over_a - over_b, 1.0)
    between = _Corner(a.x + share * (b.x - a.x), a.y + share * (b.y - a.y), corner + (a.feature & 56) + FACE_B)
    left = (where(in_a, a, b), where(in_a & in_b, b, between))
    return left, (in_a & in_b) | crosses


def _side(shape: Polygon, k: Int[Array, "..."]) -> _Side:
    def after(values: tuple[Num, ...]) -> tuple[Num, ...]:
        return values[1:] + values[:1]

    corners = (choose(k, shape.x), choose(k, shape.y), choose(k, after(shape.x)), choose(k, after(shape.y)))
    return _Side(*corners, k, _next(shape, k), choose(k, shape.normal_x), choose(k, shape.normal_y))


def _next(shape: Polygon, k: Int[Array, "..."]) -> Int[Array, "..."]:
    return jnp.where(k == len(shape.x) - 1, 0, k + 1)


def _facing_side(shape: Polygon, nx: Num, ny: Num, reference: Int[Array, "..."] | int) -> tuple[_Corner, _Corner]:
    """The corners of the side most opposed to a reference normal."""
    _, k = first_best([-(nx * mx + ny * my) for mx, my in zip(shape.normal_x, shape.normal_y, strict=True)])
    side = _side(shape, k)
    return (
        _Corner(side.x1, side.y1, reference + 8 * side.i1),
        _Corner(side.x2, side.y2, reference + 8 * side.i2),
    )


def _swapped(feature: Int[Array, "..."]) -> Int[Array, "..."]:
    """The feature with A and B exchanged."""
    return (feature & 7) * 8 + (feature >> 3 & 7) + (feature & FACE_A) * 2 + (feature & FACE_B) // 2


def _least(values: list[Num] | tuple[Num, ...]) -> Num:
    out = values[0]
    for value in values[1:]:
        out = jnp.minimum(out, value)
    return out


def _most(values: tuple[Num, ...]) -> Num:
    return -_least([-value for value in values])
