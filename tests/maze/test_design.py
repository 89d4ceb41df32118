"""Generators, edits, metrics and JSON of mazes."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import random

from maze.reference import assert_sound, edited, fewest_moves
from tutelage.env import DesignSpace, same_level
from tutelage.envs.maze import MazeDesign, MazeLevel
from tutelage.envs.maze.level import level_from_rows, level_to_rows, make_level
from tutelage.envs.maze.order import set_order
from tutelage.envs.maze.paths import path_length, shortest_path

ALL_EDITS = ("wall", "empty", "goal", "agent")


def samples(design: MazeDesign, count: int, seed: int = 0) -> MazeLevel:
    """Many levels of the generator, on the host."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(design.sample))(random.split(random.key(seed), count)))


def one(levels: MazeLevel, i: int) -> MazeLevel:
    """The i-th level of a batch."""
    return jax.tree.map(lambda leaf: leaf[i], levels)


def test_first_tile_is_the_budget() -> None:
    """With n = ⌊60·loc₀/169⌋ every budget from 0 to 59 comes from two or three tiles, 29.3 on average."""
    budgets = [int(MazeDesign().budget(jnp.int32(loc))) for loc in range(169)]
    assert budgets == [60 * loc // 169 for loc in range(169)]
    assert set(Counter(budgets).values()) == {2, 3}
    assert set(budgets) == set(range(60))


def test_build_places_walls_then_goal_then_start() -> None:
    """The chosen tiles are read in order; a wall under goal or start goes; tiles after the start do nothing."""
    design = MazeDesign(3, 3, "variable", blocks=4)  # loc₀ = 7 gives ⌊4·7/9⌋ = 3 walls
    build = jax.jit(lambda *locs: design.build(random.key(0), jnp.array(locs)))
    assert level_to_rows(build(7, 2, 3, 2, 7, 5)) == ["..G", "#..", ".S."]
    assert level_to_rows(build(1, 8, 0, 0, 0, 0)) == [".G.", "...", "..S"]  # no wall: loc₀ is the goal


def test_start_on_the_goal_goes_elsewhere() -> None:
    """It is put on a uniformly random free tile."""
    design = MazeDesign(3, 3, "fixed", blocks=2)
    levels = jax.jit(jax.vmap(lambda key: design.build(key, jnp.array([0, 4, 8, 8]))))(
        random.split(random.key(0), 3000)
    )
    share = np.bincount(levels.agent, minlength=9) / 3000
    np.testing.assert_allclose(share, np.isin(np.arange(9), [1, 2, 3, 5, 6, 7]) / 6, atol=0.04)


@pytest.mark.parametrize(
    ("generator", "blocks", "mean"), [("fixed", 25, 23.05), ("variable", 60, None), ("empty", 60, 0)]
)
def test_generators(generator, blocks: int, mean: float | None) -> None:
    """Levels are sound, tiles evenly used, and 169·(1 − qⁿ)·q² walls remain of n draws, q = 168/169."""
    levels = samples(MazeDesign(generator=generator, blocks=blocks), 4000)
    assert_sound(levels)
    walls = levels.walls.reshape(4000, -1).sum(axis=1)
    if mean is None:
        q = 168 / 169
        mean = float(np.mean([169 * (1 - q ** (60 * loc // 169)) * q**2 for loc in range(169)]))
        assert walls.max() <= 59
    np.testing.assert_allclose(walls.mean(), mean, atol=0.9 if generator == "variable" else 0.1)
    for tiles in (levels.agent, levels.goal):
        np.testing.assert_allclose(np.bincount(tiles // 13, minlength=13) / 4000, 1 / 13, atol=0.025)
    np.testing.assert_allclose(np.bincount(levels.direction, minlength=4) / 4000, 0.25, atol=0.03)


@pytest.mark.parametrize("side", [3, 99])
def test_invariant_holds_in_crowded_mazes(side: int) -> None:
    """Start and goal keep their tiles even where walls have filled everything."""
    design = MazeDesign(side, side, "fixed", blocks=6 * side**2 if side == 3 else 200, edits=("wall",))
    levels = samples(design, 300 if side == 3 else 3)
    assert_sound(levels)
    keys = random.split(random.key(1), len(levels.agent))
    assert_sound(jax.jit(jax.vmap(lambda key, level: design.edit(key, level, 30)))(keys, levels))


@pytest.mark.parametrize("edits", [("wall", "empty", "goal"), ALL_EDITS])
def test_edits_are_the_plain_ones(edits) -> None:
    """Against edits applied one by one, with repeated tiles, several goals, and hits on start and goal."""
    design = MazeDesign(3, 4, "fixed", blocks=5, edits=edits)
    levels = samples(design, 400)
    locs = np.asarray(random.randint(random.key(1), (400, 5), 0, 12))
    kinds = np.asarray(random.randint(random.key(2), (400, 5), 0, len(edits)))
    keys = random.split(random.key(3), 400)
    children = jax.tree.map(np.asarray, jax.jit(jax.vmap(design.apply_edits))(keys, levels, locs, kinds))
    assert_sound(children)
    for i in range(400):
        walls, goal, agent = edited(one(levels, i), locs[i], [edits[kind] for kind in kinds[i]])
        child = one(children, i)
        assert goal in (None, child.goal)
        assert agent in (None, child.agent)
        occupied = {loc for loc in (goal, agent) if loc is not None}
        replaced = [loc for loc, known in ((child.goal, goal), (child.agent, agent)) if known is None]
        if 12 - walls.sum() - len(occupied) >= len(replaced):
            assert not walls[replaced].any()
            assert (child.walls.reshape(-1) == walls).all()


def test_displaced_go_to_uniform_free_tiles() -> None:
    """Both goal and start hit: each lands on every free tile equally often."""
    design = MazeDesign(3, 3)
    level = level_from_rows(["S#.", "#G#", ".#."])
    locs, kinds = jnp.array([0, 4]), jnp.array([1, 1])
    apply = jax.jit(jax.vmap(lambda key: design.apply_edits(key, level, locs, kinds)))
    children = apply(random.split(random.key(0), 4000))
    free = np.isin(np.arange(9), [0, 2, 4, 6, 8])
    for tiles in (children.goal, children.agent):
        np.testing.assert_allclose(np.bincount(tiles, minlength=9) / 4000, free / 5, atol=0.035)


@pytest.mark.parametrize(("n", "tiles"), [(1, 9), (4, 169), (5, 169), (5, 36), (9, 9801), (20, 169), (90, 140)])
def test_the_order_of_a_set_is_pythons(n: int, tiles: int) -> None:
    """Of numbers that meet in its table or not, that repeat or not, and of so many that the table grows."""
    drawn = np.random.default_rng(n).integers(0, tiles, (500, n))
    drawn[::7] = drawn[::7] // 32 * 32  # all in one place of the table
    found = np.asarray(jax.jit(jax.vmap(lambda x: set_order(x, tiles)))(drawn))
    for mine, numbers in zip(found, drawn.tolist(), strict=True):
        python = list(set(numbers))
        assert mine.tolist() == python + [python[0]] * (n - len(python))


def test_edits_in_a_sets_order_are_the_plain_ones() -> None:
    """The tiles that are drawn, gone through as Python goes through a set of them."""
    design = MazeDesign(4, 4, "fixed", blocks=5, edit_order="set")
    levels, keys = samples(design, 300), random.split(random.key(5), 300)
    children = jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda key, level: design.edit(key, level, 6)))(keys, levels))
    drawn = jax.vmap(lambda key: random.randint(random.split(key, 3)[0], (6,), 0, 16))(keys)
    kinds = np.asarray(jax.vmap(lambda key: random.randint(random.split(key, 3)[1], (6,), 0, 3))(keys))
    for i, numbers in enumerate(drawn.tolist()):
        order = list(set(numbers))
        names = [design.edits[kind] for kind in kinds[i, : len(order)]]
        walls, goal, _ = edited(one(levels, i), order, names)
        assert goal in (None, one(children, i).goal)
        assert (one(children, i).walls.reshape(-1) <= walls).all()


def test_a_sets_order_moves_the_goal_to_some_tiles_more_often() -> None:
    """As often as a plain simulation says: up to several times as often as to others."""
    n, rng = 40_000, np.random.default_rng(0)

    def last_goals(order) -> np.ndarray:
        goals = []
        for numbers, kinds in zip(rng.integers(0, 169, (n, 5)).tolist(), rng.integers(0, 3, (n, 5)), strict=True):
            put = [tile for tile, kind in zip(order(numbers), kinds, strict=False) if kind == 2]
            goals += put[-1:]
        return np.bincount(goals, minlength=169) / len(goals) * 169

    def ours(edit_order) -> np.ndarray:
        design = MazeDesign(edit_order=edit_order)
        level = level_from_rows(["S" + "." * 12, *["." * 13] * 11, "." * 12 + "G"])
        edit = jax.jit(jax.vmap(lambda key: design.edit(key, level, 5).goal))
        goals = np.asarray(edit(random.split(random.key(0), n)))
        return np.bincount(goals[goals != 168], minlength=169) / (goals != 168).sum() * 169

    rows = [x.reshape(13, 13).mean(axis=1) for x in (last_goals(set), ours("set"), ours("drawn"))]
    np.testing.assert_allclose(rows[1][:-1], rows[0][:-1], atol=0.06)
    np.testing.assert_allclose(rows[2][:-1], 1, atol=0.06)
    assert rows[0].max() > 1.3
    assert rows[0].min() < 0.7


def test_the_simulators_random_reset() -> None:
    """Goal, start and 0 to 60 walls, all on different tiles; solvable as often as the reference implementation's."""
    design = MazeDesign(generator="uniform")
    levels = samples(design, 6000)
    assert_sound(levels)
    walls = levels.walls.reshape(6000, -1).sum(axis=1)
    assert set(walls) == set(range(61)), "as many as were meant: no two on one tile"
    np.testing.assert_allclose(np.bincount(walls) * 61 / 6000, 1, atol=0.4)
    solvable = jax.jit(jax.vmap(design.describe))(levels)["solvable"]
    np.testing.assert_allclose(solvable.mean(), 0.935, atol=0.01)
    for tiles in (levels.agent, levels.goal):
        np.testing.assert_allclose(np.bincount(tiles // 13, minlength=13) / 6000, 1 / 13, atol=0.02)
    with pytest.raises(ValueError, match="nobody chooses tiles"):
        design.designing()


def test_how_often_five_edits_move_things() -> None:
    """The goal moves in about 87 % of edits, the start when hit (4.94 distinct tiles of 169)."""
    design = MazeDesign()
    levels = samples(design, 6000)
    edit = jax.jit(jax.vmap(lambda key, level: design.edit(key, level, 5)))
    children = jax.tree.map(np.asarray, edit(random.split(random.key(1), 6000), levels))
    assert_sound(children)
    assert 0.85 < (children.goal != levels.goal).mean() < 0.885
    np.testing.assert_allclose((children.agent != levels.agent).mean(), 4.94 / 169, atol=0.009)
    np.testing.assert_allclose((children.direction != levels.direction).mean(), 0.75, atol=0.025)
    changed = (children.walls != levels.walls).reshape(6000, -1).sum(axis=1)
    assert changed.max() <= 5
    assert changed.mean() > 1.3


@pytest.mark.parametrize(
    ("height", "width", "blocks", "count"), [(3, 3, 5, 60), (5, 9, 20, 60), (13, 13, 75, 60), (99, 99, 3500, 3)]
)
def test_path_length_is_breadth_first(height: int, width: int, blocks: int, count: int) -> None:
    """Exact on solvable and unsolvable mazes of every size."""
    design = MazeDesign(height, width, "fixed", blocks)
    levels = samples(design, count, seed=height)
    found = jax.jit(jax.vmap(design.describe))(levels)
    expected = [fewest_moves(one(levels, i)) for i in range(count)]
    np.testing.assert_array_equal(found["path_length"], [np.nan if n is None else n for n in expected])
    np.testing.assert_array_equal(found["solvable"], [n is not None for n in expected])
    np.testing.assert_array_equal(found["blocks"], levels.walls.reshape(count, -1).sum(axis=1))
    assert count < 10 or {n is None for n in expected} == {True, False}


def test_shortest_path_is_one() -> None:
    """It is all that has to be free for the fewest moves, and nothing where no path leads."""
    levels = samples(MazeDesign(9, 9, "fixed", 40), 60, seed=1)
    paths = np.asarray(jax.jit(jax.vmap(shortest_path))(levels))
    for i, path in enumerate(paths):
        level, moves = one(levels, i), fewest_moves(one(levels, i))
        assert path.sum() == (0 if moves is None else moves + 1)
        assert moves is None or fewest_moves(level._replace(walls=~path)) == moves
        assert not (path & np.asarray(level.walls)).any()


def test_path_length_of_the_longest_corridor() -> None:
    """A serpentine through 99×99 tiles takes 50·98 + 49·2 moves, all counted."""
    rows = ["." * 99 if y % 2 == 0 else ("#" * 98 + "." if y % 4 == 1 else "." + "#" * 98) for y in range(99)]
    level = level_from_rows(["S" + rows[0][1:], *rows[1:-1], "G" + rows[-1][1:]])
    assert path_length(level) == fewest_moves(level) == 50 * 98 + 49 * 2


@st.composite
def levels_4x6(draw: st.DrawFn) -> MazeLevel:
    """Any level of four rows of six tiles."""
    agent, goal = draw(st.lists(st.integers(0, 23), min_size=2, max_size=2, unique=True))
    walls = np.array(draw(st.lists(st.booleans(), min_size=24, max_size=24)))
    walls[[agent, goal]] = False
    return make_level(jnp.asarray(walls.reshape(4, 6)), agent, goal, draw(st.integers(0, 3)))


@settings(max_examples=50, deadline=None)
@given(levels_4x6())
def test_json_round_trip(level: MazeLevel) -> None:
    """Reading what was written gives the level back."""
    design = MazeDesign(4, 6)
    assert same_level(level, design.from_json(design.to_json(level)))


def test_json_is_readable() -> None:
    """Rows of characters and a direction."""
    data = {"rows": ["S.#", ".#.", "..G"], "direction": 3}
    design = MazeDesign(3, 3)
    assert design.to_json(design.from_json(data)) == data


GOOD = {"rows": ["S.#", ".#.", "..G"], "direction": 3}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], "mapping"),
        ({"rows": GOOD["rows"]}, "'direction'"),
        (GOOD | {"rows": "S.G"}, "list of strings"),
        (GOOD | {"rows": [["S", ".", "G"]] * 3}, "list of strings"),
        (GOOD | {"rows": ["S.#", "..G"]}, "3 rows of 3"),
        (GOOD | {"rows": ["S.#", ".#.", "..G."]}, "3 rows of 3"),
        (GOOD | {"rows": ["S.#", ".x.", "..G"]}, "not with 'x'"),
        (GOOD | {"rows": ["..#", ".#.", "..G"]}, "one start 'S', not 0"),
        (GOOD | {"rows": ["S.#", ".#.", "..."]}, "one goal 'G', not 0"),
        (GOOD | {"rows": ["S.#", ".#G", "..G"]}, "one goal 'G', not 2"),
        (GOOD | {"direction": 4}, "0, 1, 2 or 3, not 4"),
        (GOOD | {"direction": True}, "0, 1, 2 or 3, not True"),
        (GOOD | {"direction": "up"}, "0, 1, 2 or 3, not 'up'"),
    ],
)
def test_json_refuses(data, complaint: str) -> None:
    """Whatever does not fit is named in one sentence."""
    with pytest.raises(ValueError, match=complaint):
        MazeDesign(3, 3).from_json(data)


@pytest.mark.parametrize("wrong", [{"height": 2}, {"blocks": -1}, {"edits": ()}, {"edits": ("wall", "wall")}])
def test_refuses_nonsense(wrong: dict) -> None:
    """Options that make no design space."""
    with pytest.raises(ValueError, match=r"\.$"):
        MazeDesign(**wrong)


def test_is_a_design_space() -> None:
    """It fulfils the protocol and is hashable by value."""
    assert isinstance(MazeDesign(), DesignSpace)
    assert hash(MazeDesign()) == hash(MazeDesign())
