"""What only looks at a value in another way, so that nothing is moved."""

from __future__ import annotations

from tutelage.page.translate.jaxprs import Equation, rule
from tutelage.page.translate.program import Program
from tutelage.page.translate.values import Value, ramp


@rule("stop_gradient", "copy", "copy_p", "random_wrap", "random_unwrap")
def same(p: Program, eqn: Equation, x: Value) -> Value:
    """The value itself."""
    return x


@rule("optimization_barrier")
def fenced(p: Program, eqn: Equation, *values: Value) -> tuple[Value, ...]:
    """The values themselves: C computes each once."""
    return values


@rule("broadcast_in_dim")
def broadcast(p: Program, eqn: Equation, x: Value) -> Value:
    """Along new axes, or along axes of length one."""
    axes = tuple(map(int, eqn.params["broadcast_dimensions"]))
    return x.broadcast(eqn.shape, (*axes, len(eqn.shape) - 1) if eqn.of_keys else axes)


@rule("squeeze")
def squeezed(p: Program, eqn: Equation, x: Value) -> Value:
    """Without axes of length one."""
    axes = len(eqn.takes[0].shape)
    return x.without(k % axes for k in eqn.params["dimensions"])


@rule("reshape", "expand_dims")
def reshaped(p: Program, eqn: Equation, x: Value) -> Value:
    """In another shape; if the elements do not lie in their order, they are brought into it."""
    found = x.reshaped(eqn.shape) or p.solid(x).reshaped(eqn.shape)
    assert found is not None
    return found


@rule("tile")
def tiled(p: Program, eqn: Equation, x: Value) -> Value:
    """Several times side by side along each axis."""
    pairs = list(zip(eqn.params["reps"], x.shape, x.strides, strict=True))
    found = x.seen([n for reps, length, _ in pairs for n in (reps, length)], [n for *_, s in pairs for n in (0, s)])
    return reshaped(p, eqn, found)


@rule("transpose")
def transposed(p: Program, eqn: Equation, x: Value) -> Value:
    """With its axes in another order."""
    order = eqn.params["permutation"]
    return x.transposed((*order, len(order)) if eqn.of_keys else order)


@rule("rev")
def reversed_(p: Program, eqn: Equation, x: Value) -> Value:
    """Back to front."""
    return x.reversed(eqn.params["dimensions"])


@rule("slice")
def sliced(p: Program, eqn: Equation, x: Value) -> Value:
    """A part that is known."""
    starts, steps = eqn.params["start_indices"], eqn.params["strides"] or (1,) * len(eqn.params["start_indices"])
    more = len(x.shape) - len(starts)
    return x.window((*starts, *(0,) * more), eqn.shape, (*steps, *(1,) * more))


@rule("dynamic_slice")
def sliced_at(p: Program, eqn: Equation, x: Value, *starts: Value) -> Value:
    """A part that is chosen as the program runs, moved so far that it lies within."""
    return x.window(starts_within(p, starts, x.shape, eqn.shape), eqn.shape)


def starts_within(p: Program, starts: tuple[Value, ...], whole: tuple[int, ...], part: tuple[int, ...]) -> list:
    """Where a part may begin; of axes for which nothing is said, at zero."""
    found = []
    for k, (n, m) in enumerate(zip(whole, part, strict=True)):
        moves = k < len(starts) and n != m
        at = place_of(starts[k].dtype, p.one(starts[k])) if moves else ""
        found.append(p.let("int32", f"within({at},0,{n - m})").first() if moves else 0)
    return found


def place_of(dtype: str, text: str) -> str:
    """A number as a place; what is beyond all places stays so."""
    return f"{'capped' if dtype == 'uint32' else '(int)'}({text})"


@rule("split")
def split(p: Program, eqn: Equation, x: Value) -> list[Value]:
    """Parts that follow one another along an axis."""
    axis, at, parts = eqn.params["axis"], 0, []
    for shape, _ in eqn.gives:
        parts.append(x.window([at if k == axis else 0 for k in range(len(shape))], shape))
        at += shape[axis]
    return parts


@rule("unstack")
def unstacked(p: Program, eqn: Equation, x: Value) -> list[Value]:
    """The entries of an axis."""
    axis = eqn.params["axis"]
    one = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
    return [
        x.window([n if k == axis else 0 for k in range(len(one))], one).without([axis]) for n in range(x.shape[axis])
    ]


@rule("iota")
def counted(p: Program, eqn: Equation) -> Value:
    """0, 1, 2 … along an axis."""
    strides = tuple(int(k == eqn.params["dimension"]) for k in range(len(eqn.shape)))
    if eqn.dtype in ("int32", "uint32"):
        return ramp(eqn.dtype, eqn.shape, strides)
    count = ramp("int32", eqn.shape, strides)
    return p.elementwise(eqn.dtype, eqn.shape, [count], "({0})".format)
