"""CENIE: levels are replayed for how unlikely the student's experience on them was."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import tutelage as tut
from boxes import Course, Signs, Square, signs
from toys import tiny_maze
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.diagonal import RIDGE, Diagonal, fitted, log_density, maximised

K = 24
METHOD = tut.CENIE(
    buffer=BufferConfig(capacity=K, min_fill=0.3, replay_rate=0.7, novelty=0.5),
    edits=2,
    window=64,
    taken=16,
    components=2,
    fit_every=2,
)


@dataclass(frozen=True)
class Lopsided(Square):
    """Nine levels in ten lie near one corner; none can be solved."""

    def sample(self, key):
        where, which = jax.random.split(key)
        usual = jnp.array([-0.9, -0.9]) + 0.05 * jax.random.normal(where, (2,))
        rare = jnp.array([-0.5, 0.9]) + 0.05 * jax.random.normal(where, (2,))
        return jnp.where(jax.random.uniform(which) < 0.9, usual, rare)


@pytest.mark.slow
def test_what_the_student_rarely_meets_is_replayed_more():
    """Both methods draw from buffers with about a tenth of rare levels, and nothing is to be gained on any."""
    domain = tut.OwnDomain("lopsided", Signs(), Lopsided())
    shares = {}
    for name, share in (("cenie", 0.9), ("robust-plr", 0.0)):
        buffer = replace(METHOD.buffer, capacity=64, staleness=0.0, temperature=1.0, novelty=share)
        method = tut.RobustPLR(buffer) if name == "robust-plr" else replace(METHOD, buffer=buffer, edit_rate=0.0)
        course = Course(signs(method, env=domain, seeds=4), 1, 24)
        state = course.states[-1].with_log(None)
        levels, w = np.asarray(state.buffer.level), weights_of(state, buffer)
        shares[name] = (w * (levels[..., 1] > 0)).sum(axis=1).mean()
    assert shares["cenie"] > shares["robust-plr"] + 0.1


def weights_of(state, config):
    from tutelage.curricula.buffer import weights

    return np.asarray(jax.vmap(lambda b: weights(b, config))(state.buffer))


def test_densities_are_those_of_the_mixture():
    rng = np.random.default_rng(0)
    weights, means, variances = np.array([0.3, 0.7]), rng.normal(size=(2, 3)), rng.uniform(0.1, 2, (2, 3))
    x = rng.normal(size=(5, 4, 3))
    found = log_density(jnp.asarray(x), Diagonal(*map(jnp.asarray, (weights, means, variances))))
    density = sum(
        w * multivariate_normal(m, np.diag(v)).pdf(x) for w, m, v in zip(weights, means, variances, strict=True)
    )
    np.testing.assert_allclose(found, np.log(density), atol=1e-4)


def test_a_maximisation_equals_weighted_moments():
    rng = np.random.default_rng(1)
    x, share = rng.normal(size=(40, 3)), rng.dirichlet(np.ones(2), 40)
    found = maximised(jnp.asarray(x), jnp.asarray(share))
    for k in range(2):
        w = share[:, k] / share[:, k].sum()
        mean = w @ x
        np.testing.assert_allclose(found.means[k], mean, atol=1e-5)
        np.testing.assert_allclose(found.variances[k], w @ (x - mean) ** 2 + RIDGE, atol=1e-5)
    np.testing.assert_allclose(found.weights, share.mean(axis=0), atol=1e-5)


def test_a_fit_finds_the_clusters_that_points_come_from():
    rng = np.random.default_rng(2)
    near, far = rng.normal([0, 0], 0.1, (60, 2)), rng.normal([4, 1], [0.5, 0.2], (140, 2))
    points = jnp.asarray(np.concatenate([near, far]), jnp.float32)
    found = jax.jit(lambda key: fitted(key, points, 2, 20))(jax.random.key(0))
    order = np.argsort(found.means[:, 0])
    np.testing.assert_allclose(found.weights[order], [0.3, 0.7], atol=0.01)
    np.testing.assert_allclose(found.means[order], [near.mean(0), far.mean(0)], atol=0.02)
    np.testing.assert_allclose(found.variances[order], [near.var(0) + RIDGE, far.var(0) + RIDGE], atol=0.02)


def test_novelty_of_a_level_is_that_of_its_pairs_and_comes_with_experience():
    config = signs(METHOD, slots=8)
    course = Course(config, 1, 10)
    s, room = jax.tree.map(lambda x: x[0], course.states[-1].with_log(None)), course.room
    assert int(s.own.taken) == 160
    levels = jax.vmap(room.design.sample)(jax.random.split(jax.random.key(3), 8))
    trial = jax.jit(lambda s: METHOD.play(room, s, levels, "explore")[1])(s)
    pairs = np.concatenate([np.asarray(trial.rollout.obs), np.eye(4)[np.asarray(trial.rollout.action)]], axis=-1)
    expected = -np.asarray(log_density(jnp.asarray(pairs, jnp.float32), s.own.mixture)).mean(axis=0)
    np.testing.assert_allclose(trial.marks.novelty[:, 0], expected, rtol=1e-4)
    first = jax.tree.map(lambda x: x[0], course.states[0].with_log(None))
    assert not jax.jit(lambda s: METHOD.play(room, s, levels, "explore")[1])(first).marks.novelty.any()


def test_a_student_with_memory_goes_by_what_it_remembers():
    method = replace(METHOD, edit_rate=0.0)
    room = tiny_maze(method).classroom()
    state = jax.eval_shape(lambda key: method.init(room, key), jax.random.key(0))
    assert state.own.pairs.shape == (64, 16 + 7)


@pytest.mark.parametrize(
    "settings", [dict(taken=0), dict(window=100), dict(components=0), dict(buffer=BufferConfig()), dict(fit_every=0)]
)
def test_settings_that_cannot_be_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        tut.CENIE(**settings)


def test_more_pairs_than_a_rollout_has_are_refused():
    with pytest.raises(tut.UserError, match=r"--method.taken must be at most --slots × --steps, 64, not 128"):
        signs(replace(METHOD, taken=128, window=256)).classroom()
