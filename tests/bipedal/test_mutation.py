"""POET's mutations of terrain, beside its rules one by one."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from tutelage.env import Mutable
from tutelage.envs.bipedal import PoetDomain, WalkerDomain
from tutelage.envs.bipedal.level import make_level
from tutelage.envs.bipedal.suite import CLASSES

MANY = 4000


def children(genes, domain=None) -> np.ndarray:
    """Parameters of many children of one level."""
    design = (PoetDomain() if domain is None else domain).design()
    assert isinstance(design, Mutable)
    parent = make_level([*genes, *(0.0, 0.0, 1.0)][:8], 7)
    keys = jax.random.split(jax.random.key(0), MANY)
    made = jax.jit(jax.vmap(lambda key: design.mutate(key, parent)))(keys)
    assert len(np.unique(made.seed)) > MANY - 3
    return np.round(np.asarray(made.genes), 4)


def ranges(pairs: np.ndarray) -> dict[tuple[float, float], int]:
    found, counts = np.unique(np.round(pairs, 1), axis=0, return_counts=True)
    return {tuple(round(float(x), 1) for x in pair): int(n) for pair, n in zip(found, counts, strict=True)}


def test_everything_begins_flat():
    design = PoetDomain().design()
    level = design.plainest(jax.random.key(0))
    assert level.genes.tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    assert float(design.describe(level)["difficulty"]) == 0


def test_the_first_child_has_pits_and_stumps_and_is_often_smooth():
    genes = children([0, 0, 0, 0, 0])
    assert set(ranges(genes[:, 1:3])) == {(0.0, 0.8)}
    assert set(ranges(genes[:, 3:5])) == {(0.0, 0.4)}
    assert (genes[:, 5:] == [0, 0, 1]).all()
    assert (genes[:, 0] == 0).mean() == pytest.approx(0.65 / 1.2, abs=0.03)
    assert np.allclose(genes[:, 0] * 10, np.round(genes[:, 0] * 10), atol=1e-3)
    assert genes[:, 0].max() <= 0.6


@pytest.mark.parametrize(
    ("ends", "first", "step", "most"),
    [((0.0, 0.8), 0.8, 0.4, 10), ((4.0, 4.4), 0.8, 0.4, 10), ((8.0, 10.0), 0.8, 0.4, 10)],
)
def test_ranges_change_in_every_way_that_there_is(ends, first, step, most):
    """Uniformly, in order and within bounds."""
    ways = {
        (round(ends[0] + a * step, 1), round(ends[1] + b * step, 1))
        for a, b in itertools.product((-1, 0, 1), repeat=2)
        if (a, b) != (0, 0)
    }
    fine = {(low, high) for low, high in ways if low >= 0 and high >= first and low <= high and high <= most}
    found = ranges(children([5.0, *ends, 0, 0.4])[:, 1:3])
    assert set(found) == fine
    assert min(found.values()) > 0.8 * MANY / len(fine)


def test_the_widest_pit_is_a_choice():
    released = children([0, 7.2, 8.0, 0, 0.4], PoetDomain(widest_pit=8.0))
    assert released[:, 2].max() == 8.0
    assert children([0, 7.2, 8.0, 0, 0.4])[:, 2].max() == pytest.approx(8.4)
    with pytest.raises(ValueError, match="widest pit"):
        PoetDomain(widest_pit=11.0)


def test_with_eight_parameters_stairs_change_too():
    design = WalkerDomain().design()
    parent = make_level([1, 0, 0.8, 0, 0.4, 0, 0, 4], 1)
    made = jax.vmap(lambda key: design.mutate(key, parent))(jax.random.split(jax.random.key(0), 200))
    assert set(ranges(np.asarray(made.genes[:, 5:7]))) == {(0.0, 0.4)}
    assert set(np.unique(made.genes[:, 7])) == {3.0, 4.0, 5.0}


def test_a_terrain_of_ones_own_is_all_there_is():
    design = PoetDomain(terrain=(5.6, 4.48, 6.4, 2.4, 2.82), terrain_seed=11).design()
    levels = jax.vmap(design.sample)(jax.random.split(jax.random.key(0), 5))
    assert (levels.seed == 11).all()
    assert np.allclose(levels.genes[:, :5], [5.6, 4.48, 6.4, 2.4, 2.82])
    free = PoetDomain(terrain=(5.6, 4.48, 6.4, 2.4, 2.82)).design()
    assert len(np.unique(jax.vmap(free.sample)(jax.random.split(jax.random.key(0), 5)).seed)) == 5
    for terrain, says in (((1.0,), "5 parameters, not 1"), ((11.0, 0, 0, 0, 0), "roughness of a terrain is 0 to 10")):
        with pytest.raises(ValueError, match=says):
            PoetDomain(terrain=terrain)


@pytest.mark.parametrize(("name", "met"), list(zip(CLASSES, (1, 2, 3), strict=True)))
def test_levels_of_a_class_meet_so_many_challenges(name, met):
    draw, design = CLASSES[name], PoetDomain().design()
    levels = jax.vmap(draw)(jax.random.split(jax.random.key(0), 300))
    assert (jax.vmap(design.describe)(levels)["difficulty"] == met).all()
    assert all(float(jnp.std(levels.genes[:, k])) > 0.1 for k in (0, 2, 4))
    (poets,) = {level.env.rules for level in tut.preset("bipedal-poet", "accel").env.suites()["poet"]}
    assert poets == "poet"
