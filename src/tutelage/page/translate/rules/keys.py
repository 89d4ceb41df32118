"""Random keys: what JAX's own implementation of them says, traced with their two numbers."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.extend.random import threefry_prng_impl as threefry

from tutelage.page.translate.jaxprs import Equation, rule, traced
from tutelage.page.translate.program import Program
from tutelage.page.translate.values import Value, contiguous, ramp, scalar


def _for_each(p: Program, eqn: Equation, function: Callable, *values: Value) -> Value:
    """A function of one key's numbers, for an array of keys."""
    keys, *others = eqn.takes
    for _ in keys.shape:
        function = jax.vmap(function)
    shapes = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values[: 1 + len(others)]]
    return traced(p, function, shapes, values)[0]


@rule("random_seed")
def seeded(p: Program, eqn: Equation, seed: Value) -> Value:
    """The key of a seed."""
    return traced(p, threefry.seed, [jax.ShapeDtypeStruct(seed.shape, seed.dtype)], [seed])[0]


@rule("random_bits")
def bits(p: Program, eqn: Equation, key: Value) -> Value:
    """Random whole numbers."""
    width, shape = eqn.params["bit_width"], eqn.params["shape"]
    return _for_each(p, eqn, lambda k: threefry.random_bits(k, width, shape), key)


@rule("random_split")
def split(p: Program, eqn: Equation, key: Value) -> Value:
    """Keys that follow from one."""
    return _for_each(p, eqn, lambda k: threefry.split(k, eqn.params["shape"]), key)


@rule("random_fold_in")
def folded(p: Program, eqn: Equation, key: Value, number: Value) -> Value:
    """The key that follows from a key and a number."""
    return _for_each(p, eqn, threefry.fold_in, key, number)


@rule("iota_2x32_shape")
def counted(p: Program, eqn: Equation) -> tuple[Value, Value]:
    """0, 1, 2 … in two words, the upper of which is zero."""
    (shape, dtype), _ = eqn.gives
    return scalar(dtype, "0u", shape), ramp(dtype, shape, contiguous(shape))


@rule("threefry2x32")
def mixed(p: Program, eqn: Equation, *words: Value) -> tuple[Value, ...]:
    """The generator itself."""
    shape, dtype = eqn.gives[0]
    words = tuple(w if w.shape == shape else w.broadcast(shape) for w in words)
    text = "threefry({word},{{0}},{{1}},{{2}},{{3}})"
    return tuple(p.elementwise(dtype, shape, words, text.format(word=word).format) for word in range(2))
