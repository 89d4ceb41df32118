"""Generators, edits, metrics and JSON of lava grids."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import random

from lava.reference import assert_sound, edited, fewest_moves
from tutelage.env import DesignSpace, same_level
from tutelage.envs.lava import LavaDesign, LavaLevel
from tutelage.envs.lava.level import level_from_rows, level_to_rows, make_level
from tutelage.envs.lava.paths import path_length, shortest_path


def samples(design: LavaDesign, count: int, seed: int = 0) -> LavaLevel:
    """Many levels of the generator, on the host."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(design.sample))(random.split(random.key(seed), count)))


def one(levels: LavaLevel, i: int) -> LavaLevel:
    """The i-th level of a batch."""
    return jax.tree.map(lambda leaf: leaf[i], levels)


def test_build_places_lava_then_goal_then_start() -> None:
    """The choices are read in order; lava under goal or start goes; a placement may be left empty."""
    design = LavaDesign(placements=4)
    locs, lava = jnp.array([0, 1, 2, 48, 2, 8]), jnp.array([True, False, True, True])
    level = jax.jit(design.build)(random.key(0), locs, lava)
    assert level_to_rows(level) == ["L.G....", ".S.....", *["......."] * 4, "......L"]


def test_start_on_the_goal_goes_elsewhere() -> None:
    """It is put on a uniformly random free tile."""
    design = LavaDesign(placements=1)
    build = jax.jit(jax.vmap(lambda key: design.build(key, jnp.array([0, 8, 8]), jnp.array([True]))))
    levels = build(random.split(random.key(0), 5000))
    share = np.bincount(levels.agent, minlength=49) / 5000
    np.testing.assert_allclose(share, ~np.isin(np.arange(49), [0, 8]) / 47, atol=0.012)


def lava_left(n: np.ndarray) -> np.ndarray:
    """How many lava tiles n placements leave on average, q = 48/49: 49·(1 − qⁿ)·q², start and goal on any tile."""
    q = 48 / 49
    return 49 * (1 - q**n) * q**2


