"""The maze plays like MiniGrid."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from tutelage.env import Discrete, Env
from tutelage.envs.maze import Maze, MazeDesign, MazeLevel
from tutelage.envs.maze.level import level_from_rows

FORWARD_BIASED = jnp.array([0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 3, 4, 5, 6])


class Trace(NamedTuple):
    """Everything an agent sees of a run, `[layouts, time, …]`; `first` is the observation after each reset."""

    image: np.ndarray
    direction: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    first_image: np.ndarray


def ours(env: Maze, levels: MazeLevel, actions: jax.Array) -> Trace:
    """Plays the actions on each level, from the start again whenever an episode ends."""
    key = random.key(0)

    def play(level: MazeLevel, actions: jax.Array):
        first, first_obs = env.reset(key, level)

        def step(state, action):
            state, seen = env.step(key, state, action)
            state = jax.tree.map(lambda a, b: jnp.where(seen.done, a, b), first, state)
            return state, (*seen.obs, *seen[1:], first_obs.image)

        return jax.lax.scan(step, first, actions)[1]

    return Trace(*map(np.asarray, jax.jit(jax.vmap(play))(levels, actions)))


def minigrids(env: Maze, levels: MazeLevel, actions: jax.Array) -> Trace:
    """The same in the real MiniGrid."""
    host = jax.tree.map(np.asarray, levels)
    one_by_one = [MazeLevel(*leaves) for leaves in zip(*host, strict=True)]
    traces = [_minigrid(env, level, played) for level, played in zip(one_by_one, np.asarray(actions), strict=True)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *traces)


def _minigrid(env: Maze, level: MazeLevel, actions: np.ndarray) -> Trace:
    original = _loaded(env, level)
    first, _ = original.reset()
    rows = []
    for action in actions:
        obs, reward, terminated, truncated, _ = original.step(int(action))
        rows.append((obs["image"], obs["direction"], reward, terminated, truncated and not terminated, first["image"]))
        if terminated or truncated:
            original.reset()
    return Trace(*(np.array(column) for column in zip(*rows, strict=True)))


def _loaded(env: Maze, level: MazeLevel):
    """A MiniGrid environment that holds the level."""
    pytest.importorskip("minigrid")
    from minigrid.core.grid import Grid
    from minigrid.core.mission import MissionSpace
    from minigrid.core.world_object import Goal, Wall
    from minigrid.minigrid_env import MiniGridEnv

    class Loaded(MiniGridEnv):
        def _gen_grid(self, width: int, height: int) -> None:
            self.grid = Grid(width, height)
            self.grid.wall_rect(0, 0, width, height)
            for y, x in np.argwhere(level.walls):
                self.put_obj(Wall(), int(x) + 1, int(y) + 1)
            self.put_obj(Goal(), int(level.goal) % env.width + 1, int(level.goal) // env.width + 1)
            self.agent_pos = (int(level.agent) % env.width + 1, int(level.agent) // env.width + 1)
            self.agent_dir = int(level.direction)
            self.mission = ""

    return Loaded(
        MissionSpace(lambda: ""),
        width=env.width + 2,
        height=env.height + 2,
        max_steps=env.max_steps,
        see_through_walls=env.see_through,
        agent_view_size=env.view,
    )


@pytest.mark.parametrize(
    ("view", "see_through", "height", "width", "blocks"),
    [(5, True, 13, 13, 60), (5, False, 5, 8, 14), (7, True, 5, 8, 14), (7, False, 13, 13, 60)],
)
def test_every_step_is_minigrids(view: int, see_through: bool, height: int, width: int, blocks: int) -> None:
    """Image, direction, reward and end of thousands of steps over many random layouts."""
    env = Maze(height, width, view, max_steps=45, see_through=see_through, redraw_direction=False)
    design = MazeDesign(height, width, "fixed", blocks)
    levels = jax.jit(jax.vmap(design.sample))(random.split(random.key(view), 40))
    actions = random.choice(random.key(1), FORWARD_BIASED, (40, 120))
    expected, found = minigrids(env, levels, actions), ours(env, levels, actions)
    assert expected.terminated.sum() > 5
    assert expected.truncated.sum() > 5
    for name in Trace._fields:
        want, have = getattr(expected, name), getattr(found, name)
        np.testing.assert_allclose(have, want, atol=1e-6 if name == "reward" else 0, err_msg=name)


CORRIDOR = level_from_rows(["S..G", "####", "...."], direction=0)


def in_corridor(env: Maze, actions: list[int]) -> Trace:
    """What some actions lead to in the corridor."""
    trace = ours(env, jax.tree.map(lambda leaf: leaf[None], CORRIDOR), jnp.array([actions]))
    return jax.tree.map(lambda leaf: leaf[0], trace)


@pytest.mark.parametrize(("reward", "pays"), [("minigrid", 1 - 0.9 * 3 / 10), ("paper", 1 - 3 / 10)])
def test_reward_falls_with_time(reward, pays: float) -> None:
    """Only the step into the goal pays, and it pays what the chosen formula says."""
    env = Maze(3, 4, max_steps=10, reward=reward, redraw_direction=False)
    trace = in_corridor(env, [2, 2, 2])
    np.testing.assert_allclose(trace.reward, [0, 0, pays], rtol=1e-6)
    np.testing.assert_array_equal(trace.terminated, [False, False, True])


def test_goal_on_the_last_step_is_a_success() -> None:
    """At the time limit reaching the goal still pays, and the episode counts as ended by it, not by time."""
    env = Maze(3, 4, max_steps=3, redraw_direction=False)
    solved, late = in_corridor(env, [2, 2, 2]), in_corridor(env, [2, 2, 6])
    assert (solved.terminated[-1], solved.truncated[-1]) == (True, False)
    assert (late.terminated[-1], late.truncated[-1]) == (False, True)
    np.testing.assert_allclose(solved.reward[-1], 0.1, rtol=1e-5)
    np.testing.assert_array_equal(env.solved(jnp.array([solved.reward[-1], late.reward[-1]])), [True, False])


def test_start_direction() -> None:
    """Drawn uniformly at each reset, or taken from the level."""
    keys = random.split(random.key(0), 4000)
    drawn, _ = jax.jit(jax.vmap(lambda key: Maze(3, 4).reset(key, CORRIDOR)))(keys)
    np.testing.assert_allclose(np.bincount(drawn.direction, minlength=4) / 4000, 0.25, atol=0.03)
    kept, _ = Maze(3, 4, redraw_direction=False).reset(keys[0], CORRIDOR)
    assert kept.direction == CORRIDOR.direction


def test_is_an_env() -> None:
    """It fulfils the protocol and is hashable by value."""
    assert isinstance(Maze(), Env)
    assert Maze().actions == Discrete(7)
    assert hash(Maze(view=7)) == hash(Maze(view=7))
    assert Maze() != Maze(view=7)


@pytest.mark.parametrize("wrong", [{"height": 2}, {"width": 100}, {"view": 4}, {"max_steps": 0}])
def test_refuses_nonsense(wrong: dict) -> None:
    """Sizes, views and time limits that make no maze."""
    with pytest.raises(ValueError, match=r"\.$"):
        Maze(**wrong)
