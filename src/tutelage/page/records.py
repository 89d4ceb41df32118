"""Records: how the arguments and results of an engine's functions lie in its memory.

A record is a pytree of arrays, leaf after leaf. Whoever calls a function makes the records that it reads and writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

ALIGNED = 16  # bytes: a record's own place, and its size
DTYPES = ("float32", "int32", "uint32", "int16", "uint16", "int8", "uint8", "bool")


@dataclass(frozen=True)
class Leaf:
    """One array of a record, and where in it it begins."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    offset: int

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Layout:
    """Where each leaf of a record lies."""

    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, tree: PyTree) -> Layout:
        """For pytrees like this one, of arrays or of shapes."""
        leaves, at = [], 0
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            shape, dtype = plain(leaf)
            assert dtype in DTYPES, f"no record holds {dtype}: {spelled(path)}"
            leaves.append(Leaf(spelled(path), shape, dtype, at))
            at += _up(leaves[-1].size, 4)
        return cls(tuple(leaves))

    @property
    def size(self) -> int:
        """Bytes."""
        return _up(max((leaf.offset + leaf.size for leaf in self.leaves), default=0), ALIGNED)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return {"size": self.size, "leaves": [[x.path, list(x.shape), x.dtype, x.offset] for x in self.leaves]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layout:
        """What `to_json` wrote."""
        return cls(tuple(Leaf(path, tuple(shape), dtype, at) for path, shape, dtype, at in data["leaves"]))

    def pack(self, tree: PyTree) -> bytes:
        """The bytes of a record with these values."""
        out = bytearray(self.size)
        for leaf, value in zip(self.leaves, jax.tree.leaves(tree), strict=True):
            array = np.asarray(jax.random.key_data(value) if _is_key(value) else value)
            assert (array.shape, str(array.dtype)) == (leaf.shape, leaf.dtype), (
                f"{leaf} is not {array.dtype}{array.shape}"
            )
            out[leaf.offset : leaf.offset + leaf.size] = array.tobytes()
        return bytes(out)


def plain(leaf: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type of an array as it lies in memory: a key is two numbers."""
    if _is_key(leaf):
        return (*leaf.shape, 2), "uint32"
    return tuple(leaf.shape), str(leaf.dtype)


def spelled(path: tuple[Any, ...]) -> str:
    """The way to a leaf, with dots: `encoder.kernel`, `legs.0`."""
    return ".".join(str(getattr(k, "name", getattr(k, "key", getattr(k, "idx", k)))) for k in path)


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _up(n: int, to: int) -> int:
    return -(-n // to) * to
