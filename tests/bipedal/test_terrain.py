"""Terrain is what gymnasium's generators and the parametrised one make of the same draws, and as likely."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

from bipedal.reference import Ground, gymnasiums, parametrised, random_draws
from tutelage.envs.bipedal.design import WalkerDesign
from tutelage.envs.bipedal.level import make_level
from tutelage.envs.bipedal.physics.ground import paved, unpaved
from tutelage.envs.bipedal.terrain import CELL, CELLS, LOWEST_STUMP, PIT, STUMP, Draws, Rules, Terrain, build, layout

EASY = np.array([0.3, 0, 0.8, 0, 0.4, 0, 0.4, 1])
FULL = np.array([4.0, 0.5, 7, 0.1, 3, 0, 2, 9])
BARE = np.array([5, 0, 0.7, 0, 0.1, 0, 0.1, 8])
NO_STAIRS = np.array([2.0, 0, 3, 0, 0.4, 0, 0, 1])

laid_out = jax.jit(layout, static_argnums=2)
built = jax.jit(jax.vmap(build, in_axes=(0, None)), static_argnums=1)


def exactly(draws: Draws, roughness: float, rules: Rules) -> Terrain:
    """The layout in double precision."""
    with jax.enable_x64(True):
        terrain = laid_out(jax.tree.map(jnp.asarray, draws), jnp.asarray(float(roughness)), rules)
        return jax.tree.map(np.asarray, terrain)


def in_floats(draws: Draws, roughness: float, rules: Rules) -> Terrain:
    """The layout as it is used."""
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.int32 if x.dtype.kind == "i" else jnp.float32), draws)
    return jax.tree.map(np.asarray, laid_out(single, jnp.float32(roughness), rules))


def boxes_of(terrain: Terrain) -> np.ndarray:
    """Each rectangle once, in order of generation."""
    first = np.unique(terrain.box_id[terrain.box_id >= 0], return_index=True)[1]
    return np.asarray(terrain.box)[terrain.box_id >= 0][first]


def assert_same(terrain: Terrain, ground: Ground, atol: float) -> None:
    """Vertices and rectangles agree; those that begin beyond cell 199 do not count."""
    np.testing.assert_allclose(terrain.x, ground.x, rtol=0, atol=atol)
    np.testing.assert_allclose(terrain.y, ground.y, rtol=0, atol=atol)
    np.testing.assert_allclose(boxes_of(terrain), on_the_way(ground.boxes), rtol=0, atol=atol)


def assert_consistent(terrain: Terrain) -> None:
    """A cell has a rectangle exactly if one reaches into it, and vertices go from left to right."""
    boxes = boxes_of(terrain)
    middles = (np.arange(CELLS) + 0.5) * CELL
    for j, middle in enumerate(middles):
        inside = [b for b in boxes if b[0] < middle + CELL / 2 - 1e-5 and b[1] > middle - CELL / 2 + 1e-5]
        assert len(inside) <= 1
        if inside:
            np.testing.assert_array_equal(terrain.box[j], inside[0])
    for first in np.unique(terrain.box_id[terrain.box_id >= 0]):
        cells = np.flatnonzero(terrain.box_id == first)
        assert cells[0] == first
        assert (np.diff(cells) == 1).all()
    absent = terrain.box_id < 0
    assert (terrain.box[absent, 0] > terrain.box[absent, 1]).all()
    edges = np.hypot(np.diff(terrain.x), np.diff(terrain.y))
    assert (np.diff(terrain.x) >= 0).all()
    assert edges.min() > 1e-4


@pytest.mark.parametrize("hardcore", [False, True])
def test_gymnasiums_terrain(hardcore: bool) -> None:
    """Fed with the draws of the real generator, in its precision, the layout is the real one to the last bit."""
    pytest.importorskip("gymnasium")
    rules: Rules = "hardcore" if hardcore else "parametrised"
    for seed in range(15):
        draws, ground = gymnasiums(seed, hardcore=hardcore)
        exact = exactly(draws, 1.0, rules)
        for found, wanted in ((exact.x, ground.x), (exact.y, ground.y), (boxes_of(exact), on_the_way(ground.boxes))):
            np.testing.assert_array_equal(np.float32(found), np.float32(wanted))
        terrain = in_floats(draws, 1.0, rules)
        assert_same(terrain, ground, atol=3e-5)
        assert_consistent(terrain)


@pytest.mark.parametrize("genes", [EASY, FULL, NO_STAIRS], ids=["easy", "full", "no stairs"])
@pytest.mark.parametrize("rules", ["parametrised", "poet"])
def test_parametrised_terrain(genes: np.ndarray, rules: Rules) -> None:
    """The scan makes what the plain loop makes, whether a stump keeps or shortens its segment."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        draws = random_draws(rng, genes)
        ground = parametrised(draws, genes[0], stump_keeps_segment=rules == "parametrised")
        assert_same(exactly(draws, genes[0], rules), ground, atol=1e-10)
        terrain = in_floats(draws, genes[0], rules)
        assert_same(terrain, ground, atol=2e-4)
        assert_consistent(terrain)


