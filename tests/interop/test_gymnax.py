"""Environments with gymnax's interface: a small one of the tests, and gymnax's own where it is installed."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from toys import jumper
from tutelage.env import Env
from tutelage.errors import UserError
from tutelage.interop.gymnax import domain


@dataclass(frozen=True)
class Params:
    wind: float = 0.5
    width: float = 2.0
    area: float = 4.0
    max_steps_in_episode: int = 3

    replace = replace


jax.tree_util.register_dataclass(Params, ["wind", "width", "area", "max_steps_in_episode"], [])


class Space(NamedTuple):
    low: float
    high: float
    shape: tuple[int, ...]


class Drift:
    """A ball on a line is blown about; the action pushes it. It is lost beyond the width. Its own limit is 3 steps."""

    default_params = Params()

    def action_space(self, params):
        return Space(-2.0, 4.0, (1,))

    def reset_env(self, key, params):
        place = jax.random.uniform(key, minval=-0.1, maxval=0.1)
        return jnp.stack([place]), (place, 0)

    def step_env(self, key, state, action, params):
        place, time = state[0] + params.wind + action[0], state[1] + 1
        done = (jnp.abs(place) > params.width) | (time >= params.max_steps_in_episode)
        return jnp.stack([place]), (place, time), 1 - place / params.area, done, {}


def drift(**options):
    bounds = {"wind": (-1, 1), "width": (1, 3)}
    derive = lambda p: p.replace(area=p.width**2)  # noqa: E731
    return domain("drift", Drift(), bounds, max_steps=8, derive=derive, **options)


def test_an_episode_is_played_with_the_levels_parameters_until_our_limit():
    env = drift().env()
    assert isinstance(env, Env)
    assert env.actions == tut.Box(1)
    level = drift().design().from_json({"wind": 0.25, "width": 3})
    state, obs = env.reset(jax.random.key(0), level)
    place, step = float(obs[0]), jax.jit(env.step)
    for time in range(1, 9):
        state, after = step(jax.random.key(time), state, jnp.array([-0.5]))  # the middle of the lower half: −0.5
        place += 0.25 - 0.5
        np.testing.assert_allclose(after.obs, [place], atol=1e-5)
        np.testing.assert_allclose(after.reward, 1 - place / 9, atol=1e-5)
        assert not after.terminated
        assert after.truncated == (time == 8)
    state, after = step(jax.random.key(9), state, jnp.array([99.0]))  # clipped to 1, which is 4
    np.testing.assert_allclose(after.obs, [place + 4.25], atol=1e-5)


def test_what_ends_an_episode_is_the_environment():
    env = drift().env()
    state, _ = env.reset(jax.random.key(0), drift().design().from_json({"wind": 1, "width": 1}))
    _, after = env.step(jax.random.key(0), state, jnp.array([1.0]))
    assert after.terminated
    assert not after.truncated


def test_a_seeded_level_always_begins_alike():
    seeded = drift(seeded=True)
    level = seeded.design().sample(jax.random.key(0))
    one, other = (seeded.env().reset(jax.random.key(k), level)[1] for k in (1, 2))
    np.testing.assert_array_equal(one, other)
    one, other = (drift().env().reset(jax.random.key(k), level)[1] for k in (1, 2))
    assert one != other


@pytest.mark.slow
def test_accel_trains_on_it_and_is_evaluated(tmp_path):
    config = jumper(env=drift(solved_above=4.0), updates=5, checkpoint_every=5)
    run = tut.train(config, tmp_path / "run")
    assert {r.level for r in run.evaluate(episodes=4)} == {"as published", "uniform"}
    levels = tut.Run(run.path, config.env).levels()
    assert levels.generation.max() >= 1
    assert (levels.level.values[levels.generation == 0] == np.float32([0.5, 2.0])).all(), "as published, at first"


def test_episodes_are_solved_above_a_return_or_compared_by_it():
    returns = jnp.array([3.0, 5.0])
    for above, solved in ((4.0, [False, True]), (None, [False, False])):
        config = jumper(env=drift(solved_above=above))
        assert config.classroom().env.solved(returns).tolist() == solved
        assert config.env.measure.column == ("mean_return" if above is None else "solved_rate")


def test_what_is_no_parameter_is_said():
    with pytest.raises(UserError, match="Drift has no parameter 'mass'"):
        domain("drift", Drift(), {"mass": (1, 2)}, max_steps=8)


def test_actions_that_no_student_can_take_are_said():
    class Odd(Drift):
        def action_space(self, params):
            return Space(-np.inf, np.inf, (1,))

    with pytest.raises(UserError, match="vectors between bounds"):
        domain("odd", Odd(), {"wind": (-1, 1)}, max_steps=8)


# gymnax itself


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("CartPole-v1", {"gravity": (5, 20), "force_mag": (5, 20)}),
        ("Pendulum-v1", {"g": (5, 15)}),
        ("MountainCar-v0", {"gravity": (0.002, 0.004)}),
    ],
)
def test_gymnaxs_own_environments_play_as_they_do_there(name, bounds):
    gymnax = pytest.importorskip("gymnax")
    game, params = gymnax.make(name)
    ours = domain("ours", game, bounds, max_steps=30)
    env, level = ours.env(), ours.design().uniform(jax.random.key(3))
    played = params.replace(**dict(zip(bounds, level.values, strict=True)))
    key = jax.random.key(0)
    state, obs = jax.jit(env.reset)(key, level)
    seen, own = game.reset_env(key, played)
    step, their_step = jax.jit(env.step), jax.jit(game.step_env)
    np.testing.assert_allclose(obs, seen, atol=1e-6)
    for time in range(30):
        chosen = jax.random.uniform(jax.random.key(time), (1,), minval=-1, maxval=1)
        discrete = isinstance(env.actions, tut.Discrete)
        action = jnp.int32(chosen[0] > 0) if discrete else chosen
        state, after = step(key, state, action)
        space = game.action_space(params)
        theirs = action if discrete else space.low + (action + 1) / 2 * (space.high - space.low)
        seen, own, reward, terminated, _ = their_step(key, own, theirs, played)
        np.testing.assert_allclose(after.obs, seen, atol=1e-5)
        np.testing.assert_allclose(after.reward, reward, atol=1e-5)
        assert after.terminated == terminated
        assert after.truncated == (time == 29)
        if terminated:
            break
