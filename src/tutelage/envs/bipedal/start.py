"""How an episode begins: the walker as gymnasium makes it, and the step it makes before the student acts.

The hips' anchors are half a metre apart at birth (the legs hang from above the hull) and the knees bent beyond their
limits. The first two steps pull the walker together; they are part of the environment.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.envs.bipedal.body import HULL_CENTRE, Body
from tutelage.envs.bipedal.ground import Look
from tutelage.envs.bipedal.physics import World, at_rest, step

X, Y = 14 / 3, 5.6  # metres, the hull's origin
LEAN = 0.05  # radians, of the left leg to one side and the right leg to the other


def born() -> World:
    """The walker in its first pose."""

    def still(x: float, y: float, angle: float) -> Body:
        return Body(*(jnp.asarray(v, jnp.float32) for v in (x, y, angle, 0.0, 0.0, 0.0)))

    hull = still(X + HULL_CENTRE[0], Y + HULL_CENTRE[1], 0.0)
    legs = [still(X, y, lean) for lean in (-LEAN, LEAN) for y in (5.3, 12.5 / 3)]
    return at_rest((hull, *legs))


def begun(look: Look, force: Float[Array, ""]) -> World:
    """The world after the first step, in which `force` pushes the hull and the motors are off."""
    none = jnp.zeros_like(force)
    world = step(born(), (none, none, none, none), look, "exact", force)
    # Without a force there may be no impulse to know the first step by (see `physics`).
    hip = world.joints[0]
    hip = hip._replace(x=jnp.where(hip.x == 0, 1e-30, hip.x))
    return world._replace(joints=(hip, *world.joints[1:]))
