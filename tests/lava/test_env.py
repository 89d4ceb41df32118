"""The rules of the lava grid that do not need the real MiniHack to be told."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from tutelage.env import Discrete, Env
from tutelage.envs.lava import Lava
from tutelage.envs.lava.env import HERO, LEFT, TOP, full_map
from tutelage.envs.lava.level import level_from_rows

N, E, S, W, NE, SE, SW, NW = range(8)
LEVEL = level_from_rows(["S......", "L......", ".G.....", ".......", ".......", ".......", "......."])


def play(env: Lava, actions: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions (x, y), rewards and both ends of a game on the level."""

    def step(state, action):
        state, seen = env.step(random.key(0), state, action)
        return state, (jnp.stack([state.x, state.y]), seen.reward, seen.terminated, seen.truncated)

    state, _ = env.reset(random.key(0), LEVEL)
    return jax.tree.map(np.asarray, jax.lax.scan(step, state, jnp.array(actions))[1])


def test_moves_are_minihacks() -> None:
    """Eight compass moves, in MiniHack's order."""
    places, *_ = play(Lava(), [E, SE, E, S, W, N, NE, SW, NW])
    path = [(1, 0), (2, 1), (3, 1), (3, 2), (2, 2), (2, 1), (3, 0), (2, 1), (1, 0)]
    np.testing.assert_array_equal(places, path)


@pytest.mark.parametrize(
    ("penalty", "rewards"), [("frozen", [-0.01, 0, -0.01, 0, 1]), ("every-step", [-0.01] * 4 + [0.99])]
)
def test_penalties(penalty, rewards: list[float]) -> None:
    """Steps into stone cost time that the game does not count, or every step costs."""
    _, found, terminated, truncated = play(Lava(penalty=penalty), [NW, E, N, S, S])
    np.testing.assert_allclose(found, rewards, atol=1e-7)
    np.testing.assert_array_equal(terminated, [False] * 4 + [True])
    assert not truncated.any()


def test_lava_ends_the_episode_for_nothing() -> None:
    """No reward, and under the default no penalty either."""
    _, rewards, terminated, _ = play(Lava(), [S])
    assert (rewards[0], terminated[0]) == (0, True)


@pytest.mark.parametrize("penalty", ["frozen", "every-step"])
def test_a_return_tells_whether_it_was_solved(penalty) -> None:
    """In the worst case that still counts, and in the best that does not."""
    env = Lava(penalty=penalty)
    worst = play(env, [N] * 97 + [E, SE, W])[1][:-1]  # reaches no goal: W of (2, 1) is (1, 1)
    solved = play(env, [N] * 97 + [E, SW])[1]  # SW of (1, 0) is lava
    assert not env.solved(jnp.array([worst.sum(), solved.sum(), 0.0])).any()
    late = play(env, [N] * 96 + [E, S, S])[1]
    assert env.solved(jnp.array(late.sum()))
    np.testing.assert_allclose(late.sum(), 1 - 0.01 * (96 if penalty == "frozen" else 99), atol=1e-5)


def test_the_network_of_nethack_crops_off_centre() -> None:
    """Rows and columns `range(-9 // 2, 9 // 2)` around the student, everywhere in the room."""
    env = Lava(crop="off-centre")
    for x, y in itertools.product((0, 3, 6), (0, 2, 6)):
        state = env.reset(random.key(0), LEVEL)[0]._replace(x=jnp.int32(x), y=jnp.int32(y))
        seen = env.observe(state)
        around = np.arange(-9 // 2, 9 // 2)
        np.testing.assert_array_equal(seen.crop, full_map(seen.glyphs)[TOP + y + around][:, LEFT + x + around])


def test_a_drawn_hero_stays_for_an_episode() -> None:
    """It is the key's, and nothing but the status line knows of it."""
    env = Lava(hero="drawn")
    keys = random.split(random.key(0), 50)
    states, seen = jax.vmap(env.reset, in_axes=(0, None))(keys, LEVEL)
    assert len(np.unique(seen.blstats[:, HERO], axis=0)) > 45
    states, after = jax.vmap(env.step)(keys[::-1], states, jnp.full(50, E))
    np.testing.assert_array_equal(after.obs.blstats[:, HERO], seen.blstats[:, HERO])
    fixed = Lava().reset(keys[0], LEVEL)[1]
    others = np.delete(seen.blstats, HERO, axis=1)
    np.testing.assert_array_equal(others, np.tile(np.delete(fixed.blstats, HERO), (50, 1)))


def test_too_late() -> None:
    """The time limit comes before the goal, as in MiniHack."""
    _, rewards, terminated, truncated = play(Lava(3), [E, S, S])
    assert (rewards[-1], terminated[-1], truncated[-1]) == (0, False, True)
    _, rewards, terminated, truncated = play(Lava(2), [E, SW])
    assert (rewards[-1], terminated[-1], truncated[-1]) == (0, True, False), "death comes before the time limit"


def test_is_an_env() -> None:
    """It fulfils the protocol and is hashable by value."""
    assert isinstance(Lava(), Env)
    assert Lava().actions == Discrete(8)
    assert hash(Lava(50)) == hash(Lava(50))
    assert Lava() != Lava(50)


@pytest.mark.parametrize("wrong", [{"max_steps": 1}, {"max_steps": 101}])
def test_refuses_nonsense(wrong: dict) -> None:
    """Time limits under which nothing could be solved, or a return would not tell."""
    with pytest.raises(ValueError, match=r"\.$"):
        Lava(**wrong)
