"""Mazes and lava grids in engines: every number is JAX's."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from page.played import Called, assert_close, assert_equal
from tutelage.curricula.buffer import empty
from tutelage.env import TestLevel
from tutelage.envs.lava import LavaDomain
from tutelage.envs.maze import MazeDomain
from tutelage.page import engines, keeping
from tutelage.page.scoring import Episode, Setting, score
from tutelage.runs.presets import PRESETS

DOMAINS = {
    "maze": MazeDomain(),
    "maze of sets": MazeDomain(generator="empty", blocks=0, edit_order="set"),
    "maze by reset": MazeDomain(generator="uniform"),
    "lava": LavaDomain(),
    "lava drawn": PRESETS["lava/dr-hero-penalty"][1].env,
    "lava aside": PRESETS["lava/dr-crop"][1].env,
}
KEYS = jax.random.split(jax.random.key(3), 12)


@lru_cache
def called(name: str) -> Called:
    return Called(engines.for_domain(DOMAINS[name]))


@pytest.mark.parametrize("name", DOMAINS)
def test_levels_are_drawn_edited_and_measured_alike(name: str) -> None:
    """From the same keys."""
    design, ours = DOMAINS[name].design(), called(name)
    edits = 5 if name.startswith("maze") else 1
    sample, edit = jax.jit(design.sample), jax.jit(lambda key, level: design.edit(key, level, edits))
    describe = jax.jit(design.describe)
    for key in KEYS:
        level = sample(key)
        assert_equal(ours("sample", key), level)
        child = edit(key, level)
        assert_equal(ours(f"edit_{edits}", key, level), child)
        assert_equal(ours("describe", child), describe(child))


@pytest.mark.parametrize("name", ["maze", "lava", "lava drawn"])
def test_two_hundred_steps(name: str) -> None:
    """Each from the state that JAX has come to; a reward of mazes is rounded as its compiler likes."""
    domain, ours = DOMAINS[name], called(name)
    env, design = domain.env(), domain.design()
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    level = design.edit(KEYS[0], design.sample(KEYS[0]), 20)
    state, _ = begun = reset(KEYS[1], level)
    assert_equal(ours("reset", KEYS[1], level), begun)
    rng, limit = np.random.default_rng(0), jnp.int32(env.max_steps)
    for _ in range(200):
        action = jnp.int32(rng.choice([0, 1, 2, 2, 2] if name == "maze" else 8))
        after, seen = step(KEYS[2], state, action)
        found = ours("step", KEYS[2], state, action, limit)
        *exact, reward, terminated, truncated = found
        assert_equal([*exact, terminated, truncated], (after, seen.obs, seen.terminated, seen.truncated))
        np.testing.assert_allclose(reward, seen.reward, rtol=2e-7)
        state = reset(KEYS[1], level)[0] if seen.done else after


def test_time_runs_out_when_it_is_said_to() -> None:
    """One engine serves all limits."""
    env, ours = MazeDomain(max_steps=3).env(), called("maze")
    level = MazeDomain().design().sample(KEYS[0])
    state, _ = jax.jit(env.reset)(KEYS[0], level)
    step = jax.jit(env.step)
    for time in range(1, 4):
        state, seen = step(KEYS[0], state, jnp.int32(0))
        *_, truncated = ours("step", KEYS[0], state._replace(time=state.time - 1), jnp.int32(6), jnp.int32(3))
        assert bool(truncated) == bool(seen.truncated) == (time == 3)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_scores_of_an_episode(bootstrap: bool) -> None:
    """With and without a value of what comes after it; longer ones than JAX is given are padded."""
    env, ours = MazeDomain().env(), called("maze")
    longest = ours.engine.layouts["episode"].leaves[0].shape[0]
    found = jax.jit(lambda episode, setting: score(env, episode, setting))
    for length, reward in ((1, 0.0), (30, 0.7), (longest, 0.0)):
        steps = jnp.arange(longest)
        value, following = jax.random.normal(KEYS[0], (2, longest)) * (steps < length)
        last = steps == length - 1
        episode = Episode(value, bootstrap * following, reward * last, last & (reward > 0), last & (reward == 0))
        setting = Setting(*jnp.float32([0.995, 0.95, 2.0, 0.4]))
        want = found(episode, setting)
        assert_close(ours("score", episode, setting), want, within=1e-6)
        assert int(want.length) == length
        assert bool(want.solved) == (reward > 0)


def test_kept_levels() -> None:
    """The buffer takes in, renews and draws as JAX's."""
    design, ours = DOMAINS["maze"].design(), called("maze")
    config = keeping.small(PRESETS["maze/dr"][1].method.buffer)  # pyright: ignore[reportAttributeAccessIssue]
    insert, pick, renew = (
        jax.jit(f) for f in (partial(keeping.insert, config), partial(keeping.pick, config), keeping.renew)
    )
    buffer = empty(design.sample(KEYS[0]), config)
    assert_equal(ours("empty"), buffer)
    for k, key in enumerate(KEYS[:4]):
        facts = jnp.int32(k), jnp.int32(0), jnp.int32(k), jnp.float32(k / 7), jnp.float32(1 - k / 5)
        candidate = keeping.Candidate(design.sample(KEYS[k // 2]), *facts)
        after = insert(buffer, candidate)
        assert_equal(ours("insert", buffer, candidate), after)
        picked = pick(key, after[0])
        assert_equal(ours("pick", key, after[0]), picked)
        renewal = keeping.Renewal(picked[1], jnp.float32(0.9), jnp.float32(0.3))
        buffer = renew(picked[0], renewal)
        assert_equal(ours("renew", picked[0], renewal), buffer)


@pytest.mark.parametrize("name", ["maze", "lava"])
def test_what_pictures_need(name: str) -> None:
    """A shortest path, and in mazes what the student sees."""
    env, design, ours = DOMAINS[name].env(), DOMAINS[name].design(), called(name)
    functions = {role: (of, jax.jit(function)) for role, (of, function) in env.exports().items()}
    for key in KEYS[:4]:
        level = design.sample(key)
        given = {"level": level, "state": env.reset(key, level)[0]}
        for role, (of, function) in functions.items():
            assert_equal(ours(role, given[of]), function(given[of]))


def held_out() -> list[tuple[MazeDomain | LavaDomain, TestLevel]]:
    return [
        (domain, test)
        for domain in (MazeDomain(), LavaDomain())
        for suite in domain.suites().values()
        for test in suite
    ]


def check_held_out(domain, test: TestLevel) -> None:
    """Drawn, begun and played as by JAX."""
    ours = Called(engines.for_level(test, domain))
    level = jax.jit(test.draw)(KEYS[0])
    assert_equal(ours("draw", KEYS[0]), level)
    begun = jax.jit(test.env.reset)(KEYS[1], level)
    assert_equal(ours("reset", KEYS[1], level), begun)
    after, seen = jax.jit(test.env.step)(KEYS[2], begun[0], jnp.int32(2))
    found = ours("step", KEYS[2], begun[0], jnp.int32(2), jnp.int32(test.env.max_steps))
    assert_equal(found[:-3], (after, seen.obs))


@pytest.mark.parametrize("name", ["SimpleCrossing", "SmallCorridor"])
def test_held_out_levels(name: str) -> None:
    check_held_out(*next((domain, test) for domain, test in held_out() if test.name == name))


@pytest.mark.slow
def test_all_held_out_levels() -> None:
    for domain, test in dict.fromkeys(held_out()):
        check_held_out(domain, test)
