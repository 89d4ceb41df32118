"""The real Box2D on injected terrain is gymnasium's own env, and stands in for the walker."""

from __future__ import annotations

import json
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from bipedal.reference import Recorder
from tutelage.env import Env
from tutelage.envs.bipedal import WalkerDomain, real
from tutelage.envs.bipedal.level import make_level
from tutelage.envs.bipedal.terrain import CELL, CELLS, Terrain, build
from tutelage.envs.hosted import Engines, engines_of
from tutelage.errors import UserError
from tutelage.runs import config as configs
from tutelage.runs.evaluate import play_level
from tutelage.runs.presets import preset
from tutelage.runs.run import Run
from tutelage.student.nets import StudentConfig

LEVEL = make_level([2.0, 1, 4, 0.5, 2, 0.5, 1, 6], 5)


@pytest.fixture(scope="module", autouse=True)
def _needs_gymnasium() -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("Box2D")
    real.gymnasium()


class LastUniform(Recorder):
    """Remembers the last uniform number, which is the first push."""

    def uniform(self, low: float, high: float) -> float:
        self.last = self.rng.uniform(low, high)
        return self.last


def untouched(seed: int, *, hardcore: bool):
    """gymnasium's own env after its reset: the env, its first observation, its terrain and the push."""
    from gymnasium.envs.box2d.bipedal_walker import BipedalWalker

    env = BipedalWalker(hardcore=hardcore)
    recorder = LastUniform(env, seed)
    env.np_random = recorder  # pyright: ignore[reportAttributeAccessIssue]
    obs = env.reset()[0]
    corners = [np.array(body.fixtures[0].shape.vertices) for body in reversed(env.terrain)]
    boxes = [c for c in corners if len(c) > 2]
    terrain = Terrain(
        np.float32(env.terrain_x), np.float32(env.terrain_y), np.ones((CELLS, 4), np.float32), np.full(CELLS, -1)
    )  # pyright: ignore[reportArgumentType]
    terrain.box[:, 1] = 0
    for c in boxes:
        first = round(float(c[:, 0].min()) / CELL)
        if first < CELLS:
            terrain.box_id[first] = first
            terrain.box[first] = c[:, 0].min(), c[:, 0].max(), c[:, 1].max(), c[:, 1].min()
    return env, obs, terrain, recorder.last


@pytest.mark.parametrize("hardcore", [False, True])
def test_episodes_are_gymnasiums(hardcore: bool) -> None:
    """The same terrain and push injected: every observation and reward is the same to the last bit.

    The episodes of one engine are compared with those of fresh envs.
    """
    rng, engine = np.random.default_rng(0), None
    for seed in range(4):
        env, first, terrain, force = untouched(seed, hardcore=hardcore)
        engine = engine or real.gymnasium()(2000)
        np.testing.assert_array_equal(engine.begin((terrain, force)).obs, first)
        for _ in range(120):
            action = rng.uniform(-1, 1, 4).astype(np.float32)
            obs, reward, terminated, _, _ = env.step(action)
            after = engine.act(action)
            np.testing.assert_array_equal(after.obs, obs)
            assert after.reward == np.float32(reward)
            assert after.terminated == terminated


def test_injected_terrain_is_the_levels() -> None:
    """All 199 edges and every rectangle of a parametrised level, in gymnasium's order."""
    terrain, force = jax.tree.map(np.asarray, build(LEVEL, "parametrised"))
    engine = real.gymnasium()(2000)
    engine.begin((terrain, force))
    corners = [np.array(body.fixtures[0].shape.vertices) for body in engine.terrain]
    boxes = [c for c in corners if len(c) == 4]
    assert [len(c) for c in corners] == [4] * len(boxes) + [2] * (CELLS - 1)
    ids, first = np.unique(terrain.box_id, return_index=True)
    assert len(boxes) == (ids >= 0).sum()
    for c, (left, right, top, bottom) in zip(boxes, terrain.box[first[ids >= 0]], strict=True):
        assert (c[:, 0].min(), c[:, 0].max(), c[:, 1].max(), c[:, 1].min()) == (left, right, top, bottom)
    starts = np.array([c[0] for c in corners[len(boxes) :]])
    np.testing.assert_array_equal(starts, np.stack([terrain.x[:-1], terrain.y[:-1]], axis=1))
    friction = {body.fixtures[0].friction for body in engine.terrain}
    assert friction == {2.5}


