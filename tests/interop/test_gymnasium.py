"""gymnasium environments as domains: they play as gymnasium plays them, and can be trained on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from toys import jumper
from tutelage.errors import UserError
from tutelage.interop.gymnasium import domain

gymnasium = pytest.importorskip("gymnasium")

BOUNDS = {
    "CartPole-v1": {"gravity": (5, 20), "length": (0.3, 2)},
    "Pendulum-v1": {"g": (5, 15)},
    "FrozenLake-v1": {},
}


def domain_of(name, **options):
    options = {"max_steps": 25, "seeded": not BOUNDS[name]} | options
    return domain("ours", lambda: gymnasium.make(name).unwrapped, BOUNDS[name], **options)


@pytest.mark.parametrize("name", BOUNDS)
def test_episodes_are_gymnasiums(name):
    """Several at once, with actions that end some of them early."""
    ours = domain_of(name, seeded=True)
    env, slots = ours.env(), 3
    levels = jax.vmap(ours.design().uniform)(jax.random.split(jax.random.key(4), slots))
    keys = jax.random.split(jax.random.key(0), slots)
    rng = np.random.default_rng(0)
    discrete = isinstance(env.actions, tut.Discrete)
    shape = (25, slots)
    actions = rng.integers(0, env.actions.n, shape) if discrete else rng.uniform(-1, 1, (*shape, 1)).astype(np.float32)
    if name == "CartPole-v1":
        actions[:, 0] = 1

    @jax.jit
    def play(levels, actions):
        state, first = jax.vmap(env.reset)(keys, levels)
        return first, jax.lax.scan(lambda s, a: jax.vmap(env.step)(keys, s, a), state, actions)[1]

    first, after = play(levels, jnp.asarray(actions))
    for n in range(slots):
        theirs = gymnasium.make(name).unwrapped
        for parameter, value in zip(BOUNDS[name], levels.values[n].tolist(), strict=True):
            setattr(theirs, parameter, value)
        np.testing.assert_allclose(first[n], theirs.reset(seed=int(levels.seed[n]))[0], atol=1e-6)
        for time in range(25):
            action = actions[time, n]
            obs, reward, terminated, *_ = theirs.step(int(action) if discrete else 2 * action)
            np.testing.assert_allclose(after.obs[time, n], obs, atol=1e-5)
            np.testing.assert_allclose(after.reward[time, n], reward, atol=1e-5)
            assert after.terminated[time, n] == terminated
            assert after.truncated[time, n] == (time == 24 and not terminated)
            if terminated:
                break


def test_what_is_no_parameter_is_said():
    make = lambda: gymnasium.make("CartPole-v1").unwrapped  # noqa: E731
    with pytest.raises(UserError, match="CartPoleEnv has no attribute 'mass'"):
        domain("ours", make, {"mass": (1, 2)}, max_steps=5)


def test_observations_may_have_parts_and_parameters_may_be_set_in_any_way():
    class Parts(gymnasium.Env):
        action_space = gymnasium.spaces.Discrete(2, start=3)

        def reset(self, *, seed):
            return {"speed": (np.float64(self.speed), 5), "lit": True}, {}

        def step(self, action):
            return {"speed": (np.float64(self.speed), 5), "lit": action == 4}, 1, False, False, {}

    def prepare(env, parameters):
        env.speed = 2 * parameters["pace"]

    def make():
        env = Parts()
        env.speed = 0
        return env

    ours = domain("ours", make, {"pace": (0, 9)}, max_steps=5, defaults={"pace": 1}, prepare=prepare)
    env = ours.env()
    state, obs = env.reset(jax.random.key(0), ours.design().default(jax.random.key(0)))
    assert (obs["speed"][0], obs["speed"][0].dtype, obs["speed"][1]) == (2, np.float32, 5)
    assert env.step(jax.random.key(0), state, jnp.int32(1))[1].obs["lit"]


@pytest.mark.slow
def test_accel_trains_on_it(tmp_path):
    config = jumper(env=domain_of("CartPole-v1", solved_above=20), steps=25, updates=4, checkpoint_every=4)
    run = tut.train(config, tmp_path / "run")
    assert {r.level for r in run.evaluate(episodes=2)} == {"as published", "uniform"}
