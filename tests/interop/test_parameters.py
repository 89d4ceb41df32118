"""Levels that are parameters between bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutelage.env import BoxDesign, same_level
from tutelage.interop.parameters import SEEDS, Parameter, Parameters

GRAVITY, LENGTH = Parameter("gravity", 1.0, 21.0, 9.8), Parameter("length", 0.5, 1.5, 0.5)
SPACES = {
    "plain": Parameters((GRAVITY, LENGTH)),
    "default": Parameters((GRAVITY, LENGTH), generator="default"),
    "seeded": Parameters((GRAVITY, LENGTH), seeded=True),
    "seeds alone": Parameters((), seeded=True),
}


@pytest.fixture(scope="module", params=SPACES)
def space(request):
    return SPACES[request.param]


@pytest.fixture(scope="module")
def programs(space):
    return jax.jit(jax.vmap(space.sample)), jax.jit(jax.vmap(lambda key, level: space.edit(key, level, 4)))


def keys(seed, n=200):
    return jax.random.split(jax.random.key(seed), n)


def test_levels_and_their_children_lie_between_the_bounds(space, programs):
    sample, edit = programs
    levels = sample(keys(0))
    children = edit(keys(1), levels)
    for some in (levels, children, edit(keys(2), children)):
        assert (some.values >= space.low).all()
        assert (some.values <= space.high).all()
        assert ((some.seed >= 0) & (some.seed < SEEDS)).all()


def test_generators_draw_what_they_say(space, programs):
    levels = programs[0](keys(0))
    if space.generator == "default":
        np.testing.assert_array_equal(levels.values, np.tile(np.float32([9.8, 0.5]), (200, 1)))
    elif space.parameters:
        share = (levels.values - space.low) / (space.high - space.low)
        assert np.abs(share.mean(axis=0) - 0.5).max() < 4 / np.sqrt(12 * 200)
    assert len(np.unique(levels.seed)) == (200 if space.seeded else 1)


def test_an_edit_moves_a_parameter_by_at_most_a_step_and_draws_another_seed(space, programs):
    level = space.default(jax.random.key(0))
    one = jax.jit(jax.vmap(lambda key: space.edit(key, level, 1)))(keys(3))
    moved = np.abs(one.values - level.values)
    assert (moved <= space.step * (space.high - space.low) + 1e-6).all()
    assert ((moved > 0).sum(axis=1) <= 1).all()
    if space.parameters:
        assert (moved > 0).any(axis=0).all(), "each parameter is moved some time"
    assert (one.seed != level.seed).all() == space.seeded


def test_levels_are_written_and_read(space):
    level = space.edit(jax.random.key(1), space.sample(jax.random.key(0)), 3)
    assert same_level(space.from_json(space.to_json(level)), level)
    assert list(space.describe(level)) == [p.name for p in space.parameters]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"gravity": 9.8}, "has the keys gravity, length, seed"),
        ({"gravity": 99, "length": 1, "seed": 0}, "gravity lies between 1 and 21, and is not 99"),
        ({"gravity": True, "length": 1, "seed": 0}, "gravity lies between"),
        ({"gravity": float("nan"), "length": 1, "seed": 0}, "gravity lies between"),
        ({"gravity": 9, "length": 1, "seed": -1}, "seed of a level is 0 to"),
        ([], "has the keys"),
    ],
)
def test_what_is_no_level_is_said(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        SPACES["seeded"].from_json(data)


@settings(max_examples=20, deadline=None)
@given(st.floats(1, 21, width=32))
def test_a_bar_is_as_long_as_its_value(gravity):
    level = SPACES["plain"].default(jax.random.key(0))._replace(values=jnp.array([gravity, 1.0]))
    picture = SPACES["plain"].render(level)
    height, width, _ = picture.shape
    blue = (picture[height // 4] == picture[height // 4, :, :1]).all(axis=1)  # grey, and not the bar
    assert abs((~blue).sum() - (gravity - 1) / 20 * width) < 2  # half a pixel of rounding, and the mark of the default


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ((), "differ in something"),
        ((GRAVITY, GRAVITY), "different names"),
        ((GRAVITY._replace(name="seed"),), "of which none is seed"),
        ((GRAVITY._replace(default=99.0),), "so must its default"),
        ((GRAVITY._replace(low=30.0),), "lies between"),
    ],
)
def test_design_spaces_that_make_no_sense_are_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        Parameters(parameters)


def test_teachers_of_real_parameters_can_use_it():
    space = SPACES["plain"]
    assert isinstance(space, BoxDesign)
    np.testing.assert_array_equal(space.from_vector(jax.random.key(0), jnp.array([99.0, 1.0])).values, [21.0, 1.0])
