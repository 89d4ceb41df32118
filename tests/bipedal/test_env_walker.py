"""The walker as an environment: how episodes begin, go on and end, beside gymnasium's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

from bipedal import box2d, lockstep
from tutelage.env import Box, Env
from tutelage.envs.bipedal import TOLERANCE
from tutelage.envs.bipedal.env import FINISH, Walker
from tutelage.envs.bipedal.level import make_level

FORCES = np.float32([-4.9, -3, -1, -0.1, 0.1, 1, 3, 4.9])


@pytest.fixture(scope="module")
def engine():
    return lockstep.compiled(TOLERANCE)


@pytest.fixture(scope="module")
def begun(engine):
    """Eight walkers at the start of flat terrain, with different pushes."""
    ground = jax.tree.map(lambda v: jnp.stack([v] * 8), box2d.flat())
    return engine[0](ground, jnp.asarray(FORCES))


def moved(state, *, x=0.0, y=0.0):
    """The walkers, elsewhere."""
    return state._replace(bodies=state.bodies._replace(x=state.bodies.x + x, y=state.bodies.y + y))


def gymnasiums_first_steps(force: float, monkeypatch, steps: int) -> np.ndarray:
    """Observations of gymnasium's walker, pushed by this force and then left alone."""
    env, made = box2d.walkers.BipedalWalker(), box2d.walkers.Box2D.b2Body
    apply = made.ApplyForceToCenter
    with monkeypatch.context() as patch:
        patch.setattr(made, "ApplyForceToCenter", lambda body, _, wake: apply(body, (force, 0), wake))
        obs, _ = env.reset(seed=0)
    return np.array([obs, *(env.step(np.zeros(4, np.float32))[0] for _ in range(steps))])


def test_is_an_env():
    env = Walker()
    assert isinstance(env, Env)
    assert env.actions == Box(4)
    assert env.max_steps == 2000
    assert hash(env) == hash(Walker())
    assert env.solved(jnp.array([230.0, 230.1])).tolist() == [False, True]
    with pytest.raises(ValueError, match="`max_steps` must be at least 1"):
        Walker(max_steps=0)
    with pytest.raises((ValueError, TypeCheckError), match="rules"):  # type checks of the tests come first
        Walker(rules="another")
    with pytest.raises(ValueError, match="tolerance"):
        Walker(tolerance=-1.0)


def test_first_steps(engine, begun, monkeypatch):
    state, obs = begun
    ours = [np.asarray(obs)]
    for _ in range(3):
        state, after = engine[1](state, jnp.zeros((8, 4)))
        ours.append(np.asarray(after.obs))
    for k, force in enumerate(FORCES):
        real = gymnasiums_first_steps(float(force), monkeypatch, 3)
        error = np.abs(np.stack(ours)[:, k, :14] - real[:, :14])  # gymnasium's ground is not flat, further on
        assert error.max() < 1e-3, (force, error.max(1))


def test_progress_is_rewarded_and_effort_is_not(engine, begun):
    state = moved(begun[0], y=5.0)
    action = jnp.asarray(np.float32([[0, 0, 0, 0]] * 4 + [[1, 0, -3, 0.5]] * 4))
    new, after = engine[1](state, action)
    before, now = (np.asarray(s.bodies.x[:, 0]) for s in (state, new))
    tilt = np.abs(np.asarray(new.bodies.angle[:, 0])) - np.abs(np.asarray(state.bodies.angle[:, 0]))
    expected = 130 / 30 * (now - before) - 5 * tilt - 0.028 * np.array([0] * 4 + [2.5] * 4)
    assert np.asarray(after.reward) == pytest.approx(expected, abs=0.02)
    assert not np.asarray(after.done).any()


def test_falling_costs_a_hundred(engine, begun):
    falls = moved(begun[0], y=jnp.asarray(np.float32([-2.08] * 4 + [0] * 4))[:, None])
    _, after = engine[1](falls, jnp.zeros((8, 4)))
    assert np.asarray(after.terminated).tolist() == [True] * 4 + [False] * 4
    assert (np.asarray(after.reward)[:4] == -100).all()


def test_ends_of_the_terrain(engine, begun):
    there = jnp.asarray(np.float32([FINISH - 4.3] * 4 + [-4.8] * 4))[:, None]
    _, after = engine[1](moved(begun[0], x=there, y=5.0), jnp.zeros((8, 4)))
    assert np.asarray(after.terminated).all()
    assert (np.asarray(after.reward)[:4] > -100).all()
    assert (np.asarray(after.reward)[4:] == -100).all()


def test_time_runs_out(engine, begun):
    late = begun[0]._replace(time=jnp.int32([0, 1998, 1999, 0, 0, 0, 0, 0]))
    _, after = engine[1](late, jnp.zeros((8, 4)))
    assert np.asarray(after.truncated).tolist() == [False, False, True] + [False] * 5
    assert not np.asarray(after.terminated).any()


def test_walkers_are_independent(engine, begun):
    """A walker's step does not depend on the others in its batch."""
    state = moved(begun[0], y=jnp.asarray(np.float32([0, 0, -0.05, 0.1, 0, -1.75, 0.02, 0]))[:, None])
    action = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (8, 4)), jnp.float32)
    new, _ = engine[1](state, action)
    turned, _ = engine[1](*jax.tree.map(lambda v: v[::-1], (state, action)))
    for a, b in zip(new.bodies, turned.bodies, strict=True):
        assert np.asarray(a) == pytest.approx(np.asarray(b)[::-1], abs=1e-5)


def test_levels_decide_episodes():
    env = Walker(rules="hardcore")
    reset = jax.jit(env.reset)
    level = make_level(np.zeros(8), 7)
    one, other = reset(jax.random.key(0), level), reset(jax.random.key(1), level)
    assert jax.tree.all(jax.tree.map(jnp.array_equal, one, other))
    assert one[1].shape == (24,)
    assert np.isfinite(one[1]).all()
    assert one[1][8] == one[1][13] == 1  # both feet have touched
