"""What memories have in common: they are emptied where an episode starts, and gone through step by step."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

State = TypeVar("State")  # a pytree of arrays `[P, …]`


@runtime_checkable
class Core(Protocol):
    """What stands between a student's encoder and its heads."""

    remembers: ClassVar[bool]  # whether what comes out depends on earlier steps

    def zeros(self, slots: int) -> PyTree:
        """The memory at the start of an episode, for so many slots."""
        ...

    def step(
        self, memory: Any, /, x: Float[Array, "P in"], start: Bool[Array, " P"]
    ) -> tuple[PyTree, Float[Array, "P H"]]:
        """One step of every slot: the memory after it and the features; `start` marks new episodes."""
        ...

    def unroll(self, x: Float[Array, "T P in"], start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
        """`step` over T steps from an empty memory."""
        ...


def emptied(state: State, start: Bool[Array, " P"]) -> State:
    """The state, zero in the slots where an episode starts."""
    return jax.tree.map(lambda s: jnp.where(start.reshape(start.shape + (1,) * (s.ndim - 1)), 0.0, s), state)


def before_each(states: Float[Array, "T P H"], start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
    """The state that each step meets, from those that the steps lead to; the first meets zero."""
    earlier = jnp.concatenate([jnp.zeros_like(states[:1]), states[:-1]])
    return jnp.where(start[..., None], 0.0, earlier)


def loop_unroll() -> int:
    """Steps an iteration of the sequential loops holds: launch latency decides on a GPU, compile time on a CPU."""
    return 16 if jax.default_backend() == "gpu" else 1


def matmul_precision() -> str | None:
    """The precision of products that a student has asked for.

    A backward pass is traced when the loss has been left, and must be told.
    """
    return jax.config.jax_default_matmul_precision  # pyright: ignore[reportAttributeAccessIssue]
