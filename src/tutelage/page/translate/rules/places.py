"""Gather and scatter: what is read from, or written to, places that are found as the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutelage.page.translate.jaxprs import Equation, rule
from tutelage.page.translate.program import Program
from tutelage.page.translate.rules.elementwise import TEXTS, kind
from tutelage.page.translate.rules.views import place_of
from tutelage.page.translate.values import Shape, Value, literal

_NOTHING = {"f": float("nan"), "i": -(2**31), "u": 2**32 - 1, "b": 1}  # what a gather finds beyond the ends


def _is(mode: Any, name: str) -> bool:
    return name in str(mode).upper()


def _starts(
    p: Program, places: Value, batch: Sequence[str], axes: Sequence[int], room: Sequence[int], clip: bool
) -> dict[int, str]:
    """Where a window begins along each of these axes, along which it has so much room to move."""
    found = {}
    for k, axis in enumerate(axes):
        text = place_of(places.dtype, places.at([*batch, str(k)]))
        name = p.name("g")
        p.write(f"const int {name}={f'within({text},0,{room[axis]})' if clip else text};")
        found[axis] = name
    return found


def _inside(starts: dict[int, str], room: Sequence[int]) -> str:
    return "&&".join(f"{start}>=0&&{start}<={room[axis]}" for axis, start in starts.items())


def _place(starts: dict[int, str], window: dict[int, str], batch: dict[int, str], axes: int) -> list[str]:
    """The index of an element: where its window begins, and where in that it is."""
    place = []
    for axis in range(axes):
        parts = [batch[axis]] if axis in batch else [x for x in (starts.get(axis), window.get(axis, "0")) if x != "0"]
        place.append("+".join(x for x in parts if x) or "0")
    return place


@rule("gather")
def gathered(p: Program, eqn: Equation, x: Value, places: Value) -> Value:
    """Windows of the value. Those beyond the ends are filled, or moved within, as XLA does where none was promised."""
    numbers, sizes = eqn.params["dimension_numbers"], tuple(eqn.params["slice_sizes"])
    offsets = tuple(numbers.offset_dims)
    if eqn.of_keys:
        sizes, offsets = (*sizes, 2), (*offsets, len(eqn.shape) - 1)
    hidden = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window_axes = [k for k in range(len(x.shape)) if k not in hidden]
    room = [n - m for n, m in zip(x.shape, sizes, strict=True)]
    made = p.array(eqn.dtype, eqn.shape)
    with p.nest(eqn.shape) as index:
        batch = [i for k, i in enumerate(index) if k not in offsets]
        filled = _is(eqn.params["mode"], "FILL")
        starts = _starts(p, places, batch, numbers.start_index_map, room, clip=not filled)
        window = {axis: index[k] for axis, k in zip(window_axes, offsets, strict=True)}
        pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        element = x.at(_place(starts, window, {axis: batch[k] for axis, k in pairs}, len(x.shape)))
        if filled and starts:
            filling = eqn.params["fill_value"]
            filling = _NOTHING[kind(eqn.dtype)] if filling is None else filling
            element = f"({_inside(starts, room)})?{element}:{literal(filling, eqn.dtype)}"
        p.write(f"{made.at(index)}={element};")
    return made


_JOINED = {"scatter": "", "scatter-add": "add", "scatter_add": "add", "scatter-mul": "mul", "scatter_mul": "mul"}
_JOINED |= {f"scatter{dash}{name}": name for dash in "-_" for name in ("min", "max")}


@rule(*_JOINED)
def scattered(p: Program, eqn: Equation, x: Value, places: Value, updates: Value) -> Value:
    """Windows of the value replaced, or joined with others, one by one; those beyond the ends are left out."""
    numbers, made = eqn.params["dimension_numbers"], p.array(eqn.dtype, eqn.shape)
    hidden = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window_axes = [k for k in range(len(x.shape)) if k not in hidden]
    room = _room(x.shape, dict(zip(window_axes, numbers.update_window_dims, strict=True)), updates.shape)
    p.copy(made, x)
    with p.nest(updates.shape) as index:
        batch = [i for k, i in enumerate(index) if k not in numbers.update_window_dims]
        axes, clip = numbers.scatter_dims_to_operand_dims, _is(eqn.params["mode"], "CLIP")
        starts = _starts(p, places, batch, axes, room, clip)
        window = {axis: index[k] for axis, k in zip(window_axes, numbers.update_window_dims, strict=True)}
        pairs = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        to = made.at(_place(starts, window, {axis: batch[k] for axis, k in pairs}, len(x.shape)))
        p.write(
            f"{'' if clip or not starts else f'if({_inside(starts, room)}) '}{to}={_met(eqn, to, updates.at(index))};"
        )
    return made


def _room(whole: Shape, windows: dict[int, int], updates: Shape) -> list[int]:
    """How far a window can be moved along each axis; along an axis that it does not have it is one long."""
    return [n - (updates[windows[k]] if k in windows else 1) for k, n in enumerate(whole)]


def _met(eqn: Equation, old: str, new: str) -> str:
    """What is in a place after an update."""
    name = _JOINED[eqn.name]
    if not name:
        return new
    text = TEXTS[name]
    return (text if isinstance(text, str) else text[kind(eqn.dtype)]).format(old, new)
