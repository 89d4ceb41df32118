"""The C text of one function while it is written: statements, loops, and the arrays that they are about.

Values of one element are C variables. Operations on arrays, element by element, that follow one another and have one
shape share a loop.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tutelage.page.translate.values import IN_MEMORY, IN_REGISTER, Shape, Value, contiguous, in_memory, literal, scalar


@dataclass
class Step:
    """One operation of a loop: how it finds its element, and how it keeps it in its array."""

    found: str
    kept: str
    array: str


@dataclass
class Loop:
    """Operations on arrays of one shape, done element by element."""

    lengths: Shape
    steps: list[Step] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)  # arrays that it makes, and the variable of each one's element

    @property
    def index(self) -> tuple[str, ...]:
        """The loop's variables."""
        return tuple(f"i{k}" for k in range(len(self.lengths)))


@dataclass(frozen=True)
class Declared:
    """The place in the text from which on there is an array."""

    array: str
    dtype: str
    length: int

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.length * np.dtype(self.dtype).itemsize


Line = str | Loop | Declared


class Constants:
    """The constant arrays of a module, each once."""

    def __init__(self) -> None:
        self.text: dict[str, str] = {}

    def add(self, x: np.ndarray) -> Value:
        """A constant: uniform ones need no array."""
        dtype = {"float64": "float32", "int64": "int32"}.get(str(x.dtype), str(x.dtype))
        if x.size and x.tobytes() == x.flat[0].tobytes() * x.size:
            return scalar(dtype, literal(x.flat[0], dtype), x.shape)
        numbers = ",".join(literal(n, dtype) for n in x.ravel())
        name = f"k{hashlib.sha256(f'{dtype}:{numbers}'.encode()).hexdigest()[:12]}"
        self.text[name] = f"static const {IN_MEMORY[dtype]} {name}[]={{{numbers or '0'}}};"
        return in_memory(dtype, x.shape, name)


class Program:
    """A function that is being written."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.lines: list[Line] = []
        self._open: Loop | None = None
        self._names = 0

    def name(self, prefix: str) -> str:
        """A name that nothing has yet."""
        self._names += 1
        return f"{prefix}{self._names}"

    def write(self, text: str) -> None:
        """A statement. What has been said before it is done before it."""
        self.close()
        self.lines.append(text)

    def close(self) -> None:
        """Ends the loop that operations may still join."""
        if self._open:
            self.lines.append(self._open)
            self._open = None

    def let(self, dtype: str, text: str, shape: Shape = ()) -> Value:
        """A variable that keeps its value."""
        name = self.name("s")
        self.lines.append(f"const {IN_REGISTER[dtype]} {name}={text};")
        return scalar(dtype, name, shape)

    def variable(self, dtype: str, text: str | None = None, shape: Shape = ()) -> Value:
        """A variable that may change."""
        name = self.name("c")
        self.write(f"{IN_REGISTER[dtype]} {name}{'' if text is None else f'={text}'};")
        return scalar(dtype, name, shape)

    def array(self, dtype: str, shape: Shape) -> Value:
        """A new array."""
        value = in_memory(dtype, shape, self.name("a"))
        assert value.array is not None
        self.lines.append(Declared(value.array, dtype, max(value.size, 1)))
        return value

    def constant(self, x: Any) -> Value:
        """A value that is known."""
        return self.constants.add(np.asarray(x))

    def one(self, value: Value) -> str:
        """The expression of a value of one element."""
        if self._open and value.array in self._open.held:
            self.close()
        return value.first()

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Statements in braces."""
        self.write(f"{opening}{{")
        yield
        self.write("}")

    @contextmanager
    def nest(self, shape: Sequence[int]) -> Iterator[list[str]]:
        """Loops over all indices of a shape."""
        index = [self.name("j") if n != 1 else "0" for n in shape]
        loops = [(i, n) for i, n in zip(index, shape, strict=True) if n != 1]
        self.write("{" + "".join(f"for(int {i}=0;{i}<{n};{i}++){{" for i, n in loops))
        yield index
        self.write("}" * (len(loops) + 1))

    def copy(self, to: Value, value: Value) -> None:
        """Writes a value into an array, or a part of one."""
        self.close()
        if to.is_dense and (value.is_uniform or value.is_solid):
            value = value.seen((value.size,), (0 if value.is_uniform else 1,))
            to = to.seen((to.size,), (1,))
        with self.nest(value.shape) as index:
            self.write(f"{to.at(index)}={value.at(index)};")

    def solid(self, value: Value) -> Value:
        """The value in an array of its own, element after element."""
        if value.is_solid:
            return value
        made = self.array(value.dtype, value.shape)
        self.copy(made, value)
        return made

    def owned(self, value: Value) -> Value:
        """A variable or an array of one's own that holds this value at first."""
        if value.size == 1:
            return self.variable(value.dtype, self.one(value), value.shape)
        made = self.array(value.dtype, value.shape)
        self.copy(made, value)
        return made

    def assign(self, to: Sequence[Value], values: Sequence[Value]) -> None:
        """Gives variables and arrays new values, which may follow from their old ones, all at once."""
        self.close()
        changes = [(t, v) for t, v in zip(to, values, strict=True) if v != t]
        targets = {t.array for t, _ in changes}
        ready = []
        for t, v in changes:
            if t.size == 1:
                ready.append((t, self.let(v.dtype, self.one(v), v.shape)))
            elif v.array in targets:
                kept = self.array(v.dtype, v.shape)
                self.copy(kept, v)
                ready.append((t, kept))
            else:
                ready.append((t, v))
        for t, v in ready:
            if t.size == 1:
                self.write(f"{t.first()}={v.first()};")
            else:
                self.copy(t, v)

    def elementwise(self, dtype: str, shape: Shape, values: Sequence[Value], text: Callable[..., str]) -> Value:
        """An operation on each element; `text` makes its expression of those of the values' elements."""
        if math.prod(shape) == 1 or all(v.is_uniform for v in values):
            return self.let(dtype, text(*map(self.one, values)), shape)
        values = [v if v.shape == shape else v.broadcast(shape) for v in values]
        lengths = tuple(n for n in shape if n > 1)
        loop = self._joined(lengths, values)
        counters = iter(loop.index)
        index = [next(counters) if n > 1 else "0" for n in shape]
        made = self.array(dtype, shape)
        assert made.array is not None
        elements = [loop.held[v.array] if v.array in loop.held else v.at(index) for v in values]
        variable = f"v{made.array}"
        found = f"const {IN_REGISTER[dtype]} {variable}={text(*elements)};"
        loop.steps.append(Step(found, f"{made.at(index)}={variable};", made.array))
        loop.held[made.array] = variable
        return made

    def _joined(self, lengths: Shape, values: Sequence[Value]) -> Loop:
        """The open loop, if an operation on these values can be done in it, or a new one."""
        loop = self._open
        if loop and (loop.lengths != lengths or any(v.array in loop.held and not _as_made(v, lengths) for v in values)):
            self.close()
        self._open = self._open or Loop(lengths)
        return self._open


def _as_made(value: Value, lengths: Shape) -> bool:
    """Whether each element is the one that a loop over these lengths has made in the same round."""
    strides = tuple(s for s, n in zip(value.strides, value.shape, strict=True) if n > 1)
    return value.offset == 0 and not value.terms and strides == contiguous(lengths)
