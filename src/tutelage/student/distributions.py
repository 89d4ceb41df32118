"""The action distributions a student needs.

All sample by a deterministic map of noise drawn beforehand, so that a rollout can draw the noise of all its steps at
once, outside its sequential loop.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from tutelage.env import Box, Discrete


class Categorical(eqx.Module):
    """p(a) ∝ exp(logits[a])."""

    logits: Float[Array, "*batch n"]

    def sample(self, noise: Float[Array, "*batch n"]) -> Int[Array, "*batch"]:
        """The Gumbel-max trick: argmax of logits + Gumbel noise."""
        return jnp.argmax(self.logits + noise, axis=-1).astype(jnp.int32)

    def mode(self) -> Int[Array, "*batch"]:
        """The most probable action."""
        return jnp.argmax(self.logits, axis=-1).astype(jnp.int32)

    def log_prob(self, action: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
        """log p(action)."""
        # A masked sum rather than an indexed read: its gradient is elementwise, not a scatter.
        chosen = jax.nn.one_hot(action, self.logits.shape[-1], dtype=self.logits.dtype)
        return jnp.sum(jax.nn.log_softmax(self.logits) * chosen, axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """−Σ p log p."""
        log_p = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)


class Gaussian(eqx.Module):
    """Independent normals with the given means and log standard deviations."""

    mean: Float[Array, "*batch n"]
    log_std: Float[Array, "*batch n"]

    def sample(self, noise: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """mean + σ · noise."""
        return self.mean + jnp.exp(self.log_std) * noise

    def mode(self) -> Float[Array, "*batch n"]:
        """The most probable action."""
        return self.mean

    def log_prob(self, action: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Σ −½((a − mean)/σ)² − log σ − ½ log 2π."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z**2 - self.log_std - 0.5 * jnp.log(2 * jnp.pi), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Σ log σ + ½ log 2πe."""
        return jnp.sum(self.log_std + 0.5 * jnp.log(2 * jnp.pi * jnp.e), axis=-1)


class Certain(eqx.Module):
    """All weight on one action, of either kind."""

    action: Array

    def sample(self, noise: Float[Array, "*batch n"]) -> Array:
        """The action, whatever the noise."""
        return self.action

    def mode(self) -> Array:
        """The action."""
        return self.action

    def log_prob(self, action: Array) -> Float[Array, "*batch"]:
        """0: no other action is ever asked about."""
        return jnp.zeros(self._batch(action))

    def entropy(self) -> Float[Array, "*batch"]:
        """0."""
        return jnp.zeros(self._batch(self.action))

    def _batch(self, action: Array) -> tuple[int, ...]:
        return action.shape if jnp.issubdtype(action.dtype, jnp.integer) else action.shape[:-1]


Distribution = Categorical | Gaussian | Certain


def distribution(actions: Discrete | Box, parameters: Float[Array, "*batch n"], log_std: Array | None) -> Distribution:
    """The distribution over `actions` that a network's output parametrises."""
    if isinstance(actions, Discrete):
        return Categorical(parameters)
    assert log_std is not None
    return Gaussian(parameters, jnp.broadcast_to(log_std, parameters.shape))


def divergence(p: Distribution, q: Distribution) -> Float[Array, "*batch"]:
    """KL(p ‖ q), of two distributions of one kind."""
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        log_p, log_q = jax.nn.log_softmax(p.logits), jax.nn.log_softmax(q.logits)
        return jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1)
    assert isinstance(p, Gaussian), "what is certain has no divergence"
    assert isinstance(q, Gaussian), "distributions of two kinds have no divergence"
    apart = (p.mean - q.mean) ** 2 + jnp.exp(2 * p.log_std)
    return jnp.sum(q.log_std - p.log_std + 0.5 * apart * jnp.exp(-2 * q.log_std) - 0.5, axis=-1)


def noise(key: Key[Array, ""], actions: Discrete | Box, shape: tuple[int, ...]) -> Float[Array, "*shape n"]:
    """What `sample` wants, for a batch of the given shape."""
    if isinstance(actions, Discrete):
        return jax.random.gumbel(key, (*shape, actions.n))
    return jax.random.normal(key, (*shape, actions.size))


def uniform(key: Key[Array, ""], actions: Discrete | Box, shape: tuple[int, ...]) -> Array:
    """Uniformly random actions, for a batch of the given shape."""
    if isinstance(actions, Discrete):
        return jax.random.randint(key, shape, 0, actions.n)
    return jax.random.uniform(key, (*shape, actions.size), minval=actions.low, maxval=actions.high)


def width(actions: Discrete | Box) -> int:
    """How many numbers parametrise a distribution over `actions`."""
    return actions.n if isinstance(actions, Discrete) else actions.size


def as_vectors(action: Array, actions: Discrete | Box) -> Float[Array, "*batch n"]:
    """Actions as vectors of `width` numbers: one of them 1 and the others 0, or as they are."""
    return jax.nn.one_hot(action, actions.n) if isinstance(actions, Discrete) else action
