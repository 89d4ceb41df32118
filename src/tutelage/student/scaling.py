"""Return normalisation: rewards in units of the running standard deviation of the discounted return."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage.student.prefix import running

DISCOUNT = 0.99  # of the return whose scale is taken, whatever the student's own discount
CLIP = 10.0
EPSILON = 1e-8


class Scale(eqx.Module):
    """Mean, summed squared deviation and number of all discounted returns seen so far."""

    mean: Float[Array, "*t"]
    deviation: Float[Array, "*t"]
    count: Float[Array, "*t"]

    @staticmethod
    def new() -> Scale:
        """Nothing seen: a standard deviation of 1, soon outweighed."""
        return Scale(jnp.zeros(()), jnp.float32(1e-4), jnp.float32(1e-4))

    @property
    def std(self) -> Float[Array, "*t"]:
        """What rewards are divided by."""
        return jnp.sqrt(self.deviation / self.count + EPSILON)

    def observe(self, reward: Float[Array, "T P"], start: Bool[Array, "T P"]) -> tuple[Scale, Float[Array, "T P"]]:
        """Takes in a rollout step by step. Each step's rewards are divided by the scale as known by then."""
        returns = discounted_sums(reward, start)
        mean = returns.mean(axis=1)
        steps = Scale(mean, ((returns - mean[:, None]) ** 2).sum(axis=1), jnp.full(mean.shape, reward.shape[1] * 1.0))
        known = running(_merge, _prepend(self, steps))
        scaled = jnp.clip(reward / known.std[1:, None], -CLIP, CLIP)
        return Scale(known.mean[-1], known.deviation[-1], known.count[-1]), scaled


def discounted_sums(reward: Float[Array, "T P"], start: Bool[Array, "T P"]) -> Float[Array, "T P"]:
    """g_t = r_t + 0.99 · g_{t−1}, from zero at the start of each episode."""

    def combine(early, late):
        (a_early, b_early), (a_late, b_late) = early, late
        return a_early * a_late, b_late + a_late * b_early

    return running(combine, (jnp.where(start, 0.0, DISCOUNT), reward))[1]


def _prepend(first: Scale, rest: Scale) -> Scale:
    def join(a: Array, b: Array) -> Array:
        return jnp.concatenate([a[None], b])

    return Scale(join(first.mean, rest.mean), join(first.deviation, rest.deviation), join(first.count, rest.count))


def _merge(a: Scale, b: Scale) -> Scale:
    """The moments of two samples together (Chan, Golub and LeVeque)."""
    count = a.count + b.count
    apart = b.mean - a.mean
    mean = a.mean + apart * b.count / count
    return Scale(mean, a.deviation + b.deviation + apart**2 * a.count * b.count / count, count)
