"""The lava grid plays like the real MiniHack, step for step."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from scipy.stats import chisquare

from tutelage import cli
from tutelage.envs.hosted import Engines
from tutelage.envs.lava import Lava, LavaDesign, LavaDomain, LavaLevel, real
from tutelage.envs.lava.env import BLSTATS, HERO, full_map
from tutelage.envs.lava.level import level_from_rows
from tutelage.errors import UserError
from tutelage.runs import config as configs
from tutelage.runs.evaluate import evaluate, play_level
from tutelage.runs.presets import preset
from tutelage.runs.run import Run
from tutelage.student.nets import StudentConfig

HIT_POINTS = 10


@pytest.fixture(scope="module", autouse=True)
def _needs_minihack() -> None:
    pytest.importorskip("nle")
    real.minihack()


class Trace(NamedTuple):
    """Everything there is to see of a game, `[levels, time, …]`; `first` is what each game begins with."""

    map: Any
    crop: Any
    blstats: Any
    reward: Any
    terminated: Any
    truncated: Any
    first_map: Any
    first_blstats: Any


def ours(env: Lava, levels: LavaLevel, actions: jax.Array, heroes: np.ndarray | None = None) -> Trace:
    """Plays the actions on each level, from the start again whenever an episode ends."""
    key = random.key(0)

    def play(level: LavaLevel, actions: jax.Array, hero: jax.Array) -> Trace:
        first = env.reset(key, level)[0]._replace(hero=hero)
        opening = env.observe(first)

        def step(state, action):
            state, seen = env.step(key, state, action)
            state = jax.tree.map(lambda a, b: jnp.where(seen.done, a, b), first, state)
            obs = seen.obs
            rest = seen.reward, seen.terminated, seen.truncated, full_map(opening.glyphs), opening.blstats
            return state, Trace(full_map(obs.glyphs), obs.crop, obs.blstats, *rest)

        return jax.lax.scan(step, first, actions)[1]

    heroes = np.tile(BLSTATS[HERO], (len(actions), 1)) if heroes is None else heroes
    return Trace(*map(np.asarray, jax.jit(jax.vmap(play))(levels, actions, heroes)))


def minihacks(env: Lava, levels: LavaLevel, actions: jax.Array) -> Trace:
    """The same in the real MiniHack."""
    original, engine, traces = real.RealLava(env.max_steps, env.penalty, env.crop, env.hero), None, []
    for level, played in zip(map(LavaLevel, *jax.tree.map(np.asarray, levels)), np.asarray(actions), strict=True):
        opening = original.opening(random.key(len(traces)), level)
        engine = engine or original.new_engine(opening)
        traces.append(_minihack(engine, opening, played))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *traces)


def _minihack(engine, opening: real.Opening, actions: np.ndarray) -> Trace:
    def begin():
        return engine.begin(opening).obs.blstats, engine.shown["glyphs"]

    (blstats, glyphs), trace = begin(), []
    for action in actions:
        after = engine.act(action)
        obs = engine.shown["glyphs"], after.obs.crop, after.obs.blstats
        trace.append((*obs, after.reward, after.terminated, after.truncated, glyphs, blstats))
        if after.terminated or after.truncated:
            blstats, glyphs = begin()
    return Trace(*(np.array(column) for column in zip(*trace, strict=True)))


def random_levels(count: int, seed: int) -> LavaLevel:
    """A third each of the three generators."""
    designs = (LavaDesign("binomial"), LavaDesign("uniform"), LavaDesign("empty"))
    keys = random.split(random.key(seed), (3, count // 3))
    levels = [jax.vmap(design.sample)(k) for design, k in zip(designs, keys, strict=True)]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *levels)


OTHER = Lava(12, "every-step", "off-centre", "drawn")


@pytest.mark.parametrize(("env", "count"), [(Lava(), 210), (OTHER, 60)], ids=["default", "other"])
def test_plays_like_minihack(env: Lava, count: int) -> None:
    """Whole map, crop, status line, reward and end of random games on random levels, given the hero of each game."""
    levels = random_levels(count, seed=env.max_steps)
    actions = random.randint(random.key(1), (count, 40), 0, 8)
    expected = minihacks(env, levels, actions)
    heroes = expected.first_blstats[:, 0, HERO]
    assert (len(np.unique(heroes, axis=0)) > count // 2) == (env.hero == "drawn")
    found = ours(env, levels, actions, heroes)
    burnt = expected.terminated & (expected.reward <= 0)
    arrived = expected.terminated & (expected.reward > 0)
    assert burnt.sum() > count
    assert arrived.sum() > count // 6
    assert (expected.truncated.sum() > 10) == (env.max_steps == 12)
    dying = burnt[..., None] & (np.arange(27) == HIT_POINTS)
    expected = expected._replace(blstats=np.where(dying, BLSTATS, expected.blstats))  # the last screen of a first turn
    for name in Trace._fields:
        have, want = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(have, want, atol=1e-7 if name == "reward" else 0, err_msg=name)


def test_heroes_are_rolled_as_nethack_rolls_them() -> None:
    """Attributes of 400 real games and of 40,000 of ours have one distribution, and go together in the same way."""
    original = real.RealLava(hero="drawn")
    level = level_from_rows(["S.....G", *["......."] * 6])
    opening = original.opening(random.key(0), level)
    engine = original.new_engine(opening)
    games = [engine.begin(opening._replace(seed=jnp.int32(seed))).obs.blstats for seed in range(400)]
    theirs = np.array(games)[:, HERO]
    keys = random.split(random.key(1), 40_000)
    mine = np.asarray(jax.jit(jax.vmap(lambda key: Lava(hero="drawn").reset(key, level)[1].blstats[HERO]))(keys))
    assert len(np.unique(theirs, axis=0)) > 350
    for a, b in zip(theirs.T, mine.T, strict=True):
        values, counts = np.unique(a, return_counts=True)
        expected = np.array([(b == v).mean() for v in values]) * len(a)
        assert (expected > 0).all(), "NetHack rolls nothing that we do not"
        usual = expected >= 5
        rest = [counts[~usual].sum(), counts[usual].sum()], [len(a) - expected[usual].sum(), expected[usual].sum()]
        for have, want in ((counts[usual], expected[usual] * counts[usual].sum() / expected[usual].sum()), rest):
            assert chisquare(have, want).pvalue > 1e-3
    np.testing.assert_allclose(np.corrcoef(theirs.T), np.corrcoef(mine.T), atol=0.2)


def test_the_time_limit_is_minihacks() -> None:
    """A goal reached at the 100th step pays nothing any more; at the 99th it does."""
    levels = jax.tree.map(lambda leaf: leaf[None], level_from_rows(["SG.....", *["......."] * 6]))
    for bumps, reward in ((99, 0), (98, 1)):
        actions = jnp.array([[0] * bumps + [1]])
        found, expected = ours(Lava(), levels, actions), minihacks(Lava(), levels, actions)
        assert expected.reward[0, -1] == reward
        for name in Trace._fields:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-7, err_msg=name)


def test_every_tile_and_move_plays_like_minihack() -> None:
    """All 8 moves from all 49 tiles: the game's time stands still exactly where the room ends."""
    levels = [make_start(loc) for loc in range(49)]
    levels = jax.tree.map(lambda *leaves: jnp.stack(leaves), *levels)
    actions = jnp.tile(jnp.array([[0, 2, 1, 3, 4, 6, 5, 7]]), (49, 1))
    found, expected = ours(Lava(2), levels, actions), minihacks(Lava(2), levels, actions)
    for name in ("map", "crop", "reward", "terminated", "truncated"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-7, err_msg=name)
    assert (expected.reward[:, ::2] < 0).sum() == 2 * 7 + 2 * 13


