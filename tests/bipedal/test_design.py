"""Ranges, edits, metrics and JSON of terrains."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import random
from scipy.stats import kstest

from bipedal.reference import edited
from tutelage.env import BoxDesign, same_level
from tutelage.envs.bipedal import WalkerDomain
from tutelage.envs.bipedal.design import FULL_HIGH, FULL_LOW, WalkerDesign
from tutelage.envs.bipedal.level import NAMES, WalkerLevel, make_level

SPACES = [WalkerDesign(p, g) for p in (5, 8) for g in ("full", "easy")]
HARD = make_level([4.5, 0, 6, 0, 2.4, 0, 0, 1], 1)


@lru_cache
def samples(design: WalkerDesign, count: int = 2000) -> WalkerLevel:
    """Many levels of the generator, on the host."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(design.sample))(random.split(random.key(0), count)))


@pytest.mark.parametrize("design", SPACES, ids=str)
def test_samples_are_sound(design: WalkerDesign) -> None:
    """Within the ranges, ends in order, whole numbers of steps, each level with its own seed; no stairs in POET's."""
    genes, seeds = samples(design)
    assert isinstance(design, BoxDesign)
    assert (genes[:, : design.parameters] >= design.low).all()
    assert (genes[:, : design.parameters] <= design.high).all()
    assert (genes[:, [1, 3, 5]] <= genes[:, [2, 4, 6]]).all()
    assert (genes[:, 7] == np.round(genes[:, 7])).all()
    assert len(np.unique(seeds)) == 2000
    if design.parameters == 5:
        assert (genes[:, 5:] == [0, 0, 1]).all()


def test_full_ranges_are_used_uniformly() -> None:
    """A single parameter is uniform, a pair the order statistics of two; inner numbers of steps are equally likely."""
    genes, _ = samples(WalkerDesign())
    assert kstest(genes[:, 0] / 10, "uniform").pvalue > 0.01
    for low, high in ((1, 10), (3, 5), (5, 5)):
        assert kstest((genes[:, low] / high), lambda u: 1 - (1 - u) ** 2).pvalue > 0.01
        assert kstest((genes[:, low + 1] / high), lambda u: u**2).pvalue > 0.01
    shares = np.bincount(genes[:, 7].astype(int), minlength=10)[1:] / 2000
    np.testing.assert_allclose(shares, [1 / 16, *[1 / 8] * 7, 1 / 16], atol=0.025)


def test_easy_levels_are_accels_first() -> None:
    """Only the roughness varies, up to 0.6; every obstacle exists."""
    genes, _ = samples(WalkerDesign(generator="easy"))
    assert kstest(genes[:, 0] / 0.6, "uniform").pvalue > 0.01
    np.testing.assert_allclose(genes[:, 1:], np.broadcast_to([0, 0.8, 0, 0.4, 0, 0.4, 1], (2000, 7)), rtol=1e-6)


@given(
    st.sampled_from(SPACES),
    st.lists(st.tuples(st.integers(0, 4), st.floats(-1, 1, width=32)), min_size=5, max_size=5),
    st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_edits_are_the_references(design: WalkerDesign, changes: list[tuple[int, float]], seed: int) -> None:
    """Steps one after another, each within the full ranges; ends put in order only then."""
    parent = jax.tree.map(lambda x: x[seed], samples(design))
    which, steps = (np.array(x) for x in zip(*changes, strict=True))
    child = _apply(design, parent, which, steps)
    np.testing.assert_allclose(child.genes, edited(np.asarray(parent.genes), changes, design.parameters), atol=1e-5)


def _apply(design: WalkerDesign, level: WalkerLevel, which: np.ndarray, steps: np.ndarray) -> WalkerLevel:
    return applying(design)(random.key(0), level, jnp.asarray(which, jnp.int32), jnp.asarray(steps, jnp.float32))


@lru_cache
def applying(design: WalkerDesign):
    """Its edits, compiled once."""
    return jax.jit(design.apply_edits)


@pytest.mark.parametrize("parameters", [5, 8])
def test_what_an_edit_changes(parameters: Any) -> None:
    """One edit: each parameter equally often, up, down or not at all, the roughness by U(0, 0.6); always a new seed."""
    design = WalkerDesign(parameters)
    parent = make_level([5, 2, 6, 1, 3, *((1, 3, 5) if parameters == 8 else (0, 0, 1))], 7)
    keys = random.split(random.key(0), 6000)
    genes, seeds = jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda k: design.edit(k, parent, 1)))(keys))
    change = genes - np.asarray(parent.genes)
    np.testing.assert_allclose((change > 0).mean(axis=0)[:parameters], 1 / 3 / parameters, atol=0.01)
    np.testing.assert_allclose((change < 0).mean(axis=0)[:parameters], 1 / 3 / parameters, atol=0.01)
    assert ((change != 0).sum(axis=1) <= 1).all()
    rough = change[change[:, 0] != 0, 0]
    assert kstest(np.abs(rough) / 0.6, "uniform").pvalue > 0.01
    for i, size in enumerate((0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 1.0)[: parameters - 1], start=1):
        np.testing.assert_allclose(np.abs(change[change[:, i] != 0, i]), size, rtol=1e-4)
    assert len(np.unique(seeds)) == 6000


