"""Calls, loops and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutelage.page.translate.jaxprs import Equation, called, rule
from tutelage.page.translate.program import Program
from tutelage.page.translate.values import Value, scalar

_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
}


@rule(*_CALLS)
def call(p: Program, eqn: Equation, *values: Value) -> list[Value]:
    """A function, in the place where it is called."""
    return called(p, eqn.params[_CALLS[eqn.name]], values, eqn.needed)


@rule("while")
def loop(p: Program, eqn: Equation, *values: Value) -> list[Value]:
    """As long as a condition holds."""
    n, m = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    for_condition, for_body, first = values[:n], values[n : n + m], values[n + m :]
    state = [p.owned(value) for value in first]
    with p.block("for(;;)"):
        (goes_on,) = called(p, eqn.params["cond_jaxpr"], [*for_condition, *state])
        p.write(f"if(!({p.one(goes_on)})) break;")
        p.assign(state, called(p, eqn.params["body_jaxpr"], [*for_body, *state]))
    return state


@rule("scan")
def scan(p: Program, eqn: Equation, *values: Value) -> list[Any]:
    """For each entry of some arrays; there are none of results that are not needed."""
    n, m = eqn.params["num_consts"], eqn.params["num_carry"]
    constants, first, rows = values[:n], values[n : n + m], values[n + m :]
    state = [p.owned(value) for value in first]
    used = eqn.needed[m:]
    made = [p.array(dtype, shape) if use else None for (shape, dtype), use in zip(eqn.gives[m:], used, strict=True)]
    count, length = p.name("n"), eqn.params["length"]
    at = f"{length - 1}-{count}" if eqn.params["reverse"] else count
    with p.block(f"for(int {count}=0;{count}<{length};{count}++)"):
        given = [*constants, *state, *(row.row(at) for row in rows)]
        found = called(p, eqn.params["jaxpr"], given, [True] * m + list(used))
        for array, value in zip(made, found[m:], strict=True):
            if array is not None:
                p.copy(array.row(at), value)
        p.assign(state, found[:m])
    return [*state, *made]


@rule("cond")
def branch(p: Program, eqn: Equation, which: Value, *values: Value) -> list[Value]:
    """One of several functions."""
    chosen = p.let("int32", f"(int)({p.one(which)})").first()
    made = [_room(p, dtype, shape) for shape, dtype in eqn.gives]
    branches: Sequence = eqn.params["branches"]
    for k, closed in enumerate(branches):
        condition = f"if({chosen}<={k})" if k < len(branches) - 1 else ""
        with p.block(f"{'else ' if k else ''}{condition}"):
            p.assign(made, called(p, closed, values))
    return made


def _room(p: Program, dtype: str, shape: tuple[int, ...]) -> Value:
    if all(n == 1 for n in shape):
        return scalar(dtype, p.variable(dtype).first(), shape)
    return p.array(dtype, shape)
