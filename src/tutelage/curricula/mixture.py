"""Gaussian mixtures with full covariances: expectation–maximisation, and the choice of their size by AIC.

Everything is of fixed shape, so that mixtures of all sizes are fitted at once on the device: a mixture has room for K
components, of which some are in use. Formulas, constants and stopping rule are those of scikit-learn's
`GaussianMixture`, up to the random start of k-means.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, Key

RIDGE = 1e-6  # added to the diagonal of every covariance
TOLERANCE = 1e-3  # a mean log-likelihood that changes by less has converged
EM_STEPS, LLOYD_STEPS = 100, 300  # at most


class Mixture(eqx.Module):
    """Σ_i w_i N(μ_i, L_i L_iᵀ), over the components i of positive weight."""

    weights: Float[Array, "*sizes K"]
    means: Float[Array, "*sizes K d"]
    factors: Float[Array, "*sizes K d d"]
    """L, lower triangular."""

    @property
    def used(self) -> Bool[Array, "*sizes K"]:
        """Which components there are."""
        return self.weights > 0


class Fit(NamedTuple):
    """A mixture with its Akaike criterion, 2·parameters − 2·log-likelihood."""

    mixture: Mixture
    aic: Float[Array, "*sizes"]


def nothing(components: int, dimensions: int) -> Mixture:
    """A mixture without components, with room for some."""
    factors = jnp.broadcast_to(jnp.eye(dimensions), (components, dimensions, dimensions))
    return Mixture(jnp.zeros(components), jnp.zeros((components, dimensions)), factors)


def fit_best(key: Key[Array, ""], points: Float[Array, "N d"], sizes: tuple[int, int]) -> Fit:
    """The mixture of smallest AIC among those fitted with each number of components from one to the other."""
    fits = fit_all(key, points, sizes)
    best = jnp.argmin(jnp.where(jnp.isfinite(fits.aic), fits.aic, jnp.inf))
    return jax.tree.map(lambda x: x[best], fits)


def fit_all(key: Key[Array, ""], points: Float[Array, "N d"], sizes: tuple[int, int]) -> Fit:
    """A mixture of each size from one to the other, started from k-means.

    One run of k-means++ serves all: its first k centres are what it would have chosen for k components.
    """
    smallest, largest = sizes
    centres = plus_plus(key, points, largest)

    def one(size: Int[Array, ""]) -> Fit:
        used = jnp.arange(largest) < size
        mixture = expectation_maximisation(points, m_step(points, lloyd(points, centres, used), used))
        return Fit(mixture, aic(points, mixture))

    return jax.vmap(one)(jnp.arange(smallest, largest + 1))


def plus_plus(key: Key[Array, ""], points: Float[Array, "N d"], count: int) -> Float[Array, "K d"]:
    """k-means++ (Arthur and Vassilvitskii 2007): each centre a point, drawn ∝ its squared distance from those before.

    Where points are fewer than centres, the rest are drawn from all of them.
    """

    def draw(distance: Float[Array, " N"], key: Key[Array, ""]):
        logits = jnp.where(distance.any(), jnp.log(distance), 0.0)
        centre = points[jax.random.categorical(key, logits)]
        return jnp.minimum(distance, ((points - centre) ** 2).sum(axis=1)), centre

    far = jnp.full(points.shape[0], jnp.finfo(points.dtype).max)
    return lax.scan(draw, far, jax.random.split(key, count))[1]


def lloyd(points: Float[Array, "N d"], centres: Float[Array, "K d"], used: Bool[Array, " K"]) -> Float[Array, "N K"]:
    """k-means: the cluster of each point, one-hot. A cluster that has lost its points keeps its centre."""
    count = centres.shape[0]

    def assign(centres: Float[Array, "K d"]) -> Int[Array, " N"]:
        distance = ((points[:, None] - centres) ** 2).sum(axis=-1)
        return jnp.argmin(jnp.where(used, distance, jnp.inf), axis=1)

    def move(carry):
        step, centres, cluster, _ = carry
        member = jax.nn.one_hot(cluster, count, dtype=points.dtype)
        size = member.sum(axis=0)[:, None]
        total = jnp.einsum("nk,nd->kd", member, points, precision="highest")
        centres = jnp.where(size > 0, total / jnp.maximum(size, 1), centres)
        moved = assign(centres)
        return step + 1, centres, moved, (moved != cluster).any()

    start = (jnp.int32(0), centres, assign(centres), jnp.bool_(True))
    cluster = lax.while_loop(lambda c: c[3] & (c[0] < LLOYD_STEPS), move, start)[2]
    return jax.nn.one_hot(cluster, count, dtype=points.dtype)


def expectation_maximisation(points: Float[Array, "N d"], start: Mixture) -> Mixture:
    """E and M steps in turn until the mean log-likelihood stands still."""

    def step(carry):
        count, mixture, before, _ = carry
        share, likelihood = e_step(points, mixture)
        converged = jnp.abs(likelihood - before) < TOLERANCE
        return count + 1, m_step(points, share, mixture.used), likelihood, converged

    nowhere = jnp.asarray(-jnp.inf, points.dtype)
    carry = (jnp.int32(0), start, nowhere, jnp.bool_(False))
    return lax.while_loop(lambda c: ~c[3] & (c[0] < EM_STEPS), step, carry)[1]


def e_step(points: Float[Array, "N d"], mixture: Mixture) -> tuple[Float[Array, "N K"], Float[Array, ""]]:
    """The share of each component in each point, and the mean log-likelihood of the points."""
    joint = log_densities(points, mixture)
    total = logsumexp(joint, axis=1)
    return jnp.exp(joint - total[:, None]), total.mean()


def m_step(points: Float[Array, "N d"], share: Float[Array, "N K"], used: Bool[Array, " K"]) -> Mixture:
    """Weights, means and covariances of the points, weighted by their share in each component in use."""
    mass = share.sum(axis=0) + 10 * jnp.finfo(points.dtype).eps
    weights = jnp.where(used, mass, 0.0)
    means = jnp.einsum("nk,nd->kd", share, points, precision="highest") / mass[:, None]
    apart = points[:, None] - means  # [N, K, d]
    scatter = jnp.einsum("nk,nki,nkj->kij", share, apart, apart, precision="highest")
    covariances = scatter / mass[:, None, None] + RIDGE * jnp.eye(points.shape[1], dtype=points.dtype)
    return Mixture(weights / weights.sum(), means, jnp.linalg.cholesky(covariances))


def log_densities(points: Float[Array, "N d"], mixture: Mixture) -> Float[Array, "N K"]:
    """log w_i + log N(x; μ_i, Σ_i); −∞ for a component that is not in use.

    With Σ = L Lᵀ and y = L⁻¹(x − μ), log N = −½(|y|² + d·log 2π) − Σ log diag L.
    """
    apart = jnp.swapaxes(points - mixture.means[:, None], 1, 2)  # [K, d, N]
    y = solve_triangular(mixture.factors, apart, lower=True)
    log_det = jnp.log(jnp.diagonal(mixture.factors, axis1=1, axis2=2)).sum(axis=1)
    constant = points.shape[1] * jnp.log(2 * jnp.pi)
    log_normal = -0.5 * ((y**2).sum(axis=1) + constant) - log_det[:, None]
    return jnp.where(mixture.used, jnp.log(mixture.weights) + log_normal.T, -jnp.inf)


def aic(points: Float[Array, "N d"], mixture: Mixture) -> Float[Array, ""]:
    """2·(k − 1 + k·d + k·d(d+1)/2) − 2·log-likelihood, for k components in d dimensions."""
    k, d = mixture.used.sum(), points.shape[1]
    parameters = k - 1 + k * d + k * (d * (d + 1) // 2)
    return 2.0 * parameters - 2.0 * points.shape[0] * e_step(points, mixture)[1]


def draw(key: Key[Array, ""], mixture: Mixture, chances: Float[Array, " K"]) -> Float[Array, " d"]:
    """A point of one component, which is picked with probability ∝ its chances."""
    key_pick, key_point = jax.random.split(key)
    component = jax.random.categorical(key_pick, jnp.log(chances))
    noise = jax.random.normal(key_point, mixture.means.shape[-1:], mixture.means.dtype)
    return mixture.means[component] + (mixture.factors[component] * noise).sum(axis=-1)
