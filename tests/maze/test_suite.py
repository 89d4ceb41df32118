"""The held-out mazes are the published ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import numpy as np
import pytest
from jax import Array, random

from maze.reference import assert_sound, fewest_moves, fewest_steps, kruskal
from tutelage.envs.maze import Maze, MazeLevel, spanning, suite
from tutelage.envs.maze.draws import FourRooms, PerfectMaze, SimpleCrossing
from tutelage.envs.maze.paths import path_length

LEVELS = {level.name: level for members in suite.suites().values() for level in members}


@lru_cache
def many(draw: Callable[[Array], MazeLevel], count: int) -> MazeLevel:
    """The levels of many episodes, on the host."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(draw))(random.split(random.key(0), count)))


@pytest.mark.parametrize(
    ("name", "walls", "moves", "steps"),
    [
        ("16Rooms", 46, 20, 26),
        ("16Rooms2", 53, 22, 28),
        ("Labyrinth", 72, 96, 113),
        ("Labyrinth2", 72, 96, 113),
        ("Maze", 73, 40, 54),
        ("Maze2", 72, 56, 73),
        ("Maze3", 71, 39, 54),
    ],
)
def test_fixed_layouts(name: str, walls: int, moves: int, steps: int) -> None:
    """Number of walls, fewest tile moves, fewest actions."""
    level = LEVELS[name].draw(random.key(0))
    assert (int(level.walls.sum()), fewest_moves(level), fewest_steps(level)) == (walls, moves, steps)


@pytest.mark.parametrize(
    ("name", "goals", "walls", "moves", "steps"),
    [("SmallCorridor", 10, 71, (13, 21), (16, 24)), ("LargeCorridor", 16, 161, (19, 33), (22, 36))],
)
def test_corridors(name: str, goals: int, walls: int, moves: tuple[int, int], steps: tuple[int, int]) -> None:
    """Each episode has one of the candidate goals, all equally likely."""
    levels = many(LEVELS[name].draw, 4000)
    tiles, counts = np.unique(levels.goal, return_counts=True)
    assert len(tiles) == goals
    np.testing.assert_allclose(counts / 4000, 1 / goals, atol=0.025)
    level = jax.tree.map(lambda leaf: leaf[0], levels)
    lengths = [(fewest_moves(v), fewest_steps(v)) for v in (level._replace(goal=tile) for tile in tiles)]
    assert (min(lengths)[0], max(lengths)[0]) == moves
    assert (min(lengths)[1], max(lengths)[1]) == steps
    assert level.walls.sum() == walls


@pytest.mark.parametrize("name", suite.SMALL_LAYOUTS)
def test_small_layouts(name: str) -> None:
    """Seven tiles a side, solvable well within their 162 steps."""
    level = LEVELS[name].draw(random.key(0))
    steps = fewest_steps(level)
    assert level.walls.shape == (7, 7)
    assert LEVELS[name].env.max_steps == 162
    assert steps is not None
    assert 8 < steps < 40


def test_rows_of_the_suites() -> None:
    """Names in the paper's order, sizes, time limits, occlusion; all facing right as their level says."""
    rows = {
        "16Rooms": (13, 450), "16Rooms2": (13, 450), "SimpleCrossing": (9, 484), "FourRooms": (17, 100),
        "SmallCorridor": (13, 450), "LargeCorridor": (19, 882), "Labyrinth": (13, 450), "Labyrinth2": (13, 450),
        "Maze": (13, 450), "Maze2": (13, 450), "Maze3": (13, 450), "PerfectMazeM": (19, 882),
        "PerfectMazeS": (9, 242), "PerfectMazeL": (49, 5202), "PerfectMazeXL": (99, 20402),
    }  # fmt: skip
    suites = suite.suites(view=7, reward="paper")
    assert next(iter(suites)) == "maze"
    assert [level.name for level in suites["maze"]] == list(rows)
    assert suites["maze-12"] == suites["maze"][:12]
    assert [level.name for level in suites["validation"]] == ["16Rooms", "Labyrinth", "Maze"]
    assert len(suites["small"]) == 6
    for level in suites["maze"]:
        side, limit = rows[level.name]
        occluded = level.name in ("SimpleCrossing", "FourRooms")
        assert level.env == Maze(side, side, 7, limit, not occluded, "paper", redraw_direction=False)
        assert hash(level) == hash(level)


def test_every_draw_has_the_shape_of_its_env() -> None:
    """Also the types: a level to the last leaf."""
    for level in LEVELS.values():
        assert isinstance(level.env, Maze)
        drawn = jax.eval_shape(level.draw, random.key(0))
        assert drawn.walls.shape == (level.env.height, level.env.width)
        assert [leaf.dtype for leaf in drawn] == [bool, "int32", "int32", "int32"]


