"""Mixtures against scikit-learn's, from the same start; and what k-means and draws promise."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.curricula import mixture as mixtures
from tutelage.curricula.mixture import Mixture

SIZES = (2, 6)


def points(seed: int, n: int = 120) -> np.ndarray:
    """Three clusters in 2 + 1 dimensions, some points astray."""
    random = np.random.default_rng(seed)
    cluster = random.integers(0, 3, n)
    centres = random.uniform(0, 2, (3, 3))
    x = centres[cluster] + random.normal(size=(n, 3)) * random.uniform(0.03, 0.2, (3, 3))[cluster]
    astray = random.random(n) < 0.1
    x[astray] = random.uniform(0, 2, (astray.sum(), 3))
    return x


def start(x, size: int, seed: int = 0) -> Mixture:
    """A first mixture of `size` components, with room for more."""
    x, used = jnp.asarray(x), jnp.arange(SIZES[1]) < size
    centres = mixtures.plus_plus(jax.random.key(seed), x, SIZES[1])
    return mixtures.m_step(x, mixtures.lloyd(x, centres, used), used)


def sklearn_mixture(begin: Mixture, max_iter: int):
    learned = pytest.importorskip("sklearn.mixture")
    used = np.asarray(begin.used)
    factors = np.asarray(begin.factors)[used]
    return learned.GaussianMixture(
        used.sum(),
        weights_init=np.asarray(begin.weights)[used],
        means_init=np.asarray(begin.means)[used],
        precisions_init=np.linalg.inv(factors @ factors.swapaxes(1, 2)),
        max_iter=max_iter,
    )


def fitted(begin: Mixture, x, max_iter: int = mixtures.EM_STEPS):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one step has not converged
        return sklearn_mixture(begin, max_iter).fit(x)


def agree(mixture: Mixture, reference, tolerance: float) -> None:
    used, factors = np.asarray(mixture.used), np.asarray(mixture.factors)
    assert np.allclose(mixture.weights[used], reference.weights_, atol=tolerance)
    assert np.allclose(mixture.means[used], reference.means_, atol=tolerance)
    assert np.allclose((factors @ factors.swapaxes(1, 2))[used], reference.covariances_, atol=tolerance)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("seed", range(2))
def test_one_step_of_em_is_that_of_scikit_learn(seed, size):
    with jax.enable_x64(True):
        x = points(seed)
        begin = start(x, size)
        reference = fitted(begin, x, max_iter=1)
        share, likelihood = mixtures.e_step(jnp.asarray(x), begin)
        agree(mixtures.m_step(jnp.asarray(x), share, begin.used), reference, 1e-9)
        assert np.isclose(likelihood, reference.lower_bound_, atol=1e-9)
        assert np.allclose(share.sum(axis=1), 1)
        assert (share[:, size:] == 0).all(), "components not in use have no share"


@pytest.mark.parametrize("seed", range(3))
def test_em_stops_where_scikit_learn_stops(seed):
    with jax.enable_x64(True):
        x = points(seed)
        begin = start(x, 4)
        agree(mixtures.expectation_maximisation(jnp.asarray(x), begin), fitted(begin, x), 1e-7)


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_by_aic_is_that_of_scikit_learn(seed, double):
    with jax.enable_x64(double):
        x = points(seed).astype(np.float64 if double else np.float32)
        fits = mixtures.fit_all(jax.random.key(0), jnp.asarray(x), SIZES)
        references = [fitted(start(x, size), x) for size in range(SIZES[0], SIZES[1] + 1)]
        reference = np.array([m.aic(x) for m in references])
        assert np.allclose(fits.aic, reference, atol=1e-6 if double else 1.0)
        best = mixtures.fit_best(jax.random.key(0), jnp.asarray(x), SIZES)
        assert int(best.mixture.used.sum()) == SIZES[0] + int(reference.argmin())
        assert float(best.aic) == float(fits.aic.min())


def test_k_means_plus_plus_starts_from_different_points():
    x = jnp.asarray(points(0), jnp.float32)
    centres = np.asarray(mixtures.plus_plus(jax.random.key(1), x, 6))
    assert len(np.unique(centres, axis=0)) == 6
    assert all((np.asarray(x) == c).all(axis=1).any() for c in centres)


def test_k_means_puts_each_point_to_the_nearest_mean():
    x = points(1).astype(np.float32)
    used = jnp.array([True, True, True, False])
    member = np.asarray(mixtures.lloyd(jnp.asarray(x), mixtures.plus_plus(jax.random.key(0), jnp.asarray(x), 4), used))
    assert not member[:, 3].any()
    means = np.stack([x[member[:, k] > 0].mean(axis=0) for k in range(3)])
    nearest = ((x[:, None] - means) ** 2).sum(-1).argmin(1)
    assert (nearest == member.argmax(1)).all()


def test_points_that_are_all_the_same_give_a_finite_fit():
    fit = mixtures.fit_best(jax.random.key(0), jnp.ones((30, 3)), (2, 4))
    assert np.isfinite(fit.aic)
    assert np.allclose(fit.mixture.means[0], 1.0)


def test_draws_follow_the_chances_and_the_components():
    factors = jnp.array([[[0.1, 0.0], [0.3, 0.2]], [[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]]])
    mixture = Mixture(jnp.array([0.2, 0.8, 0.0]), jnp.array([[0.0, 0.0], [100.0, 0.0], [-100.0, 0.0]]), factors)
    chances = jnp.array([3.0, 1.0, 0.0])
    keys = jax.random.split(jax.random.key(0), 4000)
    drawn = np.asarray(jax.vmap(lambda k: mixtures.draw(k, mixture, chances))(keys))
    first = drawn[:, 0] < 50
    assert abs(first.mean() - 0.75) < 0.03
    assert np.allclose(np.cov(drawn[first].T), factors[0] @ factors[0].T, atol=0.02)
    assert (drawn[:, 0] > -50).all()