def make_start(loc: int) -> LavaLevel:
    """A level without lava that starts here."""
    return LavaLevel(jnp.zeros((7, 7), bool), jnp.int32(loc), jnp.int32((loc + 24) % 49))


def two_students(domain: LavaDomain) -> Any:
    """Untrained ones, stacked, that prefer different directions."""
    config = StudentConfig(memory=False, hidden=8, head=0)
    student = config.build(domain.encoder(random.key(0)), domain.env().actions, key=random.key(1))
    return jax.tree.map(lambda x: jnp.stack([30 * x, -30 * x]), student)


def test_a_student_plays_the_same_episodes_in_both() -> None:
    """Same draws, same actions: lengths, ends and returns agree to the last episode."""
    domain = LavaDomain()
    suites = domain.suites()["lava"], domain.real_suites()["lava"]
    found, expected = (play_level(two_students(domain), (0, 1), s[1], 8, key=random.key(2)) for s in suites)
    np.testing.assert_array_equal(found.length, expected.length)
    np.testing.assert_array_equal(found.solved, expected.solved)
    np.testing.assert_allclose(found.returns, expected.returns, atol=1e-6)


def test_suites_are_played_in_the_original() -> None:
    """All levels by name, with the same results, whether students play together or one after another."""
    domain = LavaDomain(max_steps=40)
    together, one_by_one = (
        evaluate(two_students(domain), (0, 1), suites["lava"], 3, together=together)
        for suites, together in ((domain.suites(), True), (domain.real_suites(), False))
    )
    assert [(r.level, r.seed) for r in together] == [(r.level, r.seed) for r in one_by_one]
    assert [r.solved_rate for r in together] == [r.solved_rate for r in one_by_one]
    assert [r.mean_length for r in together] == [r.mean_length for r in one_by_one]