@pytest.mark.parametrize("generator", ["binomial", "uniform", "empty"])
def test_generators(generator) -> None:
    """Levels are sound, start and goal are anywhere, and there is as much lava as the formula says."""
    levels = samples(LavaDesign(generator), 6000)
    assert_sound(levels)
    count = levels.lava.reshape(6000, -1).sum(axis=1)
    n = np.arange(21)
    share = {"binomial": [_binomial(20, k) for k in n], "uniform": np.full(21, 1 / 21), "empty": n == 0}[generator]
    np.testing.assert_allclose(count.mean(), np.dot(share, lava_left(n)), atol=0.25)
    assert count.max() <= 20
    for tiles in (levels.agent, levels.goal):
        np.testing.assert_allclose(np.bincount(tiles // 7, minlength=7) / 6000, 1 / 7, atol=0.02)


def _binomial(n: int, k: int) -> float:
    from math import comb

    return comb(n, k) / 2**n


def test_uniform_draws_every_number_of_placements_equally_often() -> None:
    """From none to all twenty, both included."""
    lava = jax.vmap(LavaDesign("uniform").draw_lava)(random.split(random.key(0), 8000))
    np.testing.assert_allclose(np.bincount(np.sum(lava, axis=1), minlength=21) / 8000, 1 / 21, atol=0.01)


def test_edits_are_the_plain_ones() -> None:
    """Against edits applied one by one, with repeated tiles and hits on start and goal."""
    design = LavaDesign("uniform")
    levels = samples(design, 400)
    locs = np.asarray(random.randint(random.key(1), (400, 12), 0, 49))
    lava = np.asarray(random.bernoulli(random.key(2), 0.5, (400, 12)))
    keys = random.split(random.key(3), 400)
    children = jax.tree.map(np.asarray, jax.jit(jax.vmap(design.apply_edits))(keys, levels, locs, lava))
    assert_sound(children)
    for i in range(400):
        tiles, goal, agent = edited(one(levels, i), locs[i], lava[i])
        child = one(children, i)
        assert goal in (None, child.goal)
        assert agent in (None, child.agent)
        np.testing.assert_array_equal(child.lava.reshape(-1), tiles)


def test_displaced_go_to_uniform_free_tiles() -> None:
    """Both goal and start turned to lava: each lands on every free tile equally often."""
    level = level_from_rows(["SG.LLLL", *["LLLLLLL"] * 4, "LLLLLL.", "LLLLL.."])
    apply = jax.jit(jax.vmap(lambda k: LavaDesign().apply_edits(k, level, jnp.array([0, 1]), jnp.array([True, False]))))
    children = apply(random.split(random.key(0), 4000))
    free = np.isin(np.arange(49), [1, 2, 41, 47, 48])
    for tiles in (children.goal, children.agent):
        np.testing.assert_allclose(np.bincount(tiles, minlength=49) / 4000, free / 5, atol=0.035)


def test_start_and_goal_keep_a_tile_in_a_room_full_of_lava() -> None:
    """Where none is free, lava gives way."""
    design = LavaDesign("uniform", placements=400)
    levels = samples(design, 100)
    assert_sound(levels)
    edit = jax.jit(jax.vmap(lambda key, level: design.edit(key, level, 60)))
    assert_sound(edit(random.split(random.key(1), 100), levels))


@pytest.mark.parametrize("placements", [10, 20, 40])
def test_path_length_is_breadth_first(placements: int) -> None:
    """Exact on solvable and unsolvable levels, diagonal moves included."""
    design = LavaDesign("uniform", placements)
    levels = samples(design, 150, seed=placements)
    found = jax.jit(jax.vmap(design.describe))(levels)
    expected = [fewest_moves(one(levels, i)) for i in range(150)]
    np.testing.assert_array_equal(found["path_length"], [np.nan if n is None else n for n in expected])
    np.testing.assert_array_equal(found["solvable"], [n is not None for n in expected])
    np.testing.assert_array_equal(found["lava"], levels.lava.reshape(150, -1).sum(axis=1))
    assert placements < 20 or {n is None for n in expected} == {True, False}


def test_shortest_path_is_one() -> None:
    """It is all that has to be free for the fewest moves, and nothing where no path leads."""
    levels = samples(LavaDesign("uniform", 40), 60)
    paths = np.asarray(jax.jit(jax.vmap(shortest_path))(levels))
    for i, path in enumerate(paths):
        level, moves = one(levels, i), fewest_moves(one(levels, i))
        assert path.sum() == (0 if moves is None else moves + 1)
        assert moves is None or fewest_moves(level._replace(lava=~path)) == moves
        assert not (path & np.asarray(level.lava)).any()


def test_path_length_of_a_long_way() -> None:
    """A serpentine through the room is followed to its end, and diagonal gaps are ways."""
    rows = ["S......", "LLLLLL.", ".......", ".LLLLLL", ".......", "LLLLLL.", "G......"]
    assert path_length(level_from_rows(rows)) == fewest_moves(level_from_rows(rows)) == 24
    diagonal = ["SLLLLLL", "L.LLLLL", "LL.LLLL", "LLL.LLL", "LLLL.LL", "LLLLL.L", "LLLLLLG"]
    assert path_length(level_from_rows(diagonal)) == 6


@st.composite
def levels_of_any_kind(draw: st.DrawFn) -> LavaLevel:
    """Any level."""
    agent, goal = draw(st.lists(st.integers(0, 48), min_size=2, max_size=2, unique=True))
    lava = np.array(draw(st.lists(st.booleans(), min_size=49, max_size=49)))
    lava[[agent, goal]] = False
    return make_level(jnp.asarray(lava.reshape(7, 7)), agent, goal)


@settings(max_examples=50, deadline=None)
@given(levels_of_any_kind())
def test_json_round_trip(level: LavaLevel) -> None:
    """Reading what was written gives the level back."""
    assert same_level(level, LavaDesign().from_json(LavaDesign().to_json(level)))


EMPTY = ["......."] * 5
GOOD = ["S.L....", "......G", *EMPTY]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], "mapping"),
        ({}, "'rows'"),
        ({"rows": "S.G"}, "list of strings"),
        ({"rows": GOOD[:-1]}, "7 rows of 7"),
        ({"rows": ["S.L...", *GOOD[1:]]}, "7 rows of 7"),
        ({"rows": ["S.#....", *GOOD[1:]]}, "not with '#'"),
        ({"rows": [".......", *GOOD[1:]]}, "one start 'S', not 0"),
        ({"rows": ["S.G....", *GOOD[1:]]}, "one goal 'G', not 2"),
    ],
)
def test_json_refuses(data, complaint: str) -> None:
    """Whatever does not fit is named in one sentence."""
    with pytest.raises(ValueError, match=complaint):
        LavaDesign().from_json(data)
    assert LavaDesign().to_json(LavaDesign().from_json({"rows": GOOD})) == {"rows": GOOD}


def test_is_a_design_space() -> None:
    """It fulfils the protocol and is hashable by value."""
    assert isinstance(LavaDesign(), DesignSpace)
    assert hash(LavaDesign()) == hash(LavaDesign())
