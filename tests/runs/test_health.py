"""What keeps a training from coming to anything is said, and nothing that was good is lost by it."""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tutelage as tut
from toys import example, jumper
from tutelage.errors import UserError
from tutelage.runs import health, presets
from tutelage.runs.run import initial_state
from tutelage.runs.settings import changed, plain
from tutelage.runs.settings import settings as settings_of

_own = example("own_env")
BAD = (math.nan, math.inf, -math.inf)


@dataclass(frozen=True)
class Broken:
    """The jumper, but for one thing that is wrong on strips that have a pit, or on all."""

    what: str
    only_with_pits: bool = False
    actions = _own.Jumper.actions
    max_steps = _own.Jumper.max_steps
    game = _own.Jumper()

    def reset(self, key, level):
        state, obs = self.game.reset(key, level)
        return state, obs.astype(jnp.float32)

    def step(self, key, state, action):
        state, after = self.game.step(key, state, action)
        wrong = state[0].any() if self.only_with_pits else jnp.bool_(True)
        reward, obs, done = after.reward, after.obs.astype(jnp.float32), after.terminated
        if self.what == "observations":
            obs = jnp.where(wrong, jnp.nan, obs)
        elif self.what == "episodes":
            done = done & ~wrong
        else:
            reward = jnp.where(wrong & done, float(self.what), reward)
        return state, tut.Timestep(obs, reward, done, after.truncated)

    def solved(self, episode_return):
        return episode_return > 0


def broken(what: str, only_with_pits: bool = False, **changes) -> tut.Config:
    return jumper(env=tut.OwnDomain("jumper", Broken(what, only_with_pits), _own.Strips()), **changes)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("observations", "gives observations that are not finite"),
        ("nan", "gives rewards that are not finite"),
        ("-inf", "gives rewards that are not finite"),
    ],
)
def test_an_env_that_breaks_its_promises_is_named(what, says):
    with pytest.raises(UserError, match=f"The env 'jumper' {says}"):
        health.try_env(broken(what))


def test_such_an_env_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UserError, match="does not end its episodes: after its max_steps of 20, 8 of 8 "):
        tut.train(broken("episodes"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_env_that_breaks_them_on_levels_that_come_later_is_named_too(tmp_path):
    config = broken("observations", only_with_pits=True, updates=50)
    with pytest.raises(UserError, match=r"The env 'jumper' gives observations that are not finite\."):
        tut.train(config, tmp_path / "run")
    finite(tmp_path / "run", config)


def finite(path, config) -> None:
    """Every checkpoint that was kept holds students of finite numbers."""
    run = tut.Run(path, config.env)
    assert run.checkpoints
    for updates in run.checkpoints:
        leaves = jax.tree.leaves(eqx.filter(run.state(updates).learner, eqx.is_inexact_array))
        assert all(np.isfinite(leaf).all() for leaf in leaves)


def test_students_that_are_not_finite_end_a_training_and_the_last_good_checkpoint_stays(tmp_path):
    config = jumper(ppo=tut.PPO(learning_rate=1e30, max_grad_norm=1e30), log_every=5, checkpoint_every=5)
    with pytest.raises(UserError) as stop:
        tut.train(config, tmp_path / "run")
    assert "in seed 0, the value loss ceased to be finite between student updates 0 and 5." in str(stop.value)
    assert "A smaller --ppo.learning-rate may help." in str(stop.value)
    assert str(stop.value).endswith("The last good checkpoint is 0.")
    finite(tmp_path / "run", config)
    assert [row["updates"] for row in tut.Run(tmp_path / "run", config.env).metrics()] == [5], "it can be seen"


@dataclass(frozen=True)
class Obedient:
    """The jumper, paid for what it is told: a reward is as finite as the action."""

    actions = tut.Box(1)
    max_steps = _own.Jumper.max_steps
    game = _own.Jumper()

    def reset(self, key, level):
        state, obs = self.game.reset(key, level)
        return state, obs.astype(jnp.float32)

    def step(self, key, state, action):
        state, after = self.game.step(key, state, jnp.int32(0))
        return state, tut.Timestep(after.obs.astype(jnp.float32), action[0], after.terminated, after.truncated)

    def solved(self, episode_return):
        return episode_return > 0


def test_of_students_and_rewards_that_are_not_finite_the_students_are_named(tmp_path):
    wild = tut.PPO(learning_rate=1e30, max_grad_norm=1e30)
    rarely = dict.fromkeys(("log_every", "checkpoint_every", "eval_every", "archive_every"), 50)
    config = jumper(env=tut.OwnDomain("jumper", Obedient(), _own.Strips()), ppo=wild, updates=50, **rarely)
    with pytest.raises(
        UserError, match="Training has diverged: in seed 0, the state of the student's optimiser ceased"
    ):
        tut.train(config, tmp_path / "run")
    finite(tmp_path / "run", config)


@pytest.fixture(scope="module")
def state():
    return jax.device_get(initial_state(jumper(seeds=2)))


LOOK = jax.jit(jax.vmap(health.finite))


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_number_of_a_learner_is_not_finite_is_found(state, data):
    """One number of one seed, and the quantity that it belongs to is named, with that seed."""
    leaves, structure = jax.tree.flatten(state.learner)
    n = data.draw(st.sampled_from([n for n, leaf in enumerate(leaves) if leaf.dtype == np.float32 and leaf[0].size]))
    seed, place = data.draw(st.integers(0, 1)), data.draw(st.integers(0, leaves[n][0].size - 1))
    leaves[n] = leaves[n].copy()
    leaves[n][seed].reshape(-1)[place : place + 1] = data.draw(st.sampled_from(BAD))
    harmed = eqx.tree_at(lambda s: s.learner, state, jax.tree.unflatten(structure, leaves))
    what, found = health.diverged(jax.device_get(LOOK(harmed)), [{"seed": 7}, {"seed": 8}])
    assert found == 7 + seed
    assert what in ("the student's parameters", "the state of the student's optimiser")
    assert health.diverged(jax.device_get(LOOK(state)), [{"seed": 7}, {"seed": 8}]) is None


# Settings

SIGNED = ("_return", "_score", "terrain_seed")  # where a negative number means something


def numbers() -> dict[str, tuple[tut.Config, str, type]]:
    """Every number that some preset can be changed in, once for each env and method."""
    found = {}
    for _, config in presets.PRESETS.values():
        for setting in settings_of(config):
            kind = plain(setting.kind)
            of = {"env": type(config.env), "method": type(config.method)}.get(setting.name.partition(".")[0])
            if kind in (int, float):
                found.setdefault(f"{of} {setting.name}", (config, setting.name, kind))
    return found


@pytest.mark.parametrize("value", [*BAD, -1.0, 1e300])
def test_settings_that_mean_nothing_are_refused(value):
    """Not finite, or negative where that means nothing, or larger than the device can hold: by the config itself, or
    when its classroom is set up, before anything is written.
    """
    tried = set()
    for config, name, kind in numbers().values():
        if (kind is int and not value.is_integer()) or (value == -1 and name.endswith(SIGNED)) or name in tried:
            continue
        try:
            wrong = changed(config, {name: kind(value)})
        except UserError:
            continue
        tried.add(name)  # it takes tracing to refuse it
        with pytest.raises(UserError, match=r"\w.*\.$"):
            wrong.classroom()
    assert len(tried) < 3
