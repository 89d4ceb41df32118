"""The one door to GPU kernels of our own, which are written with Pallas in Triton's language.

Neither is imported before a GPU is asked for kernels. JAX promises nothing of the names in `PRIVATE`, `TARGET` and
`CONFIG`, which are all that the library uses of the kind; a test for each says which one is gone. Where one is, or
there is no Triton at all, XLA compiles everything.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Shapes = Sequence[jax.ShapeDtypeStruct]

PALLAS, TRITON, IR, DIALECT, CORE = PRIVATE = {
    "jax.experimental.pallas": ("pallas_call", "BlockSpec", "ANY", "program_id", "when", "cdiv"),
    "jax.experimental.pallas.triton": ("CompilerParams",),
    "jaxlib.mlir.ir": ("Context", "Location", "Module", "Operation", "InsertionPoint", "RankedTensorType"),
    "jaxlib.triton.dialect": ("register_dialect",),
    "jax.extend.core": ("jaxpr_as_fun",),
}
TARGET = "__gpu$xla.gpu.triton"  # XLA's name for the call of a kernel that is given as text
CONFIG = "mhlo.backend_config"  # where Pallas puts a kernel, under "ir"


def private(name: str) -> Any:
    """One of the private modules, imported when first asked for."""
    assert name in PRIVATE, f"{name} is not said to be used"
    return importlib.import_module(name)


def pallas() -> Any:
    """Pallas, for those who write a kernel's program."""
    return private(PALLAS)


@lru_cache
def kernels_run_here() -> bool:
    """Whether there is a GPU for which kernels can be compiled; says so if there is one for which they cannot."""
    if jax.default_backend() != "gpu":
        return False
    why = refusal()
    if why:
        print(f"tutelage: GPU kernels cannot be made here ({why}); XLA does their work, more slowly.", file=sys.stderr)
    return not why


def refusal() -> str:
    """Why JAX would make no kernel for the GPU that it is on, or nothing if it would; also asked while tracing."""
    one = jax.ShapeDtypeStruct((1,), jnp.float32)

    def add_one(given: Any, made: Any) -> None:
        made[...] = given[...] + 1

    try:
        with parsed(text(kernel_call(add_one, "add_one", 1, [one]), [one])):
            return ""
    except (ImportError, AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return (str(error) or type(error).__name__).splitlines()[0]


def traced(act: Callable[..., Any], given: Shapes) -> Callable[..., Sequence[Array]]:
    """`act` of arrays of these shapes as it is traced now, whatever holds where it is called."""
    return private(CORE).jaxpr_as_fun(jax.make_jaxpr(act)(*given))


def kernel_call(
    program: Callable[..., None],
    name: str,
    programs: int,
    out: Shapes,
    *,
    aliases: Mapping[int, int] | None = None,
    interpret: bool = False,
) -> Callable[..., Sequence[Array]]:
    """So many programs of one warp each, which are given all of all arrays, then what they write to.

    Of `aliases`, outputs begin as those inputs.
    """
    pl, triton = private(PALLAS), private(TRITON)

    def call(*given: Array) -> Sequence[Array]:
        return pl.pallas_call(
            program,
            grid=(programs,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY) for _ in given],
            out_specs=[pl.BlockSpec(memory_space=pl.ANY) for _ in out],
            out_shape=list(out),
            input_output_aliases=dict(aliases or {}),
            compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
            interpret=interpret,
            name=name,
        )(*given)

    return call


def text(call: Callable[..., Any], given: Shapes) -> bytes:
    """The one kernel that `call` launches on arrays of these shapes, in Triton's language."""
    ir = private(IR)
    module: Any = jax.jit(call).trace(*given).lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
    [main] = [op for op in module.body.operations if op.attributes["sym_name"].value == "main"]
    [made] = [op for op in main.regions[0].blocks[0].operations if op.operation.name == "stablehlo.custom_call"]
    return ir.StringAttr(ir.DictAttr(made.operation.attributes[CONFIG])["ir"]).value_bytes


@contextmanager
def parsed(code: bytes | str):
    """A module in Triton's language, to be looked at and changed."""
    ir, dialect = private(IR), private(DIALECT)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        dialect.register_dialect(context)
        context.load_all_available_dialects()
        with ir.Location.unknown():
            yield ir.Module.parse(code)


def launch(
    text: str, name: str, given: Sequence[Array], out: Shapes, programs: int, aliases: Mapping[int, int] | None = None
) -> Sequence[Array]:
    """What a kernel of this name makes of arrays, one warp a program. Of `aliases`, outputs begin as those inputs."""
    return jax.ffi.ffi_call(TARGET, list(out), input_output_aliases=dict(aliases or {}))(
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
