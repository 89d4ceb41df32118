"""Small tools for values of many walkers.

The physics is written for numbers whose last axis is that of the walkers. What comes in a handful (the four leg bodies,
the cells around a foot, the rays) lies on *leading* axes, is spread over them by comparing with an index and taken off
them by masked sums, so that nothing needs a sort, a gather or a concatenation.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int


def index(n: int, axes: int) -> Int[Array, "n ..."]:
    """0 … n − 1 on a new leading axis, before so many axes of length one."""
    return lax.broadcasted_iota(jnp.int32, (n,) + (1,) * axes, 0)


def spread(values: Sequence[Array]) -> Array:
    """The values on a new leading axis."""
    at = index(len(values), values[0].ndim)
    out = jnp.expand_dims(values[0], 0)
    for k, value in enumerate(values[1:], 1):
        out = jnp.where(at == k, jnp.expand_dims(value, 0), out)
    return out


def take(values: Array, mask: Bool[Array, "..."]) -> Array:
    """The one entry of the first axis where `mask` is set; zero (false) where it is nowhere set."""
    if values.dtype == jnp.bool_:
        return some(values & mask)
    return jnp.sum(jnp.where(mask, values, 0), axis=(0,), dtype=values.dtype)


def some(mask: Bool[Array, "..."]) -> Bool[Array, "..."]:
    """Whether the mask is set anywhere on the first axis."""
    return jnp.max(mask.astype(jnp.int32), axis=(0,)) > 0


def anywhere(mask: Bool[Array, "..."]) -> Bool[Array, ""]:
    """Whether the mask is set for any walker."""
    return jnp.max(mask.astype(jnp.int32)) > 0


def any_of(masks: Sequence[Bool[Array, "..."]]) -> Bool[Array, "..."]:
    """Where one of the masks is set."""
    return reduce(operator.or_, masks)


def choose(at: Int[Array, "..."], values: Sequence[Array | float]) -> Array:
    """`values[at]`, elementwise."""
    out = jnp.asarray(values[0])
    for k, value in enumerate(values[1:], 1):
        out = jnp.where(at == k, value, out)
    return out


def largest(values: Sequence[Array]) -> Array:
    """Elementwise, found so that little of it waits for the rest."""
    values = list(values)
    while len(values) > 1:
        half = len(values) // 2
        values = [*map(jnp.maximum, values[:half], values[half : 2 * half]), *values[2 * half :]]
    return values[0]


def first_best(values: Sequence[Array]) -> tuple[Array, Int[Array, "..."]]:
    """The largest value and the index at which it comes first."""
    best, at = values[0], jnp.zeros_like(values[0], jnp.int32)
    for k, value in enumerate(values[1:], 1):
        better = value > best
        best, at = jnp.where(better, value, best), jnp.where(better, k, at)
    return best, at


def where(mask: Bool[Array, "..."], yes, no):
    """`jnp.where` for pytrees of equal structure."""
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), yes, no)
