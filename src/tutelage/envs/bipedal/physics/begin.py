"""How an episode begins: the walker as gymnasium makes it, and the step it makes before the student acts.

The hips' anchors are half a metre apart at birth (the legs hang from above the hull) and the knees bent beyond their
limits. The first two steps pull the walker together; they are part of the environment. The first comes before the
student acts, on level ground, so that nothing but the force on the hull decides it: what comes of it is kept in
`first_step.npz`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage.envs.bipedal import terrain
from tutelage.envs.bipedal.level import make_level
from tutelage.envs.bipedal.physics.body import HULL_CENTRE, INVERSE_MASS, SECONDS, Body
from tutelage.envs.bipedal.physics.ground import Ground, Look, paved
from tutelage.envs.bipedal.physics.step import Efforts, World, at_rest
from tutelage.envs.bipedal.terrain import MAX_FORCE

X, Y = 14 / 3, 5.6  # metres, the hull's origin
LEAN = 0.05  # radians, of the left leg to one side and the right leg to the other
TABLE = Path(__file__).with_name("first_step.npz")


def born(force: Float[Array, "..."] | float = 0.0) -> World:
    """The walker in its first pose, its hull as fast as a force in N makes it that lasts for one step."""

    def still(x: float, y: float, angle: float) -> Body:
        return Body(*(jnp.full(jnp.shape(force), v, jnp.float32) for v in (x, y, angle, 0.0, 0.0, 0.0)))

    hull = still(X + HULL_CENTRE[0], Y + HULL_CENTRE[1], 0.0)
    legs = [still(X, y, lean) for lean in (-LEAN, LEAN) for y in (5.3, 12.5 / 3)]
    return at_rest((hull._replace(vx=hull.vx + SECONDS * INVERSE_MASS[0] * force), *legs))


def begun(force: Float[Array, ""]) -> World:
    """The world after the first step, in which `force` in N pushes the hull and the motors are off."""
    share = jnp.abs(force) / MAX_FORCE

    def between(values: np.ndarray) -> Array:
        left, none, right = np.moveaxis(values, -1, 0)
        if values.dtype != np.float32:  # what touches what is the same for every force
            return jnp.asarray(none)
        return none + share * (jnp.where(force < 0, left, right) - none)

    return jax.tree.map(between, _table())


@lru_cache(maxsize=1)
def _table() -> World:
    """The first step by a full push to the left, by none and by one to the right, between which all is linear."""
    with np.load(TABLE, allow_pickle=False) as stored:
        return jax.tree_util.tree_map_with_path(lambda path, _: stored[jax.tree_util.keystr(path)], born())


def write_table(step: Callable[[World, Efforts, Look], World], path: Path = TABLE) -> None:
    """Makes the first steps anew, as this step does, for when the physics has changed."""
    forces = jnp.array([-MAX_FORCE, 0.0, MAX_FORCE])
    still = jnp.zeros_like(forces)
    level_ground, _ = terrain.build(make_level(np.zeros(8), 0), "parametrised")
    look = Ground(paved(level_ground)[None], jnp.zeros(3, jnp.int32))
    worlds = jax.jit(lambda: step(born(forces), (still, still, still, still), look))()
    leaves = {jax.tree_util.keystr(key): np.asarray(leaf) for key, leaf in jax.tree_util.tree_leaves_with_path(worlds)}
    np.savez(path, **leaves)  # pyright: ignore[reportArgumentType]