def test_edits_stay_in_the_full_ranges() -> None:
    """However many, from either corner, also for the easy generator."""
    design = WalkerDesign(generator="easy")
    for corner in (FULL_LOW, FULL_HIGH):
        keys = random.split(random.key(1), 300)
        edit = jax.jit(jax.vmap(lambda k, c=corner: design.edit(k, make_level(c, 0), 60)))
        genes = np.asarray(edit(keys).genes)
        assert (genes >= FULL_LOW).all()
        assert (genes <= FULL_HIGH).all()
        assert (genes != corner).any(axis=0).all()


def test_from_vector() -> None:
    """Clipped, put in order, steps rounded; the key decides the seed alone."""
    design = WalkerDesign()
    level = design.from_vector(random.key(0), jnp.array([-1.0, 9, 2, 7, 1, 0, 6, 3.4]))
    np.testing.assert_array_equal(level.genes, np.float32([0, 2, 9, 1, 5, 0, 5, 3]))
    other = design.from_vector(random.key(1), jnp.array([-1.0, 9, 2, 7, 1, 0, 6, 3.4]))
    np.testing.assert_array_equal(level.genes, other.genes)
    assert level.seed != other.seed


def test_metrics() -> None:
    """The parameters by name, and POET's classes of difficulty with their thresholds."""
    metrics = WalkerDesign().describe(HARD)
    assert [*metrics] == [*NAMES, "difficulty"]
    assert [*WalkerDesign(5).describe(HARD)] == [*NAMES[:5], "difficulty"]
    assert {k: float(v) for k, v in metrics.items() if k != "difficulty"} == pytest.approx(
        dict(zip(NAMES, (4.5, 0, 6, 0, 2.4, 0, 0, 1), strict=True))
    )
    genes = np.asarray(HARD.genes)
    for less in ([], [0], [2], [4], [0, 4], [0, 2, 4]):
        lower = genes.copy()
        lower[less] -= 0.01
        assert WalkerDesign().describe(make_level(lower, 0))["difficulty"] == 3 - len(less)
    assert len(WalkerDomain().classes["difficulty"]) == 4


@pytest.mark.parametrize("design", SPACES, ids=str)
def test_json_round_trip(design: WalkerDesign) -> None:
    """Exact, and short to read."""
    levels = samples(design)
    for i in range(20):
        level = jax.tree.map(lambda x, i=i: x[i], levels)
        assert same_level(design.from_json(design.to_json(level)), level)
    assert WalkerDesign(5).to_json(HARD) == {
        "roughness": 4.5,
        "pit_gap_low": 0.0,
        "pit_gap_high": 6.0,
        "stump_height_low": 0.0,
        "stump_height_high": 2.4,
        "seed": 1,
    }


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (None, "has the keys"),
        ({"mass": 1}, "has the keys"),
        ({"roughness": "high"}, "roughness of a walker's level is 0 to 10, not 'high'"),
        ({"roughness": True}, "roughness"),
        ({"stump_height_high": 5.1}, "stump height high of a walker's level is 0 to 5, not 5.1"),
        ({"pit_gap_low": float("nan")}, "pit gap low"),
        ({"pit_gap_low": 7}, "pit gap low of a walker's level cannot exceed"),
        ({"stair_steps": 1.5}, "stair steps of a walker's level are whole, not 1.5"),
        ({"stair_steps": 0}, "1 to 9"),
        ({"seed": -1}, "seed of a walker's level is 0 to 4294967295, not -1"),
        ({"seed": 1.0}, "seed"),
    ],
)
def test_json_that_does_not_fit(change: dict[str, Any] | None, complaint: str) -> None:
    """Each mistake has its sentence."""
    design = WalkerDesign()
    data = [] if change is None else design.to_json(HARD) | change
    with pytest.raises(ValueError, match=complaint):
        design.from_json(data)


def test_picture_of_a_level() -> None:
    assert WalkerDesign().render(HARD).shape == (128, 640, 3)
