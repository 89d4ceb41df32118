"""A lower leg that flies past a rectangle's corner in one step: struck by it, or not, as in Box2D."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d
from tutelage.envs.bipedal.physics import contacts, impact, nearby
from tutelage.envs.bipedal.physics.body import FRICTION, HALF_LENGTH, HALF_WIDTH, SECONDS, Body
from tutelage.envs.bipedal.physics.ground import Ground, paved
from tutelage.envs.bipedal.run.stages import Values, after_impacts, table

Box2D = pytest.importorskip("Box2D")

LEGS = 256
BLOCK = (20 * box2d.CELL, 21 * box2d.CELL, 4.0, 2.0)  # left, right, top, bottom
SKY = 100.0  # metres, where no ground is


@pytest.fixture(scope="module")
def flying() -> np.ndarray:
    """Legs, a row each as in `box2d.bodies_of`, whose lower side is 2 to 5 cm from the block's upper right corner."""
    rng = np.random.default_rng(0)
    angle, gap = rng.uniform(-1.4, -0.1, LEGS), rng.uniform(0.021, 0.05, LEGS)
    along = rng.uniform(-0.9, 0.9, LEGS) * HALF_WIDTH[1]
    cos, sin = np.cos(angle), np.sin(angle)
    x = BLOCK[1] - cos * along - sin * (gap + HALF_LENGTH)
    y = BLOCK[2] - sin * along + cos * (gap + HALF_LENGTH)
    motion = rng.uniform((-3, -5, -14), (3, 0, 14), (LEGS, 3))
    return np.column_stack([x, y, angle, motion]).astype(np.float32)


def flown_in_box2d(row: np.ndarray) -> list[float]:
    """Where a leg without weight is after a step."""
    left, right, top, bottom = BLOCK
    world = Box2D.b2World(gravity=(0, 0))
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    world.CreateStaticBody(fixtures=Box2D.b2FixtureDef(shape=Box2D.b2PolygonShape(vertices=corners), friction=2.5))
    x, y, angle, vx, vy, spin = row.tolist()
    shape = Box2D.b2PolygonShape(box=(HALF_WIDTH[1], HALF_LENGTH))
    leg = world.CreateDynamicBody(
        position=(x, y),
        angle=angle,
        linearVelocity=(vx, vy),
        angularVelocity=spin,
        fixtures=Box2D.b2FixtureDef(shape=shape, density=1.0, friction=FRICTION**2 / 2.5),
    )
    world.Step(SECONDS, 180, 60)
    return [*leg.worldCenter, leg.angle, *leg.linearVelocity, leg.angularVelocity]


def flown_here(rows: np.ndarray) -> np.ndarray:
    """The same, as the lower left leg of walkers that are otherwise in the sky."""
    terrain = box2d.terrain_of(np.arange(200) * box2d.CELL, np.zeros(200), [BLOCK])
    look = Ground(paved(terrain)[None], jnp.zeros(LEGS, jnp.int32))
    leg = Body(*(jnp.asarray(column) for column in rows.T))
    rest = Body(leg.x, jnp.full(LEGS, SKY), *(jnp.zeros(LEGS),) * 4)
    start = (rest, rest, leg, rest, rest)
    end = (rest, rest, impact.moved(leg[:3], leg[3:], SECONDS), rest, rest)
    memory, feet = contacts.empty_memory(leg.x), (jnp.zeros(LEGS, bool),) * 2

    @jax.jit
    def strike():
        surveyed = nearby.cells_around(start[1:], look)
        flight = impact.take_off(start, end, memory, feet)
        values = Values({}, flight=flight, surveyed=surveyed, look=look)
        return after_impacts(table(0.0), values).end[2]

    return np.stack(strike(), axis=1)


def test_corners_strike(flying):
    """Also those that a leg comes near on its way, but not at its end."""
    real, ours = np.array([flown_in_box2d(row) for row in flying]), flown_here(flying)
    struck = np.abs(real - flying)[:, 3:].max(1) > 1e-3
    assert 0.3 < struck.mean() < 0.9
    assert np.abs(ours - real).max() < 0.01
