"""NCC: levels are drawn from a distribution over the buffer that climbs their learnability."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, signs
from tutelage.curricula.ncc import FLOOR, Tilt, projected
from tutelage.curricula.scores import Marks
from tutelage.curricula.sfl import learnability

K = 20
METHOD = tut.NCC(tut.BufferConfig(capacity=K), attempts=6, look_every=2, entropy=0.05)
UPDATES, STRIDE = 80, 10
SLOTS = STEPS = 8


@pytest.fixture(scope="module")
def course():
    return Course(signs(METHOD, seeds=2), UPDATES // STRIDE, STRIDE)


def one(state, seed=0):
    return jax.tree.map(lambda x: x[seed], state.with_log(None))


def worth(y, s, entropy=METHOD.entropy):
    """What the distribution maximises: yᵀs + η·H(y)."""
    y = np.asarray(y, np.float64)
    return y @ np.asarray(s, np.float64) - entropy * (y * np.log(np.maximum(y, 1e-300))).sum()


SCORES = np.random.default_rng(0).choice([0.0, 0.16, 0.24], 200)


def test_no_distribution_is_better_than_the_softmax():
    rng = np.random.default_rng(1)
    flat = Tilt(jnp.full(200, 1 / 200), jnp.full(200, 0.1))
    best = np.asarray(METHOD.climb(flat, jnp.asarray(SCORES, jnp.float32)).y)
    assert best.sum() == pytest.approx(1, abs=1e-5)
    for size in (0.01, 0.1, 1.0):
        other = best * np.exp(size * rng.normal(size=200))
        assert worth(other / other.sum(), SCORES) < worth(best, SCORES)


def test_gradient_steps_lead_to_the_softmax():
    """By small enough steps; the released code, whose sign is wrong, would go to the levels of no learnability."""
    method = replace(METHOD, ascent="gradient", step=0.01)
    s = jnp.asarray(SCORES, jnp.float32)
    tilt = Tilt(jnp.full(200, 1 / 200), jnp.full(200, 0.1))
    climb = jax.jit(method.climb)
    start = worth(tilt.y, SCORES)
    for _ in range(300):
        tilt = climb(tilt, s)
    best = worth(METHOD.climb(tilt, s).y, SCORES)
    assert worth(tilt.y, SCORES) > best - 0.1 * (best - start)
    assert float(tilt.y @ s) > 1.3 * SCORES.mean()


def test_one_gradient_step_equals_the_formula():
    y = np.random.default_rng(2).dirichlet(np.ones(200))
    a = np.full(200, 0.1)
    tilt = replace(METHOD, ascent="gradient").climb(Tilt(jnp.asarray(y), jnp.asarray(a)), jnp.asarray(SCORES))
    g = SCORES - 0.05 * (np.log(y) + 1)
    moved = y + 0.1 * g * (a + g**2 + 1e-7) ** -0.4
    low, high = -10.0, 10.0  # θ by bisection
    for _ in range(100):
        theta = (low + high) / 2
        low, high = (theta, high) if np.maximum(moved - theta, FLOOR).sum() > 1 else (low, theta)
    assert np.allclose(tilt.y, np.maximum(moved - theta, FLOOR), atol=1e-5)
    assert np.allclose(tilt.squares, a + g**2, rtol=1e-5)


def test_a_point_of_the_simplex_is_its_own_projection():
    y = jnp.asarray(np.random.default_rng(3).dirichlet(np.full(50, 10.0)), jnp.float32)
    assert np.allclose(projected(y), y, atol=1e-6)


def test_the_best_new_levels_take_the_places_of_the_least_learnable(course):
    """Planted: of eight, the two best beat the two worst; the third loses; one that ended no episode never wins."""
    state = one(course.states[-1])
    old = jnp.linspace(0.0, 0.19, K)
    new = jnp.asarray([0.0, 0.2, 0.015, 0.005, 0.0, 0.24, 0.0, 0.25])
    finished = jnp.ones(8, bool).at[7].set(False)
    levels = 10 + jnp.arange(16.0).reshape(8, 2)
    marks = Marks(new[:, None], new[:, None], finished[:, None])
    before = replace(state, buffer=replace(state.buffer, score=old))
    after = METHOD.admit(before, levels, marks).buffer
    expected = np.asarray(state.buffer.level).copy()
    score = np.asarray(old).copy()
    for at, which in ((0, 5), (1, 1)):
        expected[at], score[at] = levels[which], new[which]
    assert np.array_equal(after.level, expected)
    assert np.allclose(after.score, score)
    first = int(before.buffer.next_id)
    assert after.id[:2].tolist() == [first, first + 1]
    assert int(after.next_id) == first + 2


def test_estimates_are_those_of_each_level(course):
    """Every level of the buffer is looked at, though their number is no multiple of the slots."""
    state, room = one(course.states[4]), course.room
    levels = state.buffer.level
    many = jax.jit(jax.vmap(lambda key: METHOD.estimate(room, key, state, levels)))(
        jax.random.split(jax.random.key(0), 200)
    )
    assert many.score.shape == (200, K, 1)
    assert many.finished.all()
    truth = jax.jit(lambda key: learnability(room, key, state.learner.student, levels, 2000))(jax.random.key(1)).score
    # Of n episodes, the mean of p̂(1 − p̂) is (1 − 1/n)·p(1 − p).
    assert np.allclose(many.score.mean(axis=0), (1 - 1 / METHOD.attempts) * truth, atol=0.03)
    assert np.ptp(truth) > 0.05


def test_levels_are_drawn_where_the_student_can_learn(course):
    drawn, plain = (course.mean(3, f"ncc/learnability{x}") for x in ("_drawn", ""))
    assert drawn > 1.1 * plain
    assert 1 < course.mean(3, "ncc/spread") < K


def test_looks_are_counted_as_the_rollouts_they_cost(course):
    look = (K + SLOTS) * METHOD.attempts * 2  # env steps, of episodes of two
    for i in (1, 4, 8):
        looks = STRIDE * i // 2
        assert course.states[i].rollouts.tolist() == [STRIDE * i + look * looks // (SLOTS * STEPS)] * 2


def test_it_learns_what_can_be_learned(course):
    """The levels of the buffer get more learnable than random ones, half of which can never be solved."""
    levels = np.asarray(one(course.states[-1]).buffer.level)
    assert (levels[:, 0] > 0).mean() > 0.7
    assert course.mean(-1, "replay/solved") > course.mean(1, "replay/solved") + 0.2


@pytest.mark.parametrize("settings", [dict(attempts=0), dict(look_every=0), dict(entropy=0.0), dict(step=0.0)])
def test_settings_that_cannot_be_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        tut.NCC(**settings)
