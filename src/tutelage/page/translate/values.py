"""Values of a translated program: arrays in memory, and what is known of an element by its index alone.

A value that is another one seen in another way (a slice, a transpose, a broadcast) costs nothing: it says where its
elements are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Shape = tuple[int, ...]

IN_MEMORY = {
    "float32": "float",
    "int32": "int",
    "uint32": "unsigned",
    "int16": "short",
    "uint16": "unsigned short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "unsigned char",
}
IN_REGISTER = {**IN_MEMORY, "bool": "int"}


@dataclass(frozen=True)
class Value:
    """Element (i, j, …) is at place `start + i·strides[0] + j·strides[1] + …` of an array; or, without one, is that.

    A scalar that is no whole number, or is not known before the program runs, is the one term of its `start`.
    """

    dtype: str
    shape: Shape
    strides: Shape
    array: str | None = None
    offset: int = 0
    terms: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are one expression."""
        return self.array is None and not any(s for s, n in zip(self.strides, self.shape, strict=True) if n > 1)

    @property
    def is_solid(self) -> bool:
        """Whether it is all of an array, element after element."""
        return self.array is not None and self.offset == 0 and not self.terms and self.is_dense

    @property
    def is_dense(self) -> bool:
        """Whether its elements follow one another."""
        wanted = contiguous(self.shape)
        return all(s == w for s, w, n in zip(self.strides, wanted, self.shape, strict=True) if n > 1)

    def at(self, index: Sequence[str]) -> str:
        """The C expression of the element with this index, of which each part is one as well."""
        parts = list(self.terms)
        for i, stride in zip(index, self.strides, strict=True):
            if stride and i != "0":
                parts.append(f"({i})" if stride == 1 else f"({i})*{stride}")
        if self.array is None and not self.offset and len(parts) == len(self.terms) == 1:
            return self.terms[0]
        if self.offset or not parts:
            parts.append(str(self.offset))
        place = "+".join(parts)
        return f"{self.array}[{place}]" if self.array else f"(({IN_REGISTER[self.dtype]})({place}))"

    def first(self) -> str:
        """The expression of the first element: of a value of one element, its only one."""
        return self.at(("0",) * len(self.shape))

    def seen(self, shape: Iterable[int], strides: Iterable[int]) -> Value:
        """A value of the same elements and more or fewer, along other axes."""
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def broadcast(self, shape: Shape, axes: Sequence[int] | None = None) -> Value:
        """To this shape, in which its axes are `axes`: if they are not said, the last ones."""
        axes = range(len(shape) - len(self.shape), len(shape)) if axes is None else axes
        strides = [0] * len(shape)
        for axis, stride, n in zip(axes, self.strides, self.shape, strict=True):
            strides[axis] = stride if n > 1 else 0
        return self.seen(shape, strides)

    def without(self, axes: Iterable[int]) -> Value:
        """Without these axes of length one."""
        gone = set(axes)
        kept = [k for k in range(len(self.shape)) if k not in gone]
        return self.seen((self.shape[k] for k in kept), (self.strides[k] for k in kept))

    def reshaped(self, shape: Shape) -> Value | None:
        """In another shape, if nothing has to be moved for that."""
        if self.is_uniform:
            return self.seen(shape, (0,) * len(shape))
        if [n for n in self.shape if n > 1] == [n for n in shape if n > 1]:
            strides = iter([s for s, n in zip(self.strides, self.shape, strict=True) if n > 1])
            return self.seen(shape, (next(strides) if n > 1 else 0 for n in shape))
        return self.seen(shape, contiguous(shape)) if self.is_dense else None

    def transposed(self, order: Sequence[int]) -> Value:
        """With its axes in another order."""
        return self.seen((self.shape[k] for k in order), (self.strides[k] for k in order))

    def reversed(self, axes: Iterable[int]) -> Value:
        """Back to front along these axes."""
        axes, offset, strides = set(axes), self.offset, list(self.strides)
        for k in axes:
            offset += strides[k] * (self.shape[k] - 1)
            strides[k] = -strides[k]
        return replace(self, offset=offset, strides=tuple(strides))

    def window(self, starts: Sequence[int | str], shape: Iterable[int], steps: Sequence[int] | None = None) -> Value:
        """The part that begins at `starts`, numbers or C expressions, with every so manyth element."""
        offset, terms = self.offset, list(self.terms)
        for start, stride in zip(starts, self.strides, strict=True):
            if isinstance(start, int):
                offset += start * stride
            elif stride:
                terms.append(f"({start})*{stride}")
        strides = (s * k for s, k in zip(self.strides, steps or (1,) * len(self.strides), strict=True))
        return replace(self, offset=offset, terms=tuple(terms)).seen(shape, strides)

    def row(self, k: str | int) -> Value:
        """Entry k of the first axis."""
        starts = (k, *(0,) * (len(self.shape) - 1))
        return self.window(starts, (1, *self.shape[1:])).without([0])

    def as_ramp(self, dtype: str) -> Value:
        """In another whole type, if no memory has to be read for it."""
        return replace(self, dtype=dtype)


def scalar(dtype: str, text: str, shape: Shape = ()) -> Value:
    """A C expression, for all elements."""
    return Value(dtype, shape, (0,) * len(shape), terms=(text,))


def in_memory(dtype: str, shape: Shape, array: str) -> Value:
    """All of an array."""
    return Value(dtype, shape, contiguous(shape), array)


def ramp(dtype: str, shape: Shape, strides: Shape) -> Value:
    """Whole numbers that follow from the index."""
    return Value(dtype, shape, strides)


def contiguous(shape: Sequence[int]) -> Shape:
    """The strides of an array whose last axis is the quickest."""
    strides, n = [], 1
    for length in reversed(shape):
        strides.append(n)
        n *= length
    return tuple(reversed(strides))


def literal(x: Any, dtype: str) -> str:
    """A number in C."""
    x = np.asarray(x).item()
    if dtype != "float32":
        return f"{int(x)}u" if dtype == "uint32" else "(-2147483647-1)" if int(x) == -(2**31) else str(int(x))
    if math.isnan(x):
        return '__builtin_nanf("")'
    if math.isinf(x):
        return f"({'-' if x < 0 else ''}__builtin_inff())"
    return f"{float(np.float32(x)).hex()}f"
