"""What makes one element of many, in the order of their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from tutelage.page.translate.jaxprs import Equation, rule
from tutelage.page.translate.program import Program
from tutelage.page.translate.rules.elementwise import TEXTS, kind
from tutelage.page.translate.values import Value

_LOWEST = {"f": "(-__builtin_inff())", "i": "(-2147483647-1)", "u": "0u", "b": "0"}
_HIGHEST = {"f": "__builtin_inff()", "i": "2147483647", "u": "~0u", "b": "1"}

# What the elements are joined by, and what each type begins with.
_SUM = ("add", dict.fromkeys("fiub", "0"))
_PRODUCT = ("mul", dict.fromkeys("fiub", "1"))
_LARGEST, _SMALLEST = ("max", _LOWEST), ("min", _HIGHEST)
_ANY = ("or", dict.fromkeys("iub", "0"))
_ALL = ("and", {"i": "-1", "u": "~0u", "b": "1"})

_FOLDS = {
    "reduce_sum": _SUM,
    "reduce_prod": _PRODUCT,
    "reduce_max": _LARGEST,
    "reduce_min": _SMALLEST,
    "reduce_or": _ANY,
    "reduce_and": _ALL,
    "cumsum": _SUM,
    "cumprod": _PRODUCT,
    "cummax": _LARGEST,
    "cummin": _SMALLEST,
}


def _fold(name: str, dtype: str) -> tuple[str, Callable[[str, str], str]]:
    """What a variable of this type begins with, and how it takes in an element."""
    by, first = _FOLDS[name]
    text = TEXTS[by]
    form = text if isinstance(text, str) else text[kind(dtype)]
    return first[kind(dtype)], lambda variable, element: f"{variable}={form.format(variable, element)};"


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_or", "reduce_and")
def reduced(p: Program, eqn: Equation, x: Value) -> Value:
    """Over some axes."""
    axes = eqn.params["axes"]
    if all(x.shape[k] == 1 for k in axes):
        return x.without(axes)
    kept = [k for k in range(len(x.shape)) if k not in axes]
    first, take = _fold(eqn.name, eqn.dtype)

    def fold(outer: Sequence[str]) -> str:
        variable = p.variable(eqn.dtype, first).first()
        with p.nest([x.shape[k] for k in axes]) as inner:
            index = dict(zip((*kept, *axes), (*outer, *inner), strict=True))
            p.write(take(variable, x.at([index[k] for k in range(len(x.shape))])))
        return variable

    return _each(p, eqn, [x.shape[k] for k in kept], fold)


def _each(p: Program, eqn: Equation, shape: Sequence[int], element: Callable[[Sequence[str]], str]) -> Value:
    """An array whose elements are found one by one; of a single one, the variable."""
    p.close()
    if all(n == 1 for n in shape):
        found = element(["0"] * len(shape))
        return Value(eqn.dtype, eqn.shape, (0,) * len(eqn.shape), terms=(found,))
    made = p.array(eqn.dtype, eqn.shape)
    with p.nest(shape) as index:
        p.write(f"{made.at(index)}={element(index)};")
    return made


@rule("cumsum", "cumprod", "cummax", "cummin")
def accumulated(p: Program, eqn: Equation, x: Value) -> Value:
    """What the elements up to each make, along an axis."""
    axis, n = eqn.params["axis"], eqn.shape[eqn.params["axis"]]
    first, take = _fold(eqn.name, eqn.dtype)
    made = p.array(eqn.dtype, eqn.shape)
    with p.nest([1 if k == axis else n for k, n in enumerate(eqn.shape)]) as index:
        variable = p.variable(eqn.dtype, first).first()
        with p.nest([n]) as (k,):
            place = f"{n - 1}-{k}" if eqn.params["reverse"] else k
            there = [place if j == axis else i for j, i in enumerate(index)]
            p.write(f"{take(variable, x.at(there))}{made.at(there)}={variable};")
    return made


@rule("argmax", "argmin")
def place_of(p: Program, eqn: Equation, x: Value) -> Value:
    """The first place along an axis of the largest or the smallest element, or of NaN."""
    (axis,) = eqn.params["axes"]
    sign = ">" if eqn.name == "argmax" else "<"

    def find(outer: Sequence[str]) -> str:
        best = p.variable("int32", "0").first()
        at = lambda k: x.at([*outer[:axis], k, *outer[axis:]])  # noqa: E731
        with p.nest([x.shape[axis]]) as (k,):
            better = f"{at(k)}{sign}{at(best)}"
            if x.dtype == "float32":
                better = f"({better})||({at(k)}!={at(k)}&&{at(best)}=={at(best)})"
            p.write(f"if({better}) {best}={k};")
        return best

    return _each(p, eqn, [n for k, n in enumerate(x.shape) if k != axis], find)


ROWS = 8  # of the inner index that a round of a product's inner loop takes in


@rule("dot_general")
def product(p: Program, eqn: Equation, x: Value, y: Value) -> Value:
    """A product of matrices, each element summed in the order of the inner index.

    The innermost loop goes along y's columns, with some of the inner index at a time: so it reads y in its order, and
    writes what it sums but once a round.
    """
    (x_inner, y_inner), (x_batch, y_batch) = eqn.params["dimension_numbers"]
    x_rows = [k for k in range(len(x.shape)) if k not in (*x_inner, *x_batch)]
    y_columns = [k for k in range(len(y.shape)) if k not in (*y_inner, *y_batch)]
    left, right = x.transposed([*x_batch, *x_rows, *x_inner]), y.transposed([*y_batch, *y_inner, *y_columns])
    inner, batch = [x.shape[k] for k in x_inner] or [1], len(x_batch)
    made = p.array(eqn.dtype, eqn.shape)
    p.copy(made, Value(eqn.dtype, eqn.shape, (0,) * len(eqn.shape), terms=("0",)))
    with p.nest(eqn.shape[: batch + len(x_rows)]) as at, p.nest(inner[:-1]) as before:

        def term(k: str, column: Sequence[str]) -> str:
            place = [*before, k][: len(x_inner)]
            return f"{left.at([*at, *place])}*{right.at([*at[:batch], *place, *column])}"

        for first, rounds, rows in _rounds(inner[-1]):
            with p.nest([rounds]) as (r,), p.nest([y.shape[k] for k in y_columns]) as column:
                to = made.at([*at, *column])
                ks = (f"{r}*{ROWS}+{first + k}" if r != "0" else str(first + k) for k in range(rows))
                p.write(f"{to}={reduce(lambda sum_, k: f'({sum_}+{term(k, column)})', ks, to)};")
    return made


def _rounds(n: int) -> list[tuple[int, int, int]]:
    """Where rounds over n begin, how many there are, and how much each takes in."""
    whole, rest = divmod(n, ROWS)
    return [(0, whole, ROWS)] * (whole > 0) + [(whole * ROWS, 1, rest)] * (rest > 0)
