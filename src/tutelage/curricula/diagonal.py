"""Gaussian mixtures with diagonal covariances, for points of many dimensions; `mixture` has full ones."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from tutelage.curricula import mixture as mixtures

RIDGE = 1e-4  # added to every variance


class Diagonal(eqx.Module):
    """Σ_k w_k N(μ_k, diag σ_k²)."""

    weights: Float[Array, " K"]
    means: Float[Array, "K d"]
    variances: Float[Array, "K d"]


def standard(components: int, dimensions: int) -> Diagonal:
    """Standard normals, all alike."""
    zero = jnp.zeros((components, dimensions))
    return Diagonal(jnp.full(components, 1 / components), zero, zero + 1)


def log_density(x: Float[Array, "*N d"], m: Diagonal) -> Float[Array, "*N"]:
    """log Σ_k w_k N(x; μ_k, diag σ_k²)."""
    return logsumexp(_joint(x, m), axis=-1)


def _joint(x: Float[Array, "*N d"], m: Diagonal) -> Float[Array, "*N K"]:
    """log w_k − ½ Σ_d ((x − μ_k)²/σ_k² + log 2πσ_k²), by products of matrices."""
    product = partial(jnp.matmul, precision="highest")
    inverse = 1 / m.variances
    square = product(x**2, inverse.T) - 2 * product(x, (m.means * inverse).T) + (m.means**2 * inverse).sum(axis=1)
    return jnp.log(m.weights) - 0.5 * (square + jnp.log(2 * jnp.pi * m.variances).sum(axis=1))


def fitted(key: Key[Array, ""], points: Float[Array, "N d"], components: int, steps: int) -> Diagonal:
    """Expectation–maximisation from k-means++ and k-means."""
    centres = mixtures.plus_plus(key, points, components)
    share = mixtures.lloyd(points, centres, jnp.ones(components, bool))
    step = lambda _, m: maximised(points, jax.nn.softmax(_joint(points, m), axis=-1))  # noqa: E731
    return lax.fori_loop(0, steps, step, maximised(points, share))


def maximised(points: Float[Array, "N d"], share: Float[Array, "N K"]) -> Diagonal:
    """Weights, means and variances of points that belong to each component by a share."""
    product = partial(jnp.matmul, precision="highest")
    mass = share.sum(axis=0) + 10 * jnp.finfo(points.dtype).eps
    means = product(share.T, points) / mass[:, None]
    variances = product(share.T, points**2) / mass[:, None] - means**2
    return Diagonal(mass / mass.sum(), means, jnp.maximum(variances, 0.0) + RIDGE)
