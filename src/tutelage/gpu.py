"""Whether kernels of our own run on the GPU that is here."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton


@lru_cache
def kernels_run_here() -> bool:
    """Whether there is a GPU for which kernels can be compiled: newer versions of JAX know some of them only."""
    return jax.default_backend() == "gpu" and kernels_can_be_lowered()


def kernels_can_be_lowered() -> bool:
    """Whether JAX would make kernels for the GPU that it is on; also asked while tracing."""
    one = jax.ShapeDtypeStruct((1,), jnp.float32)

    def add_one(given: Any, made: Any) -> None:
        made[...] = given[...] + 1

    call = pl.pallas_call(add_one, out_shape=one, compiler_params=triton.CompilerParams())
    try:
        jax.jit(call).trace(one).lower(lowering_platforms=("cuda",))
    except (NotImplementedError, RuntimeError, ValueError):
        return False
    return True
