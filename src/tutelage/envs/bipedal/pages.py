"""Values of many environments on a few large arrays, to be handed from one kernel to the next.

The GPU's compiler looks for the best way to each access to memory with an effort that grows with the square of a
kernel's length. So a kernel writes whole pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, PyTree

Shape = tuple[int, ...]
Page = Array  # [entries, …, environments], floats


@dataclass(frozen=True)
class Form:
    """Which values there are of an environment, and where they lie: those of equal shape share a page."""

    tree: Any
    leaves: tuple[jax.ShapeDtypeStruct, ...]

    @classmethod
    def of(cls, values: PyTree) -> Form:
        """That of values with the environments on their last axis."""
        leaves, tree = jax.tree.flatten(values)
        return cls(tree, tuple(jax.ShapeDtypeStruct(v.shape[:-1], v.dtype) for v in leaves))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Of the pages, without environments: entries come first, filled up to a power of two."""
        return tuple((_power_of_two(len(self._entries(shape))), *shape) for shape in self._groups)

    def values_of(self, lanes: int) -> PyTree:
        """The values of so many environments, by shape and type."""
        leaves = [jax.ShapeDtypeStruct((*leaf.shape, lanes), leaf.dtype) for leaf in self.leaves]
        return jax.tree.unflatten(self.tree, leaves)

    @property
    def _groups(self) -> tuple[Shape, ...]:
        return tuple(sorted({leaf.shape for leaf in self.leaves}, key=len))

    def _entries(self, shape: Shape) -> list[int]:
        return [k for k, leaf in enumerate(self.leaves) if leaf.shape == shape]

    def write(self, values: PyTree, stack: Callable[[list[Array]], Array]) -> tuple[Page, ...]:
        """The values on pages. Whole numbers, all of them small, become floats."""
        floats = [v.astype(jnp.float32) for v in jax.tree.leaves(values)]
        pages = []
        for shape, full in zip(self._groups, self.shapes, strict=True):
            entries = [floats[k] for k in self._entries(shape)]
            pages.append(stack([*entries, *(jnp.zeros_like(entries[0]),) * (full[0] - len(entries))]))
        return tuple(pages)

    def read(self, pages: Sequence[Any], entry: Callable[[Any, int], Array]) -> PyTree:
        """The values again."""
        values: list[Any] = [None] * len(self.leaves)
        for shape, page in zip(self._groups, pages, strict=True):
            for place, k in enumerate(self._entries(shape)):
                value = entry(page, place)
                values[k] = value > 0.5 if self.leaves[k].dtype == jnp.bool_ else value.astype(self.leaves[k].dtype)
        return jax.tree.unflatten(self.tree, values)


@dataclass(frozen=True)
class Pages:
    """Values of all environments on pages."""

    form: Form
    pages: tuple[Page, ...]

    @classmethod
    def of(cls, values: PyTree) -> Pages:
        """The pages of values with the environments on their last axis."""
        form = Form.of(values)
        return cls(form, form.write(values, jnp.stack))

    def values(self) -> PyTree:
        """What is on them, outside of kernels."""
        return self.form.read(self.pages, lambda page, k: page[k])


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def read(given: Sequence[Pages], refs: Sequence[Any], lane: Int[Array, " lanes"]) -> list[PyTree]:
    """What is on pages that lie one after the other, within a kernel."""
    rest = iter(refs)
    return [g.form.read([next(rest) for _ in g.pages], partial(entry, lane)) for g in given]


def entry(lane: Int[Array, "..."], page: Any, k: int) -> Array:
    """Entry k of a page within a kernel, for some environments or (of which it is quickest) one."""
    lane = jnp.max(lane) if lane.size == 1 else lane
    shape = (*page.shape[1:-1], *(lane.shape or (1,)))
    if shape == (1,):
        return page[k, lane] + jnp.zeros(1)
    at = [lax.broadcasted_iota(jnp.int32, shape, axis) for axis in range(len(shape) - 1)]
    return page[(jnp.full(shape, k), *at, jnp.broadcast_to(lane, shape))]


def all_of(axes: Shape, lane: Int[Array, " lanes"]) -> tuple[Array, ...]:
    """Where all entries of leading axes are, for each environment."""
    shape = (*axes, *lane.shape)
    return (*(lax.broadcasted_iota(jnp.int32, shape, k) for k in range(len(axes))), jnp.broadcast_to(lane, shape))
