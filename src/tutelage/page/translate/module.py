"""A module: functions whose arguments and results are records, as one C text."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from importlib.resources import files
from itertools import count
from typing import Any, NamedTuple

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


class Signature(NamedTuple):
    """What a function's records are called, and how they lie."""

    takes: dict[str, Layout]
    gives: dict[str, Layout]


class Module:
    """Functions that are exported under their names, constants and places of memory that they share."""

    def __init__(self) -> None:
        self.functions: dict[str, Signature] = {}
        self._constants = Constants()
        self._places = Places()
        self._names: dict[str, str] = {}  # of functions, by their text
        self._small: set[str] = set()

    def add(
        self,
        name: str,
        call: Callable[..., PyTree],
        takes: Mapping[str, PyTree],
        gives: Sequence[str],
        often: bool = True,
    ) -> str:
        """Translates a function, and says under which name it is found: under another's, if they are the same.

        A result of the same name as an argument may be written to the very record that the argument is read from. What
        is not called `often` is made small rather than fast.
        """
        closed, shapes = jax.make_jaxpr(call, return_shape=True)(*takes.values())
        results = dict(zip(gives, (shapes,) if len(gives) == 1 else shapes, strict=True))
        layouts = ({record: Layout.of(tree) for record, tree in trees.items()} for trees in (takes, results))
        signature = Signature(*layouts)
        body = f"//{'|'.join([*signature.takes, '', *signature.gives])}\n{self._written(closed, signature)}"
        if body not in self._names:
            self._names[body] = free_name(name, self.functions)
            self.functions[self._names[body]] = signature
            if not often:
                self._small.add(self._names[body])
        return self._names[body]

    def _written(self, closed: Any, signature: Signature) -> str:
        p, (takes, gives) = Program(self._constants), signature
        values = []
        for k, (name, layout) in enumerate(takes.items()):
            values += [_kept(p, value, name in gives) for value in _leaves(p, f"r{k}", layout, "const ")]
        out = called(p, closed, values)
        for k, layout in enumerate(gives.values(), len(takes)):
            for to in _leaves(p, f"r{k}", layout, ""):
                p.copy(to, out.pop(0))
        p.close()
        return written(p.lines, self._places)

    def text(self) -> str:
        """All of it in C."""
        prelude = files("tutelage.page.translate").joinpath("prelude.c").read_text()
        functions = (
            _function(name, self.functions[name], body, "minsize" if name in self._small else "hot")
            for body, name in self._names.items()
        )
        return "\n".join([prelude, FRAME, *self._constants.text.values(), self._places.text(), *functions, ""])


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or the first of name_2, name_3 … that is not taken."""
    return name if name not in taken else next(f"{name}_{k}" for k in count(2) if f"{name}_{k}" not in taken)


def _function(name: str, signature: Signature, body: str, how: str) -> str:
    """Under its own name with its records' places as parameters; and without any, the places in the frame."""
    records = range(len(signature.takes) + len(signature.gives))
    parameters, places = ",".join(f"char*r{k}" for k in records), ",".join(f"frame[{k}]" for k in records)
    export = '__attribute__((export_name("{0}"))) void f_{0}'
    bound = f"{export.format(name + '_')}(void){{f_{name}({places});}}"
    return f"__attribute__(({how})) {export.format(name)}({parameters}){{\n{body}\n}}\n{bound}"


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
