"""Kernels as they are handed to the GPU's compiler. None runs here: what is written is read."""

import re

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from bipedal.gpu import some_gpu
from tutelage.envs.bipedal.physics.machine import computed_on, machine
from tutelage.envs.bipedal.run.machines import OneWalker
from tutelage.envs.bipedal.run.triton import written

EIGHT = jax.ShapeDtypeStruct((8,), jnp.float32)


def text_of(act, registers=None) -> str:
    """The kernel that makes act(x, y, z) of three arrays."""

    def program(x, y, z, out) -> None:
        out[...] = act(x[...], y[...], z[...])

    call = pl.pallas_call(program, out_shape=EIGHT, compiler_params=triton.CompilerParams(num_warps=1))
    with some_gpu():
        return written(call, [EIGHT] * 3, registers)


def term(text: str, name: str) -> str:
    """What a value is made of, in terms of what was loaded: a, b, c in that order."""
    loads = re.findall(r"(%\w+) = tt\.load", text)
    if name in loads:
        return "abc"[loads.index(name)]
    op, operands = re.findall(rf"{name} = (\S+) (%.*?) :", text)[0]
    inner = [term(text, operand) for operand in operands.split(", ")]
    return f"{op.split('.')[1]}({', '.join(inner)})"


@pytest.mark.parametrize(
    ("act", "made"),
    [
        (lambda x, y, z: x * y + z, "fma(a, b, c)"),
        (lambda x, y, z: x + y * z, "fma(b, c, a)"),
        (lambda x, y, z: x * y - z, "fma(a, b, negf(c))"),
        (lambda x, y, z: x - y * z, "fma(negf(b), c, a)"),
        (lambda x, y, z: x * y - y * z, "fma(negf(b), c, mulf(a, b))"),
        (lambda x, y, z: x + y - z, "subf(addf(a, b), c)"),
    ],
)
def test_a_product_goes_into_its_sum(act, made) -> None:
    text = text_of(act)
    [stored] = re.findall(r"tt\.store %\w+, (%\w+)", text)
    assert term(text, stored) == made


def test_a_product_that_is_used_again_is_kept() -> None:
    def act(x, y, z):
        product = x * y
        return jnp.maximum(product + z, product)

    text = text_of(act)
    assert text.count("mulf") == 1
    assert "fma" not in text


@pytest.mark.parametrize(("act", "products"), [(lambda x, y, z: x / y, 1), (lambda x, y, z: 1 / y, 0)])
def test_a_quotient_is_a_product_with_the_inverse(act, products) -> None:
    text = text_of(act)
    assert text.count("rcp.approx.ftz.f32") == 1
    assert text.count("mulf") == products
    assert "divf" not in text


def test_registers_are_limited_where_asked() -> None:
    assert "maxnreg = 96" in text_of(lambda x, y, z: x + y + z, 96)
    assert "maxnreg" not in text_of(lambda x, y, z: x + y + z)


@pytest.mark.parametrize("kind", [jnp.float32, jnp.int32, jnp.bool_])
def test_an_entry_is_handed_over(kind) -> None:
    """Not found by adding up zeros: each value that threads share takes one instruction instead of seven."""

    def program(x, out) -> None:
        with computed_on(OneWalker()):
            out[...] = machine().entry(x[...].astype(kind), 5).astype(jnp.float32)

    column, one = jax.ShapeDtypeStruct((8, 1), jnp.float32), jax.ShapeDtypeStruct((1,), jnp.float32)
    call = pl.pallas_call(program, out_shape=one, compiler_params=triton.CompilerParams(num_warps=1))
    with some_gpu():
        text = written(call, [column])
    [at] = re.findall(r"tt\.gather %\w+\[(%\w+)\]", text)
    assert re.search(rf"{at} = (?:tt\.splat %c5\w*|arith\.constant dense<5>)", text)
    assert "tt.reduce" not in text


@pytest.mark.parametrize("act", [lambda x: jnp.sum(x, axis=0), lambda x: jnp.sum(jnp.where(x > 5, x, 0), axis=0)])
def test_other_sums_are_added_up(act) -> None:
    def program(x, out) -> None:
        out[...] = act(x[...])

    column, one = jax.ShapeDtypeStruct((8, 1), jnp.float32), jax.ShapeDtypeStruct((1,), jnp.float32)
    call = pl.pallas_call(program, out_shape=one, compiler_params=triton.CompilerParams(num_warps=1))
    with some_gpu():
        text = written(call, [column])
    assert "tt.gather" not in text
    assert "tt.reduce" in text


def test_a_sum_of_what_a_loop_hands_on_is_added_up() -> None:
    """Of such values it cannot be seen where they come from."""

    def program(x, out) -> None:
        def again(_, state):
            mask, total = state
            return ~mask, total + jnp.sum(jnp.where(mask, x[...], 0), axis=0)

        out[...] = jax.lax.fori_loop(0, 3, again, (x[...] > 5, jnp.zeros(1)))[1]

    column, one = jax.ShapeDtypeStruct((8, 1), jnp.float32), jax.ShapeDtypeStruct((1,), jnp.float32)
    call = pl.pallas_call(program, out_shape=one, compiler_params=triton.CompilerParams(num_warps=1))
    with some_gpu():
        assert "tt.reduce" in written(call, [column])
