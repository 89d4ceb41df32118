"""Kernels as Pallas writes them, made a little better, and launched.

Pallas writes a kernel in Triton's language and hands it to the GPU's compiler, which rounds every product before it
goes into a sum. Here that text is taken, sums of products become one instruction each, and parts of several kernels can
be made one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

Shapes = Sequence[jax.ShapeDtypeStruct]


def written(call: Callable[..., Any], given: Shapes, registers: int | None = None) -> str:
    """The one kernel that `call` launches on arrays of these shapes, in Triton's language.

    The fewer registers a thread may have, the more programs run side by side, and the more each has to put aside.
    """
    lowered = jax.jit(call).trace(*given).lower(lowering_platforms=("cuda",))
    return _improved(lowered.compiler_ir("stablehlo"), registers)


def launch(
    text: str, name: str, given: Sequence[Array], out: Shapes, programs: int, aliases: Mapping[int, int] | None = None
) -> Sequence[Array]:
    """What a kernel of this name makes of arrays, one warp a program. Of `aliases`, outputs begin as those inputs."""
    return jax.ffi.ffi_call("__gpu$xla.gpu.triton", list(out), input_output_aliases=dict(aliases or {}))(
        *given,
        name=name,
        ir=text,
        num_stages=np.int32(1),
        num_warps=np.int32(1),
        grid_x=np.int32(programs),
        grid_y=np.int32(1),
        grid_z=np.int32(1),
        debug=False,
    )


def _improved(module: Any, registers: int | None) -> str:
    """The kernel in what Pallas made of the one call in this module."""
    from jaxlib.mlir import ir
    from jaxlib.triton import dialect

    [main] = [op for op in module.body.operations if op.attributes["sym_name"].value == "main"]
    [call] = [op for op in main.regions[0].blocks[0].operations if op.operation.name == "stablehlo.custom_call"]
    code = ir.StringAttr(ir.DictAttr(call.operation.attributes["mhlo.backend_config"])["ir"]).value_bytes
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        dialect.register_dialect(context)
        context.load_all_available_dialects()
        kernel = ir.Module.parse(code)
        with ir.Location.unknown():
            _contract(ir, kernel.operation)
        if registers is not None:
            kernel.operation.attributes["ttg.maxnreg"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), registers)
        return str(kernel.operation.get_asm(enable_debug_info=False))


def _contract(ir: Any, operation: Any) -> None:
    """Products that are used in one sum alone become one instruction with it."""
    for region in operation.regions:
        for block in region:
            for op in list(block):
                _contract(ir, op.operation)
                if op.operation.name in ("arith.addf", "arith.subf"):
                    _contract_sum(ir, op.operation)


def _contract_sum(ir: Any, op: Any) -> None:
    """a·b + c, c − a·b and a·b − c, if one of the two is such a product."""

    def make(name: str, *operands: Any) -> Any:
        return ir.Operation.create(name, [op.results[0].type], list(operands), ip=ir.InsertionPoint(op)).result

    minus = op.name == "arith.subf"
    for k in (1, 0):
        product, other = op.operands[k].owner, op.operands[1 - k]
        if getattr(product, "name", None) != "arith.mulf" or len(list(product.results[0].uses)) > 1:
            continue
        a, b = product.operands
        if minus:
            a, other = (make("arith.negf", a), other) if k else (a, make("arith.negf", other))
        op.results[0].replace_all_uses_with(make("math.fma", a, b, other))
        op.erase()
        product.erase()
        return
