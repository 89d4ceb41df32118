"""Many seeds in one program: decisions that all of them take together, and phases that some of them skip.

A method is written for one seed, and a run `vmap`s it. `when` keeps a phase that no seed wants from being computed;
`shared_uniform` makes seeds want the same phase at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, PyTree

from tutelage.curricula.state import State

S = TypeVar("S", bound=PyTree)


def shared_uniform(s: State, purpose: int) -> Float[Array, ""]:
    """A uniform number that depends on how far the student is, not on the seed.

    All seeds of a run see the same numbers at the same update and so take the same decisions, except while their
    buffers differ in fill. A seed run alone sees the very same numbers.
    """
    key = jax.random.key(0x7075)
    for part in (purpose, s.updates, s.waits):
        key = jax.random.fold_in(key, part)
    return jax.random.uniform(key)


def when(wanted: Bool[Array, ""], act: Callable[..., S], s: S, *given: PyTree) -> S:
    """`act(s, *given)` where wanted, else `s`.

    Under `vmap`, `lax.cond` would compute both branches always. This computes `act` if any member wants it, for all of
    them, and keeps the result for those that do.
    """

    @custom_vmap
    def one(wanted, s, given):
        return lax.cond(wanted, act, lambda s, *_: s, s, *given)

    @one.def_vmap
    def many(size, batched, wanted, s, given):
        def stacked(x, is_batched):
            return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

        wanted, s, given = jax.tree.map(stacked, (wanted, s, given), tuple(batched))

        def some(s, *given):
            changed = jax.vmap(act)(s, *given)
            return jax.tree.map(lambda new, old: jnp.where(_as_wide_as(wanted, new), new, old), changed, s)

        out = lax.cond(wanted.any(), some, lambda s, *_: s, s, *given)
        return out, jax.tree.map(lambda _: True, out)

    return one(wanted, s, given)


def _as_wide_as(flags: Bool[Array, " n"], x: Array) -> Array:
    return flags.reshape(flags.shape + (1,) * (x.ndim - 1))
