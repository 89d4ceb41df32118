"""The walker: its five bodies, their shapes and masses, and the four joints between them.

All lengths in metres, masses in kilogrammes. Poses are those of the centres of mass. The numbers follow from
gymnasium's drawing units (30 to the metre) and Box2D's formulas for the mass of a polygon.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Num = Float[Array, "..."]

SCALE = 30.0
SECONDS = 0.02  # seconds a step
GRAVITY = -10.0
TORQUE = 80.0
SKIN = 0.02  # of two shapes together: they collide this far before they touch
SLOP = 0.005
ANGULAR_SLOP = 0.034906585  # 2°
FRICTION = 0.70710678  # of a leg on the ground: √(0.2 · 2.5)

HULL, UPPER_LEFT, LOWER_LEFT, UPPER_RIGHT, LOWER_RIGHT = range(5)
LEGS = 4  # the bodies 1 … 4; the uneven ones are upper, the even ones lower legs

HULL_SHAPE = ((34 / 30, -8 / 30), (34 / 30, 1 / 30), (6 / 30, 9 / 30), (-1.0, 9 / 30), (-1.0, -8 / 30))
HULL_CENTRE = (-0.02003640, -0.00564664)  # of mass, seen from the hull's origin
HALF_LENGTH = 17 / 30  # of all leg bodies
HALF_WIDTH = (4 / 30, 3.2 / 30)  # of an upper, of a lower leg

MASS = (5.4222226, 0.30222222, 0.24177778, 0.30222222, 0.24177778)
INERTIA = (1.9993951, 0.03413992, 0.02679614, 0.03413992, 0.02679614)
INVERSE_MASS = tuple(1 / m for m in MASS)
INVERSE_INERTIA = tuple(1 / i for i in INERTIA)


class Joint(NamedTuple):
    """A hinge between two bodies; anchors are seen from the centres of mass, angles relative to `reference`."""

    a: int
    b: int
    anchor_a: tuple[float, float]
    anchor_b: tuple[float, float]
    lower: float
    upper: float
    reference: float
    speed: float  # of its motor at full action


def _hip(upper: int, reference: float) -> Joint:
    anchor = (-HULL_CENTRE[0], -8 / 30 - HULL_CENTRE[1])
    return Joint(HULL, upper, anchor, (0.0, HALF_LENGTH), -0.8, 1.1, reference, 4.0)


def _knee(upper: int) -> Joint:
    return Joint(upper, upper + 1, (0.0, -HALF_LENGTH), (0.0, HALF_LENGTH), -1.6, -0.1, 0.0, 6.0)


# The legs are made leaning 0.05 rad to either side, and Box2D's Python layer takes the angle at birth as zero.
JOINTS = (_hip(UPPER_LEFT, -0.05), _knee(UPPER_LEFT), _hip(UPPER_RIGHT, 0.05), _knee(UPPER_RIGHT))
SOLVING_ORDER = (3, 2, 0, 1)  # in which Box2D's island visits the joints


class Body(NamedTuple):
    """Where a body is and how it moves."""

    x: Num
    y: Num
    angle: Num
    vx: Num
    vy: Num
    spin: Num


Pose = tuple[Num, ...]  # x, y, angle of a centre of mass
Bodies = tuple[Body, ...]  # five: hull, upper and lower left leg, upper and lower right leg


class Polygon(NamedTuple):
    """A convex polygon in the world, corners counter-clockwise; side k runs from corner k to the next."""

    x: tuple[Num, ...]
    y: tuple[Num, ...]
    normal_x: tuple[Num, ...]
    normal_y: tuple[Num, ...]
    centre_x: Num
    centre_y: Num


def small_cos_sin(angle: Num) -> tuple[Num, Num]:
    """Cosine and sine of angles of at most an eighth of a turn."""
    z = angle * angle
    sin = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * angle + angle
    cos = ((2.443315711810e-5 * z - 1.388731625494e-3) * z + 4.166664568299e-2) * z * z - 0.5 * z + 1.0
    return cos, sin


def cos_sin(angle: Num) -> tuple[Num, Num]:
    """Cosine and sine, to float rounding for the angles of a walker, which are not thousands of turns.

    The rest after whole quarter turns, π/2 taken off in three parts, goes into two polynomials. That is a fraction of
    the work of the general functions, of which a step needs hundreds in a row.
    """
    quarters = jnp.floor(angle * (2 / jnp.pi) + 0.5)
    r = ((angle - quarters * 1.5703125) - quarters * 4.8375129699707e-4) - quarters * 7.54978995489e-8
    cos, sin = small_cos_sin(r)
    turns = quarters.astype(jnp.int32) & 3
    crossed = (turns & 1) == 1
    cos, sin = jnp.where(crossed, sin, cos), jnp.where(crossed, cos, sin)
    return jnp.where((turns == 1) | (turns == 2), -cos, cos), jnp.where(turns >= 2, -sin, sin)


def turn(cos: Num, sin: Num, x: Num | float, y: Num | float) -> tuple[Num, Num]:
    """The vector (x, y), rotated."""
    return cos * x - sin * y, sin * x + cos * y


def unturn(cos: Num, sin: Num, x: Num, y: Num) -> tuple[Num, Num]:
    """The vector (x, y), rotated back."""
    return cos * x + sin * y, cos * y - sin * x


def leg_polygon(x: Num, y: Num, angle: Num, half_width: Num) -> Polygon:
    """A leg body as Box2D's box."""
    cos, sin = cos_sin(angle)
    right_x, right_y = cos * half_width, sin * half_width
    up_x, up_y = -sin * HALF_LENGTH, cos * HALF_LENGTH
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return Polygon(
        tuple(x + a * right_x + b * up_x for a, b in signs),
        tuple(y + a * right_y + b * up_y for a, b in signs),
        (sin, cos, -sin, -cos),
        (-cos, sin, cos, -sin),
        x,
        y,
    )


def hull_polygon(x: Num, y: Num, angle: Num) -> Polygon:
    """The hull, whose pose is that of its centre of mass."""
    cos, sin = cos_sin(angle)
    corners = [(px - HULL_CENTRE[0], py - HULL_CENTRE[1]) for px, py in HULL_SHAPE]
    placed = [turn(cos, sin, px, py) for px, py in corners]
    sides = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)]
    normals = [turn(cos, sin, dy / (dx**2 + dy**2) ** 0.5, -dx / (dx**2 + dy**2) ** 0.5) for dx, dy in sides]
    return Polygon(
        tuple(x + px for px, _ in placed),
        tuple(y + py for _, py in placed),
        tuple(nx for nx, _ in normals),
        tuple(ny for _, ny in normals),
        x,
        y,
    )


def hull_origin(hull: Body) -> tuple[Num, Num]:
    """What gymnasium calls the hull's position: the origin of its shape, where the lidar sits."""
    dx, dy = turn(*cos_sin(hull.angle), *HULL_CENTRE)
    return hull.x - dx, hull.y - dy
