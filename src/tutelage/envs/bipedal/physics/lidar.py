"""The lidar: ten rays from the hull's origin, from straight down to 77° forward, and the closest ground on each."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array

from tutelage.envs.bipedal.physics.body import Num
from tutelage.envs.bipedal.physics.ground import Cells, Look, first_cell
from tutelage.envs.bipedal.physics.machine import if_any
from tutelage.envs.bipedal.physics.tools import choose, index

RAYS = 10
RANGE = 160 / 30  # metres
VIEW = 16  # cells, of which the rays reach over 12
ANGLES = [0.15 * ray for ray in range(16)]
END_X, END_Y = [RANGE * math.sin(a) for a in ANGLES], [-RANGE * math.cos(a) for a in ANGLES]  # of rays that hit nothing


def scan(x: Num, y: Num, look: Look) -> Array:
    """The fraction of its range after which each ray from (x, y) hits the ground, 1 if it does not; `[16, …]`.

    Ten rays are meant; the other six fill the axis up to a power of two. Rectangles that begin behind the ground's last
    edge are not seen, as terrains do not hold them: the rays could reach some from half a metre before the finish on.
    """
    ray = index(16, 1 + x.ndim)
    dx, dy = choose(ray, END_X), choose(ray, END_Y)
    cells = look(first_cell(x, VIEW) + index(VIEW, x.ndim))
    edges = _to_edge(x, y, dx, dy, cells)
    there = cells.left < cells.right
    hits = if_any(there, lambda edges: jnp.minimum(edges, _to_box(x, y, dx, dy, cells)), edges)
    return jnp.minimum(jnp.min(hits, axis=1), 1.0)


def _to_edge(x: Num, y: Num, dx: Num, dy: Num, cells: Cells) -> Num:
    """Solves p + t·d = v₁ + u·e for the fraction t; from either side."""
    ex, ey = cells.x2 - cells.x1, cells.y2 - cells.y1
    slope = ex * dy - ey * dx
    inverse = 1 / jnp.where(slope == 0, 1.0, slope)
    px, py = cells.x1 - x, cells.y1 - y
    t = (ex * py - ey * px) * inverse
    u = (dx * py - dy * px) * inverse
    return jnp.where((slope != 0) & (t >= 0) & (u >= 0) & (u <= 1), t, jnp.inf)


def _to_box(x: Num, y: Num, dx: Num, dy: Num, cells: Cells) -> Num:
    """Where the ray enters a rectangle; a ray that starts inside does not."""
    enter_x, leave_x = _slab(x, dx, cells.left, cells.right)
    enter_y, leave_y = _slab(y, dy, cells.bottom, cells.top)
    enter, leave = jnp.maximum(enter_x, enter_y), jnp.minimum(leave_x, leave_y)
    return jnp.where((cells.left < cells.right) & (enter >= 0) & (enter <= leave), enter, jnp.inf)


def _slab(p: Num, d: Num, low: Num, high: Num) -> tuple[Num, Num]:
    """The stretch of the ray between two parallels; all or nothing of a ray that runs along with them."""
    along = d == 0
    inverse = 1 / jnp.where(along, 1.0, d)
    a, b = (low - p) * inverse, (high - p) * inverse
    inside = (p >= low) & (p <= high)
    enter = jnp.where(along, jnp.where(inside, -jnp.inf, jnp.inf), jnp.minimum(a, b))
    return enter, jnp.where(along, jnp.inf, jnp.maximum(a, b))
