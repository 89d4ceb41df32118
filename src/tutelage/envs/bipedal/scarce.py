"""What only a few lanes need, computed for those alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.lanes import on_cpu, some_lane, where

In = TypeVar("In", bound=PyTree)
Out = TypeVar("Out", bound=PyTree)


def where_scarce(
    wanted: Bool[Array, " lanes"], act: Callable[[In], Out], given: In, otherwise: Out, *, share: int
) -> Out:
    """`act(given)` in the lanes that want it, else `otherwise`; lanes are the last axis of every value.

    The lanes that want it are gathered, one in `share` of all lanes at a time, until all have been served.
    """
    lanes = wanted.shape[0]
    at_once = -(-lanes // share)

    def serve(state: tuple[Array, Out]) -> tuple[Array, Out]:
        waiting, out = state
        place = jnp.cumsum(waiting) - 1  # in the queue
        chosen = _first(waiting, place, at_once)
        done = act(jax.tree.map(lambda x: x[..., chosen], given))
        served = waiting & (place < at_once)
        place = jnp.clip(place, 0, at_once - 1)
        out = where(served, jax.tree.map(lambda x: x[..., place], done), out)
        return waiting & ~served, out

    return lax.while_loop(lambda state: some_lane(state[0]), serve, (wanted, otherwise))[1]


def _first(waiting: Bool[Array, " lanes"], place: Int[Array, " lanes"], number: int) -> Int[Array, " number"]:
    """The lanes at the front of the queue; where it is shorter, any lane will do."""
    lanes = len(waiting)
    if on_cpu():  # where XLA would write them one by one
        return jnp.minimum(jnp.sum(place < jnp.arange(number)[:, None], axis=1), lanes - 1)
    nowhere = number + jnp.arange(lanes)
    at = jnp.where(waiting & (place < number), place, nowhere)
    return jnp.zeros(number, jnp.int32).at[at].set(jnp.arange(lanes), mode="drop", unique_indices=True)
