import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.env import Box, Discrete
from tutelage.student import distributions
from tutelage.student.distributions import Categorical, Gaussian


def test_categorical_probabilities():
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    d = Categorical(jnp.log(jnp.asarray(p)) + 3.0)  # logits need not be normalised
    assert np.allclose(d.log_prob(jnp.array([2, 0])), np.log([0.7, 0.5]), atol=1e-6)
    assert np.allclose(d.entropy(), -(p * np.log(p)).sum(1), atol=1e-6)
    assert d.mode().tolist() == [2, 0]


def test_categorical_samples_have_their_probabilities():
    p = np.array([0.1, 0.2, 0.7])
    noise = distributions.noise(jax.random.key(0), Discrete(3), (20_000,))
    drawn = Categorical(jnp.broadcast_to(jnp.log(jnp.asarray(p)), (20_000, 3))).sample(noise)
    assert np.allclose(np.bincount(drawn, minlength=3) / 20_000, p, atol=0.015)


def test_gaussian_density_and_entropy():
    d = Gaussian(jnp.array([0.5, -1.0]), jnp.log(jnp.array([2.0, 0.5])))
    density = lambda x, m, s: -0.5 * ((x - m) / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi)  # noqa: E731
    assert float(d.log_prob(jnp.array([1.0, 0.0]))) == pytest.approx(density(1, 0.5, 2) + density(0, -1, 0.5), abs=1e-5)
    assert float(d.entropy()) == pytest.approx(sum(0.5 * np.log(2 * np.pi * np.e * s**2) for s in (2, 0.5)), abs=1e-5)


def test_gaussian_samples_have_their_mean_and_spread():
    noise = distributions.noise(jax.random.key(0), Box(2), (20_000,))
    d = distributions.distribution(
        Box(2), jnp.broadcast_to(jnp.array([0.5, -1.0]), (20_000, 2)), jnp.log(jnp.array([2.0, 0.5]))
    )
    drawn = np.asarray(d.sample(noise))
    assert np.allclose(drawn.mean(0), [0.5, -1.0], atol=0.05)
    assert np.allclose(drawn.std(0), [2.0, 0.5], rtol=0.03)


def test_divergence_is_the_mean_of_what_log_probabilities_differ_by():
    p, q = np.array([0.1, 0.2, 0.7]), np.array([0.5, 0.25, 0.25])
    found = distributions.divergence(Categorical(jnp.log(p) + 1.0), Categorical(jnp.log(q)))
    assert float(found) == pytest.approx((p * np.log(p / q)).sum(), abs=1e-6)
    p, q = Gaussian(jnp.array([0.5, -1.0]), jnp.array([0.2, -0.3])), Gaussian(jnp.array([0.0, 0.4]), jnp.zeros(2))
    x = p.sample(jax.random.normal(jax.random.key(0), (200_000, 2)))
    sampled = jax.vmap(lambda x: p.log_prob(x) - q.log_prob(x))(x)
    assert float(distributions.divergence(p, q)) == pytest.approx(float(sampled.mean()), abs=0.02)
