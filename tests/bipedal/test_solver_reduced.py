"""The reduced solver solves the equations of the exact one; step by step it is as near to Box2D as Box2D to itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d, lockstep
from tutelage.envs.bipedal import exact, physics, reduced
from tutelage.envs.bipedal.body import Body
from tutelage.envs.bipedal.contacts import meet, recall
from tutelage.envs.bipedal.ground import Ground, paved
from tutelage.envs.bipedal.nearby import codes, survey, touching


@pytest.fixture(scope="module")
def played():
    return box2d.episodes(lockstep.EPISODES, lockstep.STEPS)


def test_single_steps(played):
    errors = lockstep.follow(*lockstep.compiled("reduced"), played)
    # The quantiles are those of Box2D with 180 against Box2D with 4,000 iterations under random actions.
    assert np.median(errors["velocity"]) < 1e-4
    assert np.quantile(errors["velocity"], 0.9) < 0.1
    assert np.quantile(errors["velocity"], 0.98) < 0.7
    assert np.median(errors["lidar"]) < 1e-4
    assert errors["flags"].mean() < 0.01
    assert errors["ends"].mean() < 0.002


def test_same_equations(played, monkeypatch):
    """With all the sweeps they want, both find the same velocities."""
    monkeypatch.setattr(exact, "ITERATIONS", 3000)
    monkeypatch.setattr(reduced, "SWEEPS", 1000)

    def both(terrain, rows, action):
        bodies = tuple(Body(*(rows[:, k, i] for i in range(6))) for k in range(5))
        world, look = physics.at_rest(bodies), Ground(jax.vmap(paved)(terrain), jnp.arange(len(rows)))
        surveyed = survey(bodies[1:], look)
        near = codes(touching(bodies[1:], surveyed.cells), surveyed.first)
        contacts, _ = meet(near, bodies[1:], look)
        drives = tuple(physics._drive(k, bodies, action[:, k]) for k in range(4))
        velocities = tuple((b.vx, b.vy - 0.2, b.spin) for b in bodies)
        problem = exact.Problem(bodies, velocities, drives, world.joints, contacts, recall(contacts, world.memory))
        return jnp.array(exact.solve(problem)[0]), jnp.array(reduced.solve(problem)[0])

    at = np.arange(3, lockstep.STEPS, 4)
    alive = played["alive"][:, at].ravel()
    terrain = jax.tree.map(lambda v: jnp.repeat(jnp.asarray(v), len(at), axis=0)[alive], played["terrain"])
    rows, action = (np.concatenate(played[name][:, at])[alive] for name in ("bodies", "action"))
    one, other = jax.jit(both)(terrain, rows, action)
    error = np.abs(np.asarray(one) - np.asarray(other)).max((0, 1))
    assert len(error) > 100
    assert np.median(error) < 1e-5
    assert np.quantile(error, 0.95) < 1e-2
