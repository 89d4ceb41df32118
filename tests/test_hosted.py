"""An env that engines play on the host: pure functions, whatever becomes of the engines."""

from __future__ import annotations

import random as luck
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from tutelage.env import Box, Discrete, Env
from tutelage.envs.hosted import Engines, Game, HostedEnv, engines_of, seen

LIMIT = 9


class Adder:
    """Sums the actions, from a level's number on; at 12 the game is won. It cannot go back."""

    made = 0

    def __init__(self, limit: int) -> None:
        Adder.made += 1
        self.limit = limit

    def begin(self, opening):
        self.total, self.time = int(opening), 0
        return self._seen()

    def act(self, action):
        self.total, self.time = self.total + int(action), self.time + 1
        won = self.total >= 12
        return self._seen(self.total / 2, won, self.time >= self.limit and not won)

    def _seen(self, *outcome):
        return seen({"total": np.int32(self.total), "time": np.full(2, self.time, np.float32)}, *outcome)


@dataclass(frozen=True)
class Adding(HostedEnv):
    """Played by adders; `kind` keeps the engines of one test from another's."""

    kind: str
    max_steps: int = LIMIT

    @property
    def actions(self):
        return Discrete(4)

    @property
    def nothing(self):
        return {"total": np.int32(0), "time": np.zeros(2, np.float32)}

    def new_engine(self, opening):
        return Adder(self.max_steps)

    def solved(self, episode_return):
        return episode_return > 0


def expected(start: int, actions: list[int]) -> tuple[list[int], list[float], list[bool], list[bool]]:
    """Totals, rewards, wins and ends by the time limit, as a plain loop has them."""
    totals, rewards, won, late, total, over = [], [], [], [], start, False
    for n, action in enumerate(actions):
        total = 0 if over else total + action
        totals.append(total)
        rewards.append(total / 2)
        won.append(total >= 12)
        late.append(not over and n + 1 >= LIMIT and total < 12)
        over |= won[-1] or late[-1]
        total = 0 if over else total
    return totals, rewards, won, late


def play(env: Adding, starts: jax.Array, actions: jax.Array):
    """Games `[games]` with actions `[time, games]` in one compiled program."""
    keys = random.split(random.key(0), len(starts))

    @jax.jit
    def run(starts, actions):
        games, first = jax.vmap(env.reset)(keys, starts)
        return first, jax.lax.scan(lambda games, a: jax.vmap(env.step)(keys, games, a), games, actions)

    return jax.tree.map(np.asarray, run(starts, actions))


def check(starts, actions, first, after) -> None:
    np.testing.assert_array_equal(first["total"], starts)
    for n, start in enumerate(starts.tolist()):
        totals, rewards, won, late = expected(start, actions[:, n].tolist())
        np.testing.assert_array_equal(after.obs["total"][:, n], totals)
        np.testing.assert_array_equal(after.reward[:, n], rewards)
        np.testing.assert_array_equal(after.terminated[:, n], won)
        np.testing.assert_array_equal(after.truncated[:, n], late)


def games(seed: int, count: int, steps: int = LIMIT + 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, count).astype(np.int32), rng.integers(0, 4, (steps, count)).astype(np.int32)


def test_many_games_at_once_are_each_played_as_one_alone():
    env = Adding("many")
    assert isinstance(env, Env)
    starts, actions = games(0, 40)
    first, (state, after) = play(env, starts, actions)
    check(starts, actions, first, after)
    assert after.terminated.any()
    assert after.truncated.any()
    assert state.over.all()


def test_games_that_open_alike_and_go_alike_are_still_two():
    env = Adding("alike")
    starts, actions = games(1, 3)
    twice = np.tile(starts, 2), np.tile(actions, (1, 2))
    first, (_, after) = play(env, *twice)
    check(*twice, first, after)


