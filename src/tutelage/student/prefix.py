"""Running figures over the steps of a rollout: in logarithmic time, and quick to compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

Values = TypeVar("Values")  # a pytree of arrays with the steps on their first axis


def running(combine: Callable[[Values, Values], Values], values: Values, *, reverse: bool = False) -> Values:
    """At each step, `combine` of all values up to it; with `reverse`, of all from the last one down to it.

    What `lax.associative_scan` computes, in as many passes over all of it as there are binary digits in its length.
    That one does less work, by taking the odd and the even steps apart again and again, and the GPU's compiler needs
    a minute for what it fuses of them.
    """
    length = jax.tree.leaves(values)[0].shape[0]
    step = jnp.arange(length)

    def double(k: Array, values: Values) -> Values:
        """From figures of the latest 2ᵏ steps to those of twice as many."""
        other = step + (1 << k) if reverse else step - (1 << k)
        exists = (other >= 0) & (other < length)
        merged = combine(jax.tree.map(lambda x: x[jnp.clip(other, 0, length - 1)], values), values)
        return jax.tree.map(lambda a, b: jnp.where(_along(exists, b), a, b), merged, values)

    return lax.fori_loop(0, (length - 1).bit_length(), double, values)


def _along(flags: Array, x: Array) -> Array:
    return flags.reshape(flags.shape + (1,) * (x.ndim - 1))
