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
    """y_t = combine(…combine(x_0, x_1)…, x_t) for every step t; with `reverse`, from the last step down to t.

    `values` is a pytree of arrays `[T, …]`, and so is what comes back; `combine` must be associative.

    It takes as many passes over all steps as T has binary digits. `lax.associative_scan` would do less work, by taking
    odd and even steps apart again and again, but the GPU's compiler needs a minute for what it fuses of them.
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
