"""The lidar sees what Box2D's ray casts hit."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d
from tutelage.envs.bipedal.physics import lidar
from tutelage.envs.bipedal.physics.ground import Ground, paved


def cast(env, x, y):
    """gymnasium's ten rays from a point."""
    fractions = []
    for k in range(10):
        ray = env.lidar[k]
        ray.fraction = 1.0
        end = (x + np.sin(1.5 * k / 10) * 160 / 30, y - np.cos(1.5 * k / 10) * 160 / 30)
        env.world.RayCast(ray, (x, y), end)
        fractions.append(ray.fraction)
    return fractions


@pytest.mark.parametrize("hardcore", [False, True])
def test_rays(hardcore):
    rng = np.random.default_rng(0)
    seen, true = [], []
    for seed in range(4):
        env, _, terrain, _ = box2d.make(seed, hardcore)
        x = np.float32(rng.uniform(1, 88, 150))
        ground = np.interp(x, terrain.x, terrain.y)
        y = np.float32(ground + rng.uniform(0.3, 5, 150))
        scan = jax.jit(partial(lidar.scan, look=Ground(paved(terrain)[None], jnp.zeros(len(x), jnp.int32))))
        seen.append(np.asarray(scan(x, y)).T[:, :10])
        true.append([cast(env, *map(float, p)) for p in zip(x, y, strict=True)])
    difference = np.abs(np.concatenate(seen) - np.concatenate(true))
    # A ray that grazes a corner may pass it on one side there and on the other here.
    assert np.mean(difference > 1e-5) < 1e-3
    assert np.mean(np.concatenate(true) < 1) > 0.5
