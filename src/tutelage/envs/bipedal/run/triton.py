"""Kernels as Pallas writes them in Triton's language, some of it said in fewer instructions, and parts of several made
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tutelage import gpu


def written(call: Callable[..., Any], given: gpu.Shapes, registers: int | None = None) -> str:
    """The one kernel that `call` launches on arrays of these shapes, in Triton's language.

    The fewer registers a thread may have, the more programs run side by side, and the more each has to put aside.
    """
    ir = gpu.private(gpu.IR)
    with gpu.parsed(gpu.text(call, given)) as kernel:
        _shorten(ir, kernel.operation)
        if registers is not None:
            kernel.operation.attributes["ttg.maxnreg"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), registers)
        return str(kernel.operation.get_asm(enable_debug_info=False))


class Function(NamedTuple):
    """A kernel as a function that is not to be taken apart again."""

    text: str
    types: tuple[str, ...]  # of its parameters

    @classmethod
    def of(cls, kernel: str, name: str) -> Function:
        """That of a kernel in Triton's language."""
        found = re.search(r"tt\.func public @\w+\((.*?)\) (?:attributes \{.*?\} )?\{\n(.*)\n  \}\n\}", kernel, re.S)
        assert found, kernel[:200]
        text = f"  tt.func private @{name}({found[1]}) attributes {{noinline = true}} {{\n{found[2]}\n  }}"
        return cls(text, tuple(re.findall(r"%\w+: (!tt\.ptr<\w+>)", found[1])))


def call(name: str, given: Sequence[str], types: Sequence[str]) -> str:
    """The call of such a function."""
    return f"tt.call @{name}({', '.join(given)}) : ({', '.join(types)}) -> ()"


def kernel(name: str, functions: Sequence[str], types: Sequence[str], body: str, registers: int | None) -> str:
    """A kernel that calls functions; its parameters are %a0, %a1 and so on."""
    parameters = ", ".join(f"%a{k}: {kind} {{tt.divisibility = 32 : i32}}" for k, kind in enumerate(types))
    limit = "" if registers is None else f" attributes {{ttg.maxnreg = {registers} : i32}}"
    bodies = "\n".join(functions)
    return f"""module @{name}{limit} {{
{bodies}
  tt.func public @{name}({parameters}) {{
{body}
    tt.return
  }}
}}
"""


def _shorten(ir: Any, operation: Any) -> None:
    """Fewer instructions for sums of products, for quotients, and for entries of an axis that threads share."""
    for region in operation.regions:
        for block in region:
            for op in list(block):
                _shorten(ir, op.operation)
                if op.operation.name in ("arith.addf", "arith.subf"):
                    _contract_sum(ir, op.operation)
                elif op.operation.name == "arith.divf":
                    _invert(ir, op.operation)
                elif op.operation.name == "tt.reduce":
                    _hand_over(ir, op.operation)


def _invert(ir: Any, op: Any) -> None:
    """a / b as a · (1 / b), two instructions instead of eight, and no less exact; 1 / b is 0 from 2¹²⁶ on."""
    a, b = op.operands
    here, one = ir.InsertionPoint(op), ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
    how = {
        "asm_string": ir.StringAttr.get("rcp.approx.ftz.f32 $0, $1;"),
        "constraints": ir.StringAttr.get("=r,r"),
        "pure": ir.BoolAttr.get(True),
        "packed_element": one,
    }
    quotient = ir.Operation.create("tt.elementwise_inline_asm", [b.type], [b], attributes=how, ip=here).result
    if _number(ir, a) != 1:
        quotient = ir.Operation.create("arith.mulf", [b.type], [a, quotient], ip=here).result
    op.results[0].replace_all_uses_with(quotient)
    op.erase()


def _hand_over(ir: Any, op: Any) -> None:
    """The sum of what is zero but for entry k of the first axis, spread over threads, is that entry."""
    shape, [inner] = list(ir.RankedTensorType(op.operands[0].type).shape), op.regions[0].blocks
    along, how = ir.IntegerAttr(op.attributes["axis"]).value, [_name(of.operation) for of in inner]
    if along != 0 or shape[1:] != [1] or how not in (["arith.addf", RETURN], ["arith.addi", RETURN]):
        return
    chosen = op.operands[0].owner
    if _name(chosen) != "arith.select" or _number(ir, chosen.operands[2]) != 0:
        return
    mask, values, _ = chosen.operands
    if _name(mask.owner) != "arith.cmpi" or ir.IntegerAttr(mask.owner.attributes["predicate"]).value != 0:
        return
    index, k = mask.owner.operands[0].owner, _scalar(mask.owner.operands[1])
    while _name(index) in ("tt.expand_dims", "tt.broadcast", "tt.reshape"):
        index = index.operands[0].owner
    if _name(index) != "tt.make_range" or k is None:
        return
    here, whole = ir.InsertionPoint(op), ir.IntegerType.get_signless(32)
    at = ir.RankedTensorType.get([1, 1], whole)
    where = ir.Operation.create("tt.splat", [at], [k], ip=here).result
    entry = ir.RankedTensorType.get([1, 1], ir.RankedTensorType(values.type).element_type)
    axis = {"axis": ir.IntegerAttr.get(whole, 0)}
    found = ir.Operation.create("tt.gather", [entry], [values, where], attributes=axis, ip=here).result
    entry = ir.Operation.create("tt.reshape", [op.results[0].type], [found], ip=here).result
    op.results[0].replace_all_uses_with(entry)
    op.erase()


RETURN = "tt.reduce.return"


def _name(owner: Any) -> str | None:
    """The operation that a value is the result of, by name; None for what a block is given."""
    return getattr(owner, "name", None)


def _scalar(value: Any) -> Any | None:
    """The number that all entries of a value are, if that can be seen."""
    op = value.owner
    while _name(op) == "tt.broadcast":
        op = op.operands[0].owner
    return op.operands[0] if _name(op) == "tt.splat" else None


def _number(ir: Any, value: Any) -> float | None:
    """The constant that all entries of a value are, if that can be seen."""
    op = value.owner
    while _name(op) in ("tt.splat", "tt.broadcast", "arith.sitofp"):
        op = op.operands[0].owner
    if _name(op) != "arith.constant":
        return None
    number = op.attributes["value"]
    return float(number.value) if isinstance(number, ir.IntegerAttr | ir.FloatAttr) else None


def _contract_sum(ir: Any, op: Any) -> None:
    """a·b + c, c − a·b and a·b − c, if one of the two is such a product."""

    def make(name: str, *operands: Any) -> Any:
        return ir.Operation.create(name, [op.results[0].type], list(operands), ip=ir.InsertionPoint(op)).result

    minus = op.name == "arith.subf"
    for k in (1, 0):
        product, other = op.operands[k].owner, op.operands[1 - k]
        if _name(product) != "arith.mulf" or len(list(product.results[0].uses)) > 1:
            continue
        a, b = product.operands
        if minus:
            a, other = (make("arith.negf", a), other) if k else (a, make("arith.negf", other))
        op.results[0].replace_all_uses_with(make("math.fma", a, b, other))
        op.erase()
        product.erase()
        return