def test_low_stairs_have_no_blocks() -> None:
    """Stairs of at most 0.01 cells keep the length of their segment, and their ground still steps."""
    rng = np.random.default_rng(1)
    draws = random_draws(rng, FULL)
    draws.size[:] = np.where(rng.random(CELLS) < 0.5, 0.009, draws.size)
    ground = parametrised(draws, 1.0, stump_keeps_segment=True)
    assert_same(exactly(draws, 1.0, "parametrised"), ground, atol=1e-10)
    assert min(top - bottom for _, _, top, bottom in ground.boxes) * 1.0001 > 0.009 * CELL


def test_low_stumps_are_no_rectangles() -> None:
    """A stump too low to be a polygon is left out; its segment is as long as ever."""
    draws = random_draws(np.random.default_rng(2), np.array([0.0, 0, 0, 0, 0.4, 0, 0, 1]))
    assert (draws.kind == STUMP).all()
    low = draws._replace(size=np.full(CELLS, 0.9 * LOWEST_STUMP))
    high = draws._replace(size=np.full(CELLS, 1.1 * LOWEST_STUMP))
    assert len(boxes_of(in_floats(low, 0.0, "parametrised"))) == 0
    boxes = boxes_of(in_floats(high, 0.0, "parametrised"))
    assert len(boxes) > 10
    assert (boxes[:, 2] - boxes[:, 3] > 0.9 * LOWEST_STUMP * CELL).all()


def test_fractional_pit() -> None:
    """The opening is what was drawn, and the ground rises at the right block's far edge."""
    draws = random_draws(np.random.default_rng(3), np.array([0.0, 2.25, 2.25, 0, 0, 0, 0, 1]))
    assert (draws.kind == PIT).all()
    terrain = in_floats(draws, 0.0, "parametrised")
    left, right = boxes_of(terrain)[:2]
    np.testing.assert_allclose(right[0] - left[1], 2.25 * CELL, rtol=1e-5)
    first, cells = 20, 4  # of the pit, and ⌈1 + 2.25⌉
    assert terrain.box_id[first : first + 7].tolist() == [20, -1, -1, 23, 23, -1, -1]
    assert terrain.x[first + cells + 1] == right[1]
    np.testing.assert_allclose(terrain.y[first : first + 7] - terrain.y[0], CELL * np.array([0, -4, -4, -4, -4, 0, 0]))


def levels(genes: np.ndarray, rules: Rules, count: int) -> tuple[Terrain, np.ndarray]:
    """Many terrains of one kind, and their forces."""
    seeds = jnp.arange(count, dtype=jnp.uint32)
    level = jax.vmap(make_level, in_axes=(None, 0))(jnp.asarray(genes), seeds)
    return jax.tree.map(np.asarray, built(level, rules))


def facts(boxes: np.ndarray, y: np.ndarray) -> dict[str, list[float]]:
    """What is compared between generators. Blocks of one obstacle are alike, so only some of each level count."""
    boxes = on_the_way(boxes)
    height = boxes[:, 2] - boxes[:, 3]
    of_pit = np.isclose(height, 4 * CELL, atol=1e-3)
    gaps = (boxes[1:, 0] - boxes[:-1, 1])[of_pit[:-1] & of_pit[1:]]
    return {
        "rectangles": [len(boxes)],
        "width": [*(boxes[:1, 1] - boxes[:1, 0])],
        "height": [*height[~of_pit][:1]],
        "opening": [*gaps[:1]],
        "y": [y[60]],
        "y later": [y[150]],
        "slope": [np.abs(np.diff(y)).mean()],
    }