def test_engines_that_are_lost_are_replaced_by_playing_the_game_again():
    env = Adding("lost")
    starts, actions = games(2, 6)
    step = jax.jit(jax.vmap(env.step, in_axes=(None, 0, 0)))
    state, first = jax.jit(jax.vmap(env.reset, in_axes=(None, 0)))(random.key(0), starts)
    after, rng = [], luck.Random(0)
    for a in actions:
        pool = engines_of(env)
        for where in rng.sample(sorted(pool.waiting), len(pool.waiting) // 2):
            del pool.waiting[where]
        state, seen_now = step(random.key(0), state, a)
        after.append(seen_now)
    stacked = jax.tree.map(lambda *x: np.stack(x), *after)
    check(starts, actions, jax.tree.map(np.asarray, first), stacked)


def test_a_state_may_be_continued_in_more_than_one_way():
    """As a pure function must allow: the second way is played from the start again."""
    env = Adding("ways")
    state, _ = env.reset(random.key(0), jnp.int32(1))
    state, _ = env.step(random.key(0), state, jnp.int32(2))
    for action in (0, 3, 1):
        assert env.step(random.key(0), state, jnp.int32(action))[1].obs["total"] == 3 + action


def test_seeds_are_a_further_axis():
    env = Adding("seeds")
    starts, actions = games(3, 10)
    keys = random.split(random.key(0), (2, 5))
    levels, moves = starts.reshape(2, 5), actions.reshape(-1, 2, 5)
    every = jax.vmap(jax.vmap(env.reset)), jax.vmap(jax.vmap(env.step))

    @jax.jit
    def run():
        state, first = every[0](keys, levels)
        return first, jax.lax.scan(lambda s, a: every[1](keys, s, a), state, jnp.asarray(moves))[1]

    first, after = run()
    assert after.reward.shape == (LIMIT + 3, 2, 5)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(len(x), 10, *x.shape[3:]), after)
    check(starts, actions, {"total": np.asarray(first["total"]).reshape(-1)}, flat)


def test_a_loop_ends_when_all_games_have():
    env = Adding("loop")
    starts, _ = games(4, 8)

    @jax.jit
    def run():
        state, _ = jax.vmap(env.reset, in_axes=(None, 0))(random.key(0), starts)
        ones = jnp.ones(8, jnp.int32)
        go = jax.vmap(env.step, in_axes=(None, 0, 0))
        return jax.lax.while_loop(lambda s: ~s.over.all(), lambda s: go(random.key(0), s, ones)[0], state)

    assert (run().time == LIMIT).all()
    assert not engines_of(env).waiting


def test_engines_are_used_again_and_do_not_grow_in_number_with_finished_games():
    env = Adding("many times")
    made = Adder.made
    for seed in range(5):
        play(env, *games(seed, 7))
        assert not engines_of(env).waiting
        assert sum(map(len, engines_of(env).idle.values())) == 7
    assert Adder.made == made + 7


def test_an_idle_engine_that_knows_the_opening_is_preferred():
    engines, threes = Engines(Adding("preferred")), np.full(LIMIT, 3, np.int32)
    zero, one, two = (Game(np.int32(n), threes, np.int32(0), np.bool_(False)) for n in range(3))
    for time in range(5):
        for game in (zero, one):
            after = engines.play(game._replace(time=np.int32(time)))
    assert after.terminated
    (knows_zero,), (knows_one,) = engines.idle.values()
    for game, engine in ((one, knows_one), (two, knows_zero)):
        engines.play(game)
        assert engines.waiting[game.opening.tobytes(), b""] == [engine]
    assert not engines.idle


@pytest.mark.parametrize(
    ("space", "shape", "dtype"), [(Discrete(3), (LIMIT,), "int32"), (Box(2), (LIMIT, 2), "float32")]
)
def test_actions_of_any_space_are_kept(space, shape, dtype):
    @dataclass(frozen=True)
    class Other(Adding):
        @property
        def actions(self):
            return space

    actions = Other("space").reset(random.key(0), jnp.int32(0))[0].actions
    assert (actions.shape, actions.dtype) == (shape, dtype)
