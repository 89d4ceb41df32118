"""What puts values together in new arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tutelage.page.translate.jaxprs import Equation, rule
from tutelage.page.translate.program import Program
from tutelage.page.translate.rules.views import starts_within
from tutelage.page.translate.values import Value


@rule("concatenate")
def concatenated(p: Program, eqn: Equation, *parts: Value) -> Value:
    """One after another along an axis."""
    return _joined(p, eqn, parts, eqn.params["dimension"])


@rule("stack")
def stacked(p: Program, eqn: Equation, *parts: Value) -> Value:
    """Along a new axis."""
    axis = eqn.params["axis"]

    def thick(x: Value) -> Value:
        return x.seen((*x.shape[:axis], 1, *x.shape[axis:]), (*x.strides[:axis], 0, *x.strides[axis:]))

    return _joined(p, eqn, [thick(x) for x in parts], axis)


def _joined(p: Program, eqn: Equation, parts: Sequence[Value], axis: int) -> Value:
    made, at = p.array(eqn.dtype, eqn.shape), 0
    for part in parts:
        p.copy(made.window([at if k == axis else 0 for k in range(len(eqn.shape))], part.shape), part)
        at += part.shape[axis]
    return made


@rule("dynamic_update_slice")
def updated(p: Program, eqn: Equation, x: Value, part: Value, *starts: Value) -> Value:
    """With a part replaced that is chosen as the program runs, moved so far that it lies within."""
    places = starts_within(p, starts, x.shape, part.shape)
    made = p.array(eqn.dtype, eqn.shape)
    p.copy(made, x)
    p.copy(made.window(places, part.shape), part)
    return made


@rule("pad")
def padded(p: Program, eqn: Equation, x: Value, filling: Value) -> Value:
    """With more around it and between its elements, or, where that is negative, less around it."""
    made = p.array(eqn.dtype, eqn.shape)
    p.copy(made, filling.broadcast(eqn.shape))
    config = [tuple(map(int, ends)) for ends in eqn.params["padding_config"]]
    strides = tuple(s * (gap + 1) for s, (_, _, gap) in zip(made.strides, config, strict=True))
    offset = sum(s * low for s, (low, _, _) in zip(made.strides, config, strict=True))
    spread = replace(made, shape=x.shape, strides=strides, offset=offset)
    with p.nest(x.shape) as index:
        inside = []
        for i, n, (low, high, gap) in zip(index, eqn.shape, config, strict=True):
            if low < 0 or high < 0:
                place = f"({i})*{gap + 1}+{low}"
                inside.append(f"{place}>=0&&{place}<{n}")
        p.write((f"if({'&&'.join(inside)})" if inside else "") + f"{spread.at(index)}={x.at(index)};")
    return made


_SORTED = {
    "float32": "sorted_float",
    "int32": "sorted_int",
    "uint32": "sorted_unsigned",
    "uint8": "sorted_byte",
    "bool": "sorted_byte",
}


@rule("sort")
def sorted_(p: Program, eqn: Equation, *values: Value) -> list[Value]:
    """Along an axis by the first value; those of equal ones stay in their order."""
    assert eqn.params["num_keys"] == 1, "sorting by several keys has no translation"
    axis, shape = eqn.params["dimension"], eqn.shape
    key = p.solid(values[0])
    place, spare = (p.array("int32", (shape[axis],)) for _ in range(2))
    made = [p.array(dtype, shape) for shape, dtype in eqn.gives]
    with p.nest([1 if k == axis else n for k, n in enumerate(shape)]) as index:
        column = f"&{key.at(index)}"
        p.write(f"{_SORTED[key.dtype]}({column},{key.strides[axis]},{shape[axis]},{place.array},{spare.array});")
        with p.nest([shape[axis]]) as (k,):
            there = [k if j == axis else i for j, i in enumerate(index)]
            source = [place.at([k]) if j == axis else i for j, i in enumerate(index)]
            for to, value in zip(made, values, strict=True):
                p.write(f"{to.at(there)}={value.at(source)};")
    return made
