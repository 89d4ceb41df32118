"""Operations that make each element of the elements in the same place."""

from __future__ import annotations

from collections.abc import Mapping

from jax import lax

from tutelage.page.translate.jaxprs import Equation, rule
from tutelage.page.translate.program import Program
from tutelage.page.translate.values import IN_REGISTER, Value

Text = str | Mapping[str, str]  # for all types; or for floats, signed and unsigned whole numbers, and truths

_COMPARED = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lt_to": "<",
    "le_to": "<=",
    "eq_to": "==",
}

TEXTS: dict[str, Text] = {
    "add": "({0}+{1})",
    "add_any": "({0}+{1})",
    "sub": "({0}-({1}))",
    "mul": "({0}*{1})",
    "neg": "(-({0}))",
    "div": {"f": "({0}/{1})", "i": "idiv({0},{1})", "u": "udiv({0},{1})"},
    "rem": {"f": "frem({0},{1})", "i": "irem({0},{1})", "u": "urem({0},{1})"},
    "max": {"f": "fmax_({0},{1})", "i": "imax({0},{1})", "u": "umax({0},{1})", "b": "({0}|{1})"},
    "min": {"f": "fmin_({0},{1})", "i": "imin({0},{1})", "u": "umin({0},{1})", "b": "({0}&{1})"},
    **{name: f"({{0}}{sign}{{1}})" for name, sign in _COMPARED.items()},
    "and": "({0}&{1})",
    "or": "({0}|{1})",
    "xor": "({0}^{1})",
    "not": {"b": "(!({0}))", "i": "(~({0}))", "u": "(~({0}))"},
    "shift_left": {"i": "left({0},{1})", "u": "uleft({0},{1})"},
    "shift_right_logical": {"i": "right({0},{1})", "u": "uright({0},{1})"},
    "shift_right_arithmetic": {"i": "halved({0},{1})", "u": "uright({0},{1})"},
    "population_count": "__builtin_popcount({0})",
    "abs": {"f": "__builtin_fabsf({0})", "i": "iabs({0})", "u": "({0})"},
    "sign": {"f": "fsign({0})", "i": "isign({0})", "u": "(({0})!=0)"},
    "floor": "__builtin_floorf({0})",
    "ceil": "__builtin_ceilf({0})",
    "sqrt": "__builtin_sqrtf({0})",
    "rsqrt": "(1.0f/__builtin_sqrtf({0}))",
    "square": "(({0})*({0}))",
    "is_finite": "(__builtin_fabsf({0})<__builtin_inff())",
    "exp": "fexp({0})",
    "expm1": "fexpm1({0})",
    "log": "flog({0})",
    "log1p": "flog1p({0})",
    "tanh": "ftanh({0})",
    "logistic": "fsigmoid({0})",
    "sin": "fsin({0})",
    "cos": "fcos({0})",
    "tan": "ftan({0})",
    "erf_inv": "ferfinv({0})",
}
_BITS = {"float32": "fbits((u32)({0}))", "int32": "ibits({0})", "uint32": "ubits({0})"}


def kind(dtype: str) -> str:
    """What sort of numbers a type has: f, i, u, or b for truths."""
    return "f" if dtype == "float32" else "b" if dtype == "bool" else dtype[0]


@rule(*TEXTS)
def by_text(p: Program, eqn: Equation, *values: Value) -> Value:
    """Those of which the text alone has to be known."""
    text = TEXTS[eqn.name]
    form = text if isinstance(text, str) else text[kind(values[0].dtype)]
    return p.elementwise(eqn.dtype, eqn.shape, values, form.format)


@rule("round")
def rounded(p: Program, eqn: Equation, x: Value) -> Value:
    """To the nearest whole number; from halfway to the even one, or away from zero."""
    to_even = eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
    return p.elementwise(eqn.dtype, eqn.shape, [x], ("__builtin_rintf({0})" if to_even else "faway({0})").format)


@rule("convert_element_type")
def converted(p: Program, eqn: Equation, x: Value) -> Value:
    """Floats are cut to whole numbers; what is no zero is true."""
    if x.dtype == eqn.dtype:
        return x
    if x.array is None and not x.is_uniform and eqn.dtype in ("int32", "uint32"):
        return x.as_ramp(eqn.dtype)
    to = IN_REGISTER[eqn.dtype]
    cut = {"i": "ftoi", "u": "ftou"}.get(kind(eqn.dtype), "") if x.dtype == "float32" else ""
    text = "(({0})!=0)" if eqn.dtype == "bool" else f"(({to}){cut}({{0}}))"
    return p.elementwise(eqn.dtype, eqn.shape, [x], text.format)


@rule("bitcast_convert_type")
def reread(p: Program, eqn: Equation, x: Value) -> Value:
    """Bits read as another type of the same size."""
    if x.dtype == eqn.dtype:
        return x
    whole = "float32" not in (x.dtype, eqn.dtype)
    text = f"(({IN_REGISTER[eqn.dtype]})({{0}}))" if whole else _BITS[eqn.dtype]
    return p.elementwise(eqn.dtype, eqn.shape, [x], text.format)


@rule("select_n")
def selected(p: Program, eqn: Equation, which: Value, *cases: Value) -> Value:
    """The case that `which` says, element by element."""
    if which.shape != eqn.shape:
        axes = range(len(which.shape)) if eqn.takes[0].shape else ()
        which = which.broadcast(eqn.shape, axes)

    def text(which: str, *cases: str) -> str:
        if len(cases) == 2:
            return f"(({which})?({cases[1]}):({cases[0]}))"
        found = cases[-1]
        for k in reversed(range(len(cases) - 1)):
            found = f"(({which})<={k}?({cases[k]}):{found})"
        return found

    return p.elementwise(eqn.dtype, eqn.shape, [which, *cases], text)


@rule("clamp")
def clamped(p: Program, eqn: Equation, low: Value, x: Value, high: Value) -> Value:
    """The nearest value between two ends."""
    ends = [v if v.shape == eqn.shape else v.broadcast(eqn.shape) for v in (low, high)]
    largest, smallest = (TEXTS[name][kind(x.dtype)] for name in ("max", "min"))  # pyright: ignore[reportArgumentType]
    text = smallest.format(largest.format("{1}", "{0}"), "{2}")
    return p.elementwise(eqn.dtype, eqn.shape, [ends[0], x, ends[1]], text.format)


@rule("integer_pow")
def raised(p: Program, eqn: Equation, x: Value) -> Value:
    """A power, by squaring."""

    def text(x: str) -> str:
        found, square, n = "", f"({x})", abs(eqn.params["y"])
        while n:
            if n & 1:
                found = f"({found}*{square})" if found else square
            n >>= 1
            square = f"({square}*{square})" if n else square
        return f"(1.0f/{found})" if eqn.params["y"] < 0 else found or "1"

    return p.elementwise(eqn.dtype, eqn.shape, [x], text)


@rule("pow")
def to_the(p: Program, eqn: Equation, x: Value, y: Value) -> Value:
    """A power of floats."""
    return p.elementwise(eqn.dtype, eqn.shape, [x, y], "fpow({0},(float)({1}))".format)


@rule("exp2")
def power_of_two(p: Program, eqn: Equation, x: Value) -> Value:
    """2ˣ."""
    return p.elementwise(eqn.dtype, eqn.shape, [x], "fpow(2.0f,{0})".format)
