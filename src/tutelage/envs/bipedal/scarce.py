"""What only a few members of a batch need, computed for those alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, PyTree

In = TypeVar("In", bound=PyTree)
Out = TypeVar("Out", bound=PyTree)

SHARE = 16  # one in so many members is worked on at a time


def where_scarce(wanted: Bool[Array, ""], act: Callable[[In], Out], given: In, otherwise: Out) -> Out:
    """`act(given)` where wanted, else `otherwise`.

    Under `vmap`, `lax.cond` computes `act` for every member of the batch. This gathers the members that want it, a
    sixteenth of the batch at a time, until all have been served.
    """

    @custom_vmap
    def one(wanted: Array, given: In, otherwise: Out) -> Out:
        return lax.cond(wanted, lambda: act(given), lambda: otherwise)

    @one.def_vmap
    def many(size: int, batched: Any, wanted: Array, given: In, otherwise: Out) -> tuple[Out, Any]:
        wanted, given, otherwise = jax.tree.map(
            lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), (wanted, given, otherwise), tuple(batched)
        )
        at_once = -(-size // SHARE)

        def serve(state: tuple[Array, Out]) -> tuple[Array, Out]:
            waiting, out = state
            chosen = jnp.nonzero(waiting, size=at_once, fill_value=size)[0]  # beyond the end where there are no more
            done = jax.vmap(act)(jax.tree.map(lambda x: x[chosen], given))
            out = jax.tree.map(lambda all_, new: all_.at[chosen].set(new, mode="drop"), out, done)
            return waiting.at[chosen].set(False, mode="drop"), out

        out = lax.while_loop(lambda state: state[0].any(), serve, (wanted, otherwise))[1]
        return out, jax.tree.map(lambda _: True, out)

    return one(wanted, given, otherwise)
