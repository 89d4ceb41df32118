"""The policies of the comparison of returns: the heuristic is gymnasium's, and both worlds act alike."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d

FOLDER = Path(__file__).parents[2] / "bench" / "fidelity"


@pytest.fixture(scope="module")
def policies():
    spec = importlib.util.spec_from_file_location("policies", FOLDER / "policies.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def walked(seed: int, steps: int) -> np.ndarray:
    """What gymnasium's heuristic sees."""
    env, obs, *_ = box2d.make(seed)
    walker = box2d.walkers.BipedalWalkerHeuristics()
    seen = [obs]
    for _ in range(steps):
        seen.append(env.step(walker.step_heuristic(seen[-1]))[0])
    return np.array(seen)


def imagined(seed: int, steps: int) -> np.ndarray:
    """Observations that have little to do with each other, so that it turns often."""
    rng = np.random.default_rng(seed)
    seen = rng.normal(0, 0.5, (steps, 24)).astype(np.float32)
    seen[:, [8, 13]] = rng.random((steps, 2)) < 0.3
    return seen


@pytest.mark.parametrize("seen", [walked(2, 300), imagined(0, 3000)], ids=["walked", "imagined"])
def test_heuristic_is_gymnasiums(policies, seen):
    walker = box2d.walkers.BipedalWalkerHeuristics()
    actions, gaits = [], []
    for obs in seen:
        actions.append(walker.step_heuristic(obs).copy())  # it writes into its last action
        gaits.append((walker.state, walker.moving_leg, walker.supporting_knee_angle))

    def step(gait, obs):
        gait, action = policies.heuristic(gait, obs)
        return gait, (gait, action)

    ours, did = jax.lax.scan(step, policies.first_gait(), jnp.asarray(seen))[1]
    phases, legs, knees = zip(*gaits, strict=True)
    assert set(phases) == {1, 2, 3}
    assert np.array_equal(ours.phase, phases)
    assert np.array_equal(ours.moving, legs)
    np.testing.assert_allclose(ours.knee, knees, atol=1e-6)
    np.testing.assert_allclose(did, actions, atol=2e-6)


def test_networks_act_alike(policies):
    rng = np.random.default_rng(0)
    shapes = ((24, 8), (8,), (8, 8), (8,), (8, 4), (4,), (4,))
    networks = [policies.Network(*(rng.normal(0, 0.5, s).astype(np.float32) for s in shapes)) for _ in range(2)]
    obs, noise = (rng.normal(size=(5, n)).astype(np.float32) for n in (24, 4))
    gaits = policies.first_gait((3, 5))
    seen = jnp.broadcast_to(obs, (3, 5, 24))
    _, actions = jax.vmap(policies.Policy.act, (0, 0, 0, None))(policies.together(networks), gaits, seen, noise)
    for k, network in enumerate(networks):
        np.testing.assert_allclose(actions[k], network.act(obs, noise, np), atol=1e-6)
    heuristic = jax.vmap(policies.heuristic)(policies.first_gait((5,)), jnp.asarray(obs))[1]
    np.testing.assert_allclose(actions[2], heuristic, atol=1e-6)