def on_the_way(boxes: Any) -> np.ndarray:
    """Rectangles that do not begin beyond cell 199."""
    boxes = np.reshape(boxes, (-1, 4))
    return boxes[boxes[:, 0] < CELLS * CELL - 1e-3]


def assert_same_distribution(ours: list[dict], theirs: list[dict]) -> None:
    for name in ours[0]:
        a, b = (np.float64(np.concatenate([f[name] for f in many])) for many in (ours, theirs))
        assert len(a) > 100 or len(a) == len(b) == 0, name
        if len(a):
            assert ks_2samp(np.round(a, 3), np.round(b, 3)).pvalue > 0.01, name


def test_hardcore_is_as_likely_as_gymnasiums() -> None:
    """Numbers, sizes and heights of 300 terrains each; about 29 rectangles, at most 40."""
    pytest.importorskip("gymnasium")
    terrains, _ = levels(EASY, "hardcore", 300)
    ours = [facts(boxes_of(t), t.y) for t in each(terrains)]
    theirs = [facts(np.array(g.boxes), np.array(g.y)) for _, g in (gymnasiums(s, hardcore=True) for s in range(300))]
    assert_same_distribution(ours, theirs)
    counts = [f["rectangles"][0] for f in ours]
    assert 28 < np.mean(counts) < 30
    assert max(counts) <= 40


@pytest.mark.parametrize("rules", ["parametrised", "poet"])
@pytest.mark.parametrize("genes", [EASY, FULL, BARE], ids=["easy", "full", "bare"])
def test_draws_are_as_likely_as_the_references(genes: np.ndarray, rules: Rules) -> None:
    """With high ends below the thresholds, the third are bare of obstacles."""
    terrains, _ = levels(genes, rules, 300)
    ours = [facts(boxes_of(t), t.y) for t in each(terrains)]
    rng, theirs = np.random.default_rng(4), []
    for _ in range(300):
        ground = parametrised(random_draws(rng, genes), genes[0], stump_keeps_segment=rules == "parametrised")
        theirs.append(facts(np.array(ground.boxes), np.array(ground.y)))
    assert_same_distribution(ours, theirs)


def each(terrains: Terrain) -> list[Terrain]:
    """One after another."""
    return [jax.tree.map(lambda x, i=i: x[i], terrains) for i in range(len(terrains.x))]


def test_force() -> None:
    """Uniform in [−5, 5] N, by the seed alone."""
    _, force = levels(EASY, "parametrised", 2000)
    assert ks_2samp(force, np.random.default_rng(0).uniform(-5, 5, 5000)).pvalue > 0.01
    np.testing.assert_array_equal(force, levels(FULL, "hardcore", 2000)[1])


def test_level_is_its_terrain() -> None:
    """The same level gives the same terrain, another seed another; nothing happens on the start pad."""
    terrains, _ = levels(FULL, "parametrised", 50)
    again, _ = levels(FULL, "parametrised", 50)
    jax.tree.map(np.testing.assert_array_equal, terrains, again)
    assert len(np.unique(terrains.y[:, 100])) == 50
    assert (terrains.y[:, :20] == terrains.y[0, 0]).all()
    assert (terrains.box_id[:, :20] == -1).all()


def test_flat_without_roughness() -> None:
    """Roughness 0 and no obstacles: a plain."""
    terrains, _ = levels(np.zeros(8), "parametrised", 3)
    assert (terrains.y == terrains.y[0, 0]).all()
    assert (terrains.box_id == -1).all()


def test_whole_range_is_finite() -> None:
    """The extremes of the space stay numbers, and rectangles never overlap."""
    genes = np.array([10.0, 0, 10, 0, 5, 0, 5, 9])
    terrains, _ = levels(genes, "parametrised", 20)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(terrains))
    for terrain in each(terrains):
        assert_consistent(terrain)


@pytest.mark.parametrize("rules", ["parametrised", "hardcore"])
def test_tiles_hold_the_terrain(rules: Rules) -> None:
    """All of it, and which cells go on with the rectangle of the last."""
    terrain, _ = build(WalkerDesign().sample(jax.random.key(3)), rules)
    for name, a, b in zip(Terrain._fields, unpaved(paved(terrain)), terrain, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    tiles, number = np.asarray(paved(terrain)), np.asarray(terrain.box_id)
    assert (tiles[1:, 7] == (number[1:] == number[:-1])).all()
    assert tiles[0, 7] == 0
    assert (number[tiles[:, 7] > 0] >= 0).any(), "some rectangle covers several cells"
