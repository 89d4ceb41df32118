"""The lidar sees what Box2D's ray casts hit, on the paper's challenges too: steep ground, pits, stumps, high stairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from bipedal import box2d  # noqa: F401  skips what follows where Box2D is missing
from bipedal.test_lidar import cast
from tutelage.envs.bipedal.physics import lidar
from tutelage.envs.bipedal.physics.ground import Ground, paved
from tutelage.envs.bipedal.real import gymnasium
from tutelage.envs.bipedal.suite import HIGH, PAPER
from tutelage.envs.bipedal.terrain import build

KINDS = PAPER | HIGH
LEVELS, POINTS = 3, 100


@pytest.fixture(scope="module")
def scan():
    return jax.jit(lambda terrain, x, y: lidar.scan(x, y, Ground(paved(terrain)[None], jnp.zeros(len(x), jnp.int32))).T)


@pytest.mark.parametrize("kind", KINDS)
def test_rays(scan, kind):
    rng = np.random.default_rng(0)
    seen, true = [], []
    for seed in range(LEVELS):
        terrain, force = jax.tree.map(np.asarray, build(KINDS[kind](random.key(seed)), "parametrised"))
        env = gymnasium()(2000)
        env.begin((terrain, force))
        x = np.float32(rng.uniform(1, 88, POINTS))
        y = np.float32(np.interp(x, terrain.x, terrain.y) + rng.uniform(0.3, 5, POINTS))
        seen.append(np.asarray(scan(terrain, x, y))[:, : lidar.RAYS])
        true.append([cast(env, *map(float, point)) for point in zip(x, y, strict=True)])
    difference = np.abs(np.concatenate(seen) - np.concatenate(true))
    assert np.mean(np.concatenate(true) < 1) > 0.5
    # A ray that grazes a corner may pass it on one side there and on the other here.
    assert np.mean(difference > 1e-5) < 2e-3
