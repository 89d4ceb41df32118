"""A module: functions whose arguments and results are records, as one C text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import jax
from jaxtyping import PyTree

import tutelage.page.translate.rules  # noqa: F401  enters the rules
from tutelage.page.records import Layout
from tutelage.page.translate.jaxprs import called
from tutelage.page.translate.memory import Places, written
from tutelage.page.translate.program import Constants, Program
from tutelage.page.translate.values import IN_MEMORY, Value, in_memory


RECORDS = 8  # that a function may have
FRAME = f"char*frame[{RECORDS}];"  # where the records of a call lie, for those to whom parameters are dear


class Module:
    """Functions that are exported under their names, constants and places of memory that they share."""

    def __init__(self) -> None:
        self._constants = Constants()
        self._places = Places()
        self._functions: list[str] = []

    def add(
        self, symbol: str, call: Callable[..., PyTree], takes: Mapping[str, PyTree], gives: Sequence[str]
    ) -> tuple[dict[str, Layout], dict[str, Layout]]:
        """Translates a function. Where the layouts of its arguments and of its results are is what comes back.

        A result of the same name as an argument may be written to the very record that the argument is read from.
        """
        closed, shapes = jax.make_jaxpr(call, return_shape=True)(*takes.values())
        results = dict(zip(gives, (shapes,) if len(gives) == 1 else shapes, strict=True))
        layouts = tuple({name: Layout.of(tree) for name, tree in trees.items()} for trees in (takes, results))
        self._functions.append(self._written(symbol, closed, *layouts))
        return layouts

    def _written(self, symbol: str, closed: Any, takes: Mapping[str, Layout], gives: Mapping[str, Layout]) -> str:
        p = Program(self._constants)
        values = []
        for k, (name, layout) in enumerate(takes.items()):
            values += [_kept(p, value, name in gives) for value in _leaves(p, f"r{k}", layout, "const ")]
        out = called(p, closed, values)
        for k, layout in enumerate(gives.values(), len(takes)):
            for to in _leaves(p, f"r{k}", layout, ""):
                p.copy(to, out.pop(0))
        p.close()
        return _function(symbol, len(takes) + len(gives), written(p.lines, self._places))

    def text(self) -> str:
        """All of it in C."""
        prelude = files("tutelage.page.translate").joinpath("prelude.c").read_text()
        return "\n".join([prelude, FRAME, *self._constants.text.values(), self._places.text(), *self._functions, ""])


def _function(symbol: str, records: int, body: str) -> str:
    """Under its own name with its records' places as parameters; and without any, the places in the frame."""
    parameters = ",".join(f"char*r{k}" for k in range(records))
    places = ",".join(f"frame[{k}]" for k in range(records))
    export = '__attribute__((export_name("{}"))) void f_{}'
    bound = f"{export.format(symbol + '_', symbol + '_')}(void){{f_{symbol}({places});}}"
    return f"{export.format(symbol, symbol)}({parameters}){{\n{body}\n}}\n{bound}"


def _leaves(p: Program, record: str, layout: Layout, const: str) -> list[Value]:
    """The arrays of a record, as pointers into it."""
    found = []
    for leaf in layout.leaves:
        name, kind = p.name("x"), f"{const}{IN_MEMORY[leaf.dtype]}"
        p.write(f"{kind}*restrict const {name}=({kind}*)({record}+{leaf.offset});")
        found.append(in_memory(leaf.dtype, leaf.shape, name))
    return found


def _kept(p: Program, value: Value, may_change: bool) -> Value:
    """An argument, safe from what is written to its record."""
    if value.size == 1:
        return p.let(value.dtype, value.first(), value.shape)
    if not may_change:
        return value
    kept = p.array(value.dtype, value.shape)
    p.copy(kept, value)
    return kept