def test_a_game_that_is_not_at_hand_is_played_again() -> None:
    """What an engine shows depends on level and actions alone, not on which engine is asked when."""
    env, level = real.RealLava(), level_from_rows(["S......", *["......."] * 5, "......G"])
    game = jax.tree.map(np.asarray, env.reset(random.key(0), level)[0])
    game = game._replace(actions=np.full_like(game.actions, 5))
    engines = Engines(env)
    one_by_one = [engines.play(game._replace(time=np.int32(n))) for n in range(4)]
    at_once = Engines(env).play(game._replace(time=np.int32(3)))
    jax.tree.map(np.testing.assert_array_equal, one_by_one[-1], at_once)
    assert [engines.play(game._replace(time=np.int32(n))).reward for n in (4, 5, 6)] == [0, 0, 1]
    assert not engines.waiting
    assert sum(map(len, engines.idle.values())) == 1


TINY = shlex.split(
    "--student.hidden 8 --slots 4 --steps 20 --env.max-steps 20 --method.buffer.capacity 8 --ppo.epochs 1 --updates 2 "
    "--eval-every 0"
)


def test_eval_real_on_the_command_line(tmp_path) -> None:
    """It writes the same figures as without, beside them."""
    run = tmp_path / "run"
    assert cli.main(["train", "lava", "small", *TINY, "--out", str(run)]) == 0
    for flag in ([], ["--real"]):
        assert cli.main(["eval", str(run), "--suite", "lava", "--episodes", "2", *flag]) == 0
    ours, original = (run / "evals" / f"lava-00000002{mark}.csv" for mark in ("", "-real"))
    assert ours.read_text() == original.read_text()


def test_an_env_without_an_original_says_so(tmp_path) -> None:
    """Mazes have none to play in."""
    data = configs.to_json(preset("maze", "accel"), "accel")
    (tmp_path / "config.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match="The env 'maze' has no original to play in"):
        Run(tmp_path).suite(real=True)


def test_without_minihack_it_says_what_to_install(monkeypatch) -> None:
    """One sentence with the command."""
    monkeypatch.setitem(sys.modules, "minihack", None)
    real.minihack.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'tutelage\[real\]'"):
        LavaDomain().real_suites()
    real.minihack.cache_clear()