def rollouts(env: real.RealWalker, count: int, steps: int):
    """Random actions on a few levels in one compiled program; time steps `[steps, count]`."""
    keys = random.split(random.key(0), count)
    levels = jax.vmap(make_level, in_axes=(None, 0))(LEVEL.genes, jnp.arange(count))

    @jax.jit
    def play():
        def step(state, key):
            actions = random.uniform(key, (count, 4), minval=-1.0)
            return jax.vmap(env.step)(keys, state, actions)

        return jax.lax.scan(step, jax.vmap(env.reset)(keys, levels)[0], random.split(random.key(1), steps))

    return jax.tree.map(np.asarray, play())


def test_stands_in_for_the_env() -> None:
    """It is an env, can be compiled and vmapped, ends at its limit and is quiet afterwards; twice the same."""
    env = real.RealWalker("parametrised", 30)
    assert isinstance(env, Env)
    assert hash(env) == hash(real.RealWalker("parametrised", 30))
    state, after = rollouts(env, 3, 35)
    assert state.over.all()
    done = after.terminated | after.truncated
    over_at = done.argmax(axis=0)
    for n, last in enumerate(over_at):
        assert done[:, n].sum() == 1
        assert (after.reward[last + 1 :, n] == 0).all()
        assert bool(after.truncated[last, n]) == (last == 29)
    jax.tree.map(np.testing.assert_array_equal, rollouts(env, 3, 35), (state, after))
    assert not engines_of(env).waiting


def test_a_game_that_is_not_at_hand_is_played_again() -> None:
    """What an engine shows depends on level and actions alone, not on which engine is asked when."""
    env = real.RealWalker("parametrised", 40)
    game = jax.tree.map(np.asarray, env.reset(random.key(0), LEVEL)[0])
    game = game._replace(actions=np.random.default_rng(0).uniform(-1, 1, game.actions.shape).astype(np.float32))
    engines = Engines(env)
    one_by_one = [engines.play(game._replace(time=np.int32(n))) for n in range(9)]
    at_once = Engines(env).play(game._replace(time=np.int32(8)))
    jax.tree.map(np.testing.assert_array_equal, one_by_one[-1], at_once)
    assert sum(map(len, engines.waiting.values())) == 1


def test_suites_are_played_in_the_original() -> None:
    """All levels by name, under the same rules and limits."""
    ours, original = WalkerDomain().suites(), WalkerDomain().real_suites()
    assert [*ours] == [*original]
    for name, levels in ours.items():
        for here, there in zip(levels, original[name], strict=True):
            assert isinstance(there.env, real.RealWalker)
            assert (here.name, here.draw) == (there.name, there.draw)
            assert (here.env.rules, here.env.max_steps) == (there.env.rules, there.env.max_steps)


@pytest.mark.parametrize("env", ["bipedal", "bipedal-poet"])
def test_a_run_finds_its_suite_in_the_original(env: str, tmp_path) -> None:
    """As `tutelage eval RUN --suite bipedal --real` asks for it; without a name, the domain's own."""
    (tmp_path / "config.json").write_text(json.dumps(configs.to_json(preset(env, "accel"), "accel")))
    run = Run(tmp_path)
    assert run.suite("bipedal", real=True)[1][1].env == real.RealWalker("hardcore", 2000)
    assert run.suite(real=True)[0] == env


@pytest.mark.slow
def test_a_published_policy_walks(shared) -> None:
    """One of the paper's ACCEL policies, through the evaluation of suites: about 320 on Basic."""
    weights = np.load(shared / "data" / "bipedal_policies" / "accel_30k_s2.npz")
    domain, config = WalkerDomain(), StudentConfig(memory=False, hidden=64, separate=True)
    student = config.build(domain.encoder(random.key(0)), domain.env().actions, key=random.key(0))
    names = ("w0", "b0", "w1", "b1", "w2", "b2", "log_std")
    student = eqx.tree_at(
        lambda s: [*(x for layer in s.actor.layers for x in (layer.weight, layer.bias)), s.log_std],
        student,
        [jnp.asarray(weights[name], jnp.float32) for name in names],
    )
    basic = domain.real_suites()["bipedal"][0]
    outcome = play_level(jax.tree.map(lambda x: x[None], student), (0,), basic, 6, key=random.key(1))
    assert float(outcome.returns.mean()) > 305


def test_without_box2d_it_says_what_to_install(monkeypatch) -> None:
    """One sentence with the command."""
    monkeypatch.setitem(sys.modules, "Box2D", None)
    real.gymnasium.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'tutelage\[real\]'"):
        WalkerDomain().real_suites()
    real.gymnasium.cache_clear()
