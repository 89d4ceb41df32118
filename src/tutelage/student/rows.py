"""Some rows of a large array replaced, on a GPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, Shaped

from tutelage.gpu import kernel_call, kernels_run_here, pallas

AT_ONCE = 512  # numbers that a program copies
ROWS = 32  # that a program looks after: to start one takes longer than to see that there is nothing to do


def replaced(
    old: Shaped[Array, "P n"], wanted: Bool[Array, " P"], new: Shaped[Array, "R n"], row: Int[Array, " P"]
) -> Shaped[Array, "P n"]:
    """`new[row]` where a row is wanted; nothing is read or written of the others.

    For that XLA would still start a thread for every number there is. A kernel starts a program for some rows.
    """
    return _by_kernel(old, wanted, new, row) if kernels_run_here() else scattered(old, wanted, new, row)


def scattered(old: Array, wanted: Array, new: Array, row: Array) -> Array:
    """What `replaced` promises, as XLA does it."""
    rows = jnp.arange(len(old))
    return old.at[jnp.where(wanted, rows, len(old) + rows)].set(new[row], mode="drop", unique_indices=True)


def copied(old: Array, wanted: Array, new: Array, row: Array, *, interpret: bool = False) -> Array:
    """What `replaced` promises, as a kernel does it."""
    length, pl = old.shape[1], pallas()

    def copy(old_ref: Any, wanted_ref: Any, new_ref: Any, row_ref: Any, out_ref: Any) -> None:
        begin = pl.program_id(0) * ROWS

        def copy_row(k: Int[Array, ""], _: None) -> None:
            # Those beyond the last are the last once more.
            place = jnp.minimum(begin + k, len(old) - 1)
            pl.when(wanted_ref[place] > 0)(lambda: copy_numbers(place, row_ref[place]))

        def copy_numbers(place: Int[Array, ""], source: Int[Array, ""]) -> None:
            for first in range(0, length, AT_ONCE):
                numbers = jnp.minimum(first + jnp.arange(AT_ONCE), length - 1)
                out_ref[jnp.full(AT_ONCE, place), numbers] = new_ref[jnp.full(AT_ONCE, source), numbers]

        mine = jnp.minimum(begin + jnp.arange(ROWS), len(old) - 1)
        pl.when(jnp.max(wanted_ref[mine]) > 0)(lambda: lax.fori_loop(0, ROWS, copy_row, None))

    out = [jax.ShapeDtypeStruct(old.shape, old.dtype)]
    programs = pl.cdiv(len(old), ROWS)
    call = kernel_call(copy, "replace_rows", programs, out, aliases={0: 0}, interpret=interpret)
    return call(old, wanted.astype(jnp.int32), new, row)[0]


@custom_vmap
def _by_kernel(old: Array, wanted: Array, new: Array, row: Array) -> Array:
    return copied(old, wanted, new, row)


@_by_kernel.def_vmap
def _by_xla(size: int, batched: Any, *given: Array) -> tuple[Array, bool]:
    axes = tuple(0 if one else None for one in batched)
    return jax.vmap(scattered, in_axes=axes, axis_size=size)(*given), True
