"""Values of many walkers on a few large arrays, to be handed from one kernel to the next.

The GPU's compiler looks for the best way to each access to memory with an effort that grows with the square of a
kernel's length. So a kernel writes few arrays, each as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, PyTree

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Which values there are of a walker, and where they lie: those of equal shape share an array."""

    tree: Any
    leaves: tuple[jax.ShapeDtypeStruct, ...]

    @classmethod
    def of(cls, values: PyTree) -> Layout:
        """That of values with the walkers on their last axis."""
        leaves, tree = jax.tree.flatten(values)
        return cls(tree, tuple(jax.ShapeDtypeStruct(v.shape[:-1], v.dtype) for v in leaves))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the arrays, without walkers: entries come first, filled up to a power of two."""
        return tuple((_power_of_two(len(self._entries(shape))), *shape) for shape in self._groups)

    def values_of(self, walkers: int) -> PyTree:
        """The values of so many walkers, by shape and type."""
        leaves = [jax.ShapeDtypeStruct((*leaf.shape, walkers), leaf.dtype) for leaf in self.leaves]
        return jax.tree.unflatten(self.tree, leaves)

    @property
    def _groups(self) -> tuple[Shape, ...]:
        return tuple(sorted({leaf.shape for leaf in self.leaves}, key=len))

    def _entries(self, shape: Shape) -> list[int]:
        return [k for k, leaf in enumerate(self.leaves) if leaf.shape == shape]

    def write(self, values: PyTree, stack: Callable[[list[Array]], Array]) -> tuple[Array, ...]:
        """The values on arrays `[entries, …, walkers]` of floats, which hold whole numbers too: they are small."""
        floats = [v.astype(jnp.float32) for v in jax.tree.leaves(values)]
        arrays = []
        for shape, full in zip(self._groups, self.shapes, strict=True):
            entries = [floats[k] for k in self._entries(shape)]
            arrays.append(stack([*entries, *(jnp.zeros_like(entries[0]),) * (full[0] - len(entries))]))
        return tuple(arrays)

    def read(self, arrays: Sequence[Any], entry: Callable[[Any, int], Array]) -> PyTree:
        """The values again."""
        values: list[Any] = [None] * len(self.leaves)
        for shape, array in zip(self._groups, arrays, strict=True):
            for place, k in enumerate(self._entries(shape)):
                value = entry(array, place)
                values[k] = value > 0.5 if self.leaves[k].dtype == jnp.bool_ else value.astype(self.leaves[k].dtype)
        return jax.tree.unflatten(self.tree, values)


@dataclass(frozen=True)
class Packed:
    """Values of all walkers on arrays."""

    layout: Layout
    arrays: tuple[Array, ...]

    @classmethod
    def of(cls, values: PyTree) -> Packed:
        """Values with the walkers on their last axis, packed."""
        layout = Layout.of(values)
        return cls(layout, layout.write(values, jnp.stack))

    def values(self) -> PyTree:
        """The values again, outside of kernels."""
        return self.layout.read(self.arrays, lambda array, k: array[k])


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def entry(walker: Int[Array, "..."], array: Any, k: int) -> Array:
    """Entry k of an array within a kernel, for some walkers or (of which it is quickest) one."""
    walker = jnp.max(walker) if walker.size == 1 else walker
    shape = (*array.shape[1:-1], *(walker.shape or (1,)))
    if shape == (1,):
        return array[k, walker] + jnp.zeros(1)
    at = [lax.broadcasted_iota(jnp.int32, shape, axis) for axis in range(len(shape) - 1)]
    return array[(jnp.full(shape, k), *at, jnp.broadcast_to(walker, shape))]


def all_of(axes: Shape, walker: Int[Array, " n"]) -> tuple[Array, ...]:
    """Where all entries of leading axes are, for each walker."""
    shape = (*axes, *walker.shape)
    return (*(lax.broadcasted_iota(jnp.int32, shape, k) for k in range(len(axes))), jnp.broadcast_to(walker, shape))