def test_simple_crossing() -> None:
    """Five of the eight possible rivers, each with one gap; always solvable."""
    levels = many(SimpleCrossing(), 3000)
    assert not levels.direction.any()
    lengths = np.concatenate([levels.walls.sum(axis=1)[:, 1::2], levels.walls.sum(axis=2)[:, 1::2]], axis=1)
    rivers = lengths == 8
    assert (rivers.sum(axis=1) == 5).all()
    np.testing.assert_allclose(rivers.mean(axis=0), 5 / 8, atol=0.06)
    assert np.isfinite(jax.jit(jax.vmap(path_length))(levels)).all()
    assert (levels.agent == 0).all()
    assert (levels.goal == 80).all()


def test_four_rooms() -> None:
    """Two doors in each of the two walls, one either side of the middle; start and goal anywhere."""
    levels = many(FourRooms(), 3000)
    assert_sound(levels)
    assert (levels.walls.reshape(3000, -1).sum(axis=1) == 33 - 4).all()
    for line in (levels.walls[:, :, 8], levels.walls[:, 8, :]):
        assert line[:, 8].all()
        assert (line[:, :8].sum(axis=1) == 7).all()
        assert (line[:, 9:].sum(axis=1) == 7).all()
        np.testing.assert_allclose(1 - line[:, [*range(8), *range(9, 17)]].mean(axis=0), 1 / 8, atol=0.03)
    for tiles in (levels.agent, levels.goal):
        np.testing.assert_allclose(np.bincount(tiles // 17, minlength=17).mean() / 3000, 1 / 17, atol=0.02)
    np.testing.assert_allclose(np.bincount(levels.direction, minlength=4) / 3000, 0.25, atol=0.035)


@pytest.mark.parametrize(("name", "draw"), [("SimpleCrossing", SimpleCrossing()), ("FourRooms", FourRooms())])
def test_walls_are_as_frequent_as_in_minigrid(name: str, draw) -> None:
    """Tile by tile, over a thousand layouts of the original environments."""
    pytest.importorskip("minigrid")
    from minigrid.core.world_object import Wall
    from minigrid.envs import CrossingEnv, FourRoomsEnv

    original = CrossingEnv(size=11, num_crossings=5, obstacle_type=Wall) if name == "SimpleCrossing" else FourRoomsEnv()
    original.reset(seed=0)
    layouts = []
    for _ in range(1000):
        original._gen_grid(original.width, original.height)
        walls = [isinstance(tile, Wall) for tile in original.grid.grid]
        layouts.append(np.array(walls).reshape(original.height, original.width)[1:-1, 1:-1])
    np.testing.assert_allclose(many(draw, 3000).walls.mean(axis=0), np.mean(layouts, axis=0), atol=0.08)


@pytest.mark.parametrize("side", [2, 5, 10, 50])
def test_kruskal(side: int) -> None:
    """The tree built on the device is the one a union-find builds from the same order of edges."""
    orders = np.stack([np.random.default_rng(i).permutation(spanning.lattice_edges(side)) for i in range(3)])
    kept = jax.jit(jax.vmap(lambda edges: spanning.kruskal(edges, side * side)))(orders)
    np.testing.assert_array_equal(kept, [kruskal(edges, side * side) for edges in orders])


@pytest.mark.parametrize("name", suite.PERFECT_SIDES)
def test_perfect_mazes_are_spanning_trees(name: str) -> None:
    """Every cell open, cells − 1 openings between them, and all of it in one piece."""
    levels = many(LEVELS[name].draw, 2)
    assert_sound(levels)
    assert not levels.direction.any()
    walls = np.asarray(levels.walls[0])
    cells = ((len(walls) + 1) // 2) ** 2
    assert not walls[::2, ::2].any()
    assert walls[1::2, 1::2].all()
    assert (~walls).sum() == cells + (cells - 1)
    assert reachable(walls) == (~walls).sum()


def reachable(walls: np.ndarray) -> int:
    """How many tiles can be reached from the first."""
    seen, stack = {(0, 0)}, [(0, 0)]
    while stack:
        y, x = stack.pop()
        for other in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
            if other not in seen and min(other) >= 0 and max(other) < len(walls) and not walls[other]:
                seen.add(other)
                stack.append(other)
    return len(seen)


def test_perfect_maze_is_uniform_where_symmetry_says_so() -> None:
    """The twelve ordered pairs of corners are equally likely, and so are the four trees of a square of cells."""
    levels = many(PerfectMaze(3), 6000)
    pairs, counts = np.unique(np.stack([levels.agent, levels.goal]), axis=1, return_counts=True)
    assert pairs.shape[1] == 12
    assert np.isin(pairs, [0, 2, 6, 8]).all()
    np.testing.assert_allclose(counts / 6000, 1 / 12, atol=0.018)
    _, counts = np.unique(levels.walls.reshape(6000, -1), axis=0, return_counts=True)
    assert len(counts) == 4
    np.testing.assert_allclose(counts / 6000, 1 / 4, atol=0.03)
