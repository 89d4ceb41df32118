"""From a jaxpr to a program: each equation by the rule of its primitive, the jaxprs that it calls written in its place.

A rule takes the program, the equation and its values, and gives the values of its results. `rule` enters it under the
names of its primitives; a primitive without one is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import numpy as np

from tutelage.errors import UserError
from tutelage.page.records import plain
from tutelage.page.translate.program import Program
from tutelage.page.translate.values import Shape, Value

Rule = Callable[..., "Value | Sequence[Value]"]
Function = TypeVar("Function", bound=Rule)

RULES: dict[str, Rule] = {}


@dataclass(frozen=True)
class Equation:
    """What a rule is told of an equation besides its values. Keys are seen as they lie in memory, as two numbers."""

    name: str
    params: Mapping[str, Any]
    takes: tuple[Any, ...]  # the abstract values of its arguments
    gives: tuple[tuple[Shape, str], ...]
    needed: tuple[bool, ...]  # which of its results anything reads

    @property
    def shape(self) -> Shape:
        """The shape of its only result."""
        return self.gives[0][0]

    @property
    def dtype(self) -> str:
        """The type of its only result."""
        return self.gives[0][1]

    @property
    def of_keys(self) -> bool:
        """Whether its first argument holds keys, which have one more axis than they say."""
        return jax.dtypes.issubdtype(self.takes[0].dtype, jax.dtypes.prng_key)


def rule(*names: str) -> Callable[[Function], Function]:
    """Enters a rule for these primitives."""

    def enter(function: Function) -> Function:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def called(p: Program, closed: Any, values: Sequence[Value], needed: Sequence[bool] | None = None) -> list[Value]:
    """The results of a closed jaxpr; those that are not needed may be None."""
    return _run(p, closed.jaxpr, closed.consts, values, needed)


def traced(p: Program, function: Callable[..., Any], shapes: Sequence[Any], values: Sequence[Value]) -> list[Value]:
    """The results of a Python function of arrays."""
    return called(p, jax.make_jaxpr(function)(*shapes), values)


def _run(p: Program, jaxpr: Any, consts: Sequence[Any], values: Sequence[Value], needed: Sequence[bool] | None) -> list:
    held: dict[Any, Value] = {}

    def read(atom: Any) -> Value:
        return known(p, atom.val) if hasattr(atom, "val") else held[atom]

    for variable, const in zip(jaxpr.constvars, consts, strict=True):
        held[variable] = const if isinstance(const, Value) else known(p, const)
    held.update(zip(jaxpr.invars, values, strict=True))
    wanted = [True] * len(jaxpr.outvars) if needed is None else needed
    out = [v if keep else None for v, keep in zip(jaxpr.outvars, wanted, strict=True)]
    for equation, used in _alive(jaxpr, out):
        results = _applied(p, equation, used, [read(atom) for atom in equation.invars])
        held.update((v, x) for v, x, use in zip(equation.outvars, results, used, strict=True) if use)
    return [None if v is None else read(v) for v in out]


def _alive(jaxpr: Any, out: Sequence[Any]) -> list[tuple[Any, tuple[bool, ...]]]:
    """The equations that something depends on, and which of their results are read."""
    read = {v for v in out if v is not None and not hasattr(v, "val")}
    kept = []
    for equation in reversed(jaxpr.eqns):
        used = tuple(v in read for v in equation.outvars)
        if any(used):
            kept.append((equation, used))
            read.update(v for v in equation.invars if not hasattr(v, "val"))
    return kept[::-1]


def _applied(p: Program, equation: Any, used: tuple[bool, ...], values: Sequence[Value]) -> Sequence[Value]:
    name = equation.primitive.name
    if name not in RULES:
        raise UserError(f"No engine can be made of this: JAX's primitive {name!r} has no translation into C.")
    gives = tuple(plain(v.aval) for v in equation.outvars)
    told = Equation(name, equation.params, tuple(v.aval for v in equation.invars), gives, used)
    found = RULES[name](p, told, *values)
    results = [found] if isinstance(found, Value) else found
    for value, wanted, use in zip(results, gives, used, strict=True):
        assert not use or (value.shape, value.dtype) == wanted, f"{equation}: {value}, not {wanted}"
    return results


def known(p: Program, x: Any) -> Value:
    """A value that the jaxpr holds."""
    if hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return p.constant(np.asarray(x))
