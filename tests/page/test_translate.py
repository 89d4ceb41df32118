"""The translator: what each primitive does in C, where arrays lie, and what has no translation."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from page.played import Called, assert_close
from tutelage.errors import UserError
from tutelage.page import build, engines
from tutelage.page.catalogue import Plan, Use
from tutelage.page.exports import Export
from tutelage.page.translate.memory import Places, written
from tutelage.page.translate.module import Module
from tutelage.page.translate.program import Constants, Program
from tutelage.page.translate.values import scalar

RNG = np.random.default_rng(0)
FLOATS = jnp.asarray(RNG.normal(size=(4, 5)), jnp.float32)
WHOLE = jnp.asarray(RNG.integers(-9, 9, (4, 5)), jnp.int32)
BITS = jnp.asarray(RNG.integers(0, 2**32, (4, 5), dtype=np.uint32))
ODD = jnp.float32([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 3e9, -3e9])

# By name: a function of one of the arrays above.
FUNCTIONS = {
    "arithmetic": (lambda x: (x + 2 * x - x / 3, -x, x**3, jnp.abs(x), jnp.sign(x)), FLOATS),
    "odd floats": (lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sqrt(jnp.abs(x)), x.astype(jnp.int32)), ODD),
    "remainders": (lambda x: (lax.rem(x, jnp.full_like(x, 0.7)), x % 0.7), FLOATS),
    "comparisons": (lambda x: (x < 0, x == x, jnp.maximum(x, 0.5), jnp.minimum(x, 0.5), jnp.isfinite(x)), ODD),
    "exponentials": (lambda x: (jnp.exp(x), jnp.log(jnp.abs(x)), jnp.tanh(x), jax.nn.sigmoid(x)), FLOATS),
    "small ones": (lambda x: (jnp.expm1(x / 20), jnp.log1p(jnp.abs(x) / 20), lax.erf_inv(x / 4)), FLOATS),
    "waves": (lambda x: (jnp.sin(9 * x), jnp.cos(9 * x), jnp.tan(x / 3)), FLOATS),
    "powers": (lambda x: (jnp.abs(x) ** 1.7, jnp.exp2(x), lax.rsqrt(jnp.abs(x) + 1)), FLOATS),
    "whole numbers": (
        lambda x: (x // 3, x % 3, lax.div(x, x * 0), lax.rem(x, jnp.int32(-4)), jnp.clip(x, -2, 3)),
        WHOLE,
    ),
    "bits": (lambda x: (x << 3, x >> 5, ~x, x ^ 7, x | 1, x & 255, lax.population_count(x), x << 40), BITS),
    "types": (lambda x: (x.astype(jnp.uint8), x.astype(jnp.int16), x.view(jnp.float32) * 0, x > 9), BITS),
    "axes": (lambda x: (x.T, x[::-1], x[1:3, ::2], x.reshape(2, 10), jnp.expand_dims(x, 1)), WHOLE),
    "put together": (lambda x: (jnp.concatenate([x, x.T[:4, :1]], 1), jnp.stack([x, 2 * x], 1), jnp.pad(x, 2)), WHOLE),
    "again and again": (lambda x: (lax.tile(x, (2, 3)), lax.tile(x.T, (1, 2)), lax.tile(x[0], (4,))), WHOLE),
    "gaps and cuts": (lambda x: lax.pad(x, jnp.int32(7), ((-1, 2, 1), (1, -2, 0))), WHOLE),
    "sums": (
        lambda x: (x.sum(), x.sum(0), x.max(1), x.min(), x.prod(1), jnp.cumsum(x, 1), lax.cumsum(x, 0, True)),
        FLOATS,
    ),
    "any and all": (lambda x: ((x > 0).any(1), (x > -8).all(), x.argmax(1), x.argmin(0)), WHOLE),
    "first NaN": (lambda x: (jnp.argmax(x), jnp.argmin(x), x.max(), x.min()), ODD),
    "products": (lambda x: (x @ x.T, x[0] @ x[1], jnp.einsum("ij,ik->ijk", x, x), jnp.outer(x[0], x[1])), FLOATS),
    "order": (
        lambda x: (jnp.sort(x), jnp.argsort(x, axis=0), jnp.sort(x, axis=0)),
        WHOLE,
    ),
    "order of odd floats": (lambda x: (jnp.sort(x), jnp.argsort(x)), ODD),
    "gathered": (
        lambda x: (x[jnp.array([3, 0, 2])], x[:, jnp.array([1, -1])], x.at[7].get(mode="fill", fill_value=5)),
        WHOLE,
    ),
    "scattered": (lambda x: (x.at[jnp.array([0, 0])].add(2), x.at[9].set(1, mode="drop"), x.at[:, 2].max(4)), WHOLE),
    "gathered beyond": (lambda x: _beyond(lambda at, mode: _gather(x, at, mode)), WHOLE),
    "scattered beyond": (lambda x: _beyond(lambda at, mode: _scatter(x, at, mode)), WHOLE),
    "slices": (
        lambda x: (lax.dynamic_slice(x, (x[0, 0], 4), (2, 2)), lax.dynamic_update_slice(x, x[:2, :2], (3, 1))),
        WHOLE,
    ),
    "loops": (lambda x: lax.fori_loop(0, 5, lambda k, at: (at[1] + k, at[0]), (x, 2 * x)), WHOLE),
    "while": (lambda x: lax.while_loop(lambda x: x.sum() < 90, lambda x: x * 2 + 1, jnp.abs(x)), WHOLE),
    "scan": (
        lambda x: lax.scan(lambda a, row: (a + row, a * row.sum()), jnp.zeros(5, jnp.int32), x, reverse=True),
        WHOLE,
    ),
    "branches": (lambda x: lax.switch(x[0, 0] % 3, [jnp.negative, jnp.abs, lambda x: x * 3], x), WHOLE),
    "keys": (lambda x: _drawn(jax.random.key(x[0, 0])), WHOLE),
}


BEYOND = jnp.array([[-7], [0], [3], [4], [900]], jnp.int32)


def _beyond(windows):
    """Windows at places of which some are beyond the ends; where they are unsigned, far beyond."""
    modes = [lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP, lax.GatherScatterMode.PROMISE_IN_BOUNDS]
    return [windows(at, mode) for at in (BEYOND, BEYOND.astype(jnp.uint32)) for mode in modes]


def _gather(x, at, mode):
    places = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(x, at, places, (1, x.shape[1]), mode=mode)


def _scatter(x, at, mode):
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    return lax.scatter_add(x, at, jnp.ones((len(at), x.shape[1]), x.dtype), numbers, mode=mode)


def _drawn(key):
    keys = jax.random.split(key, 3)
    each = jax.vmap(lambda key: jax.random.uniform(key, (2,)))(keys)
    return each, jax.random.permutation(keys[1], 7), jax.random.normal(jax.random.fold_in(keys[2], 5), (3,))


def _exported(function, x) -> Export:
    return Export(function, {"x": jax.ShapeDtypeStruct(x.shape, x.dtype)}, ("y",))


@pytest.mark.slow
def test_every_primitive(tmp_path) -> None:
    """In both builds, beside JAX."""
    pytest.importorskip("ziglang")
    exports = {name.replace(" ", "_"): _exported(*given) for name, given in FUNCTIONS.items()}
    source = build.source_of(Plan("primitives", (Use({}, exports),)))
    build.write(source, tmp_path)
    shipped = engines.Shipped(tmp_path, "primitives")
    ours = Called(engines.Found(shipped, source.manifest["uses"][0]["functions"], 0))
    for name, (f, x) in FUNCTIONS.items():
        assert_close(ours(name.replace(" ", "_"), x), f(x), within=2e-6)


def test_a_promise_that_is_broken_reads_where_xla_reads() -> None:
    """At the nearest place, and writes nowhere; what the text does is the slow test's."""
    shape = {"x": jax.ShapeDtypeStruct(WHOLE.shape, jnp.int32)}
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    read, write = Module(), Module()
    read.add("f", lambda x: _gather(x, BEYOND, mode), shape, ("y",))
    write.add("f", lambda x: _scatter(x, BEYOND, mode), shape, ("y",))
    assert "=within((int)(" in read.text()
    assert re.search(r"if\((\w+)>=0&&\1<=3\)", write.text())


def test_what_has_no_translation_is_named() -> None:
    with pytest.raises(UserError, match="primitive 'cholesky' has no translation"):
        Module().add("f", lax.linalg.cholesky, {"x": jax.ShapeDtypeStruct((3, 3), jnp.float32)}, ("y",))


def test_a_result_may_be_written_where_its_argument_is_read() -> None:
    """Then the argument is kept elsewhere first, and only then."""
    swapped = lambda state: (state[1], state[0])  # noqa: E731
    shapes = (jax.ShapeDtypeStruct((100,), jnp.float32),) * 2
    kept, read = Module(), Module()
    kept.add("f", swapped, {"state": shapes}, ("state",))
    read.add("f", swapped, {"before": shapes}, ("after",))
    assert "m0" in kept.text()
    assert "m0" not in read.text()


def test_arrays_that_are_not_needed_at_once_share_a_place() -> None:
    """What a loop reads is needed until its end."""
    p, places = Program(Constants()), Places()
    zero = scalar("float32", "0", (100,))

    def filled(value):
        made = p.array("float32", (100,))
        p.copy(made, value)
        return made

    first = filled(zero)
    second = filled(first)
    with p.block("for(;;)"):
        third = filled(second)
        fourth = filled(third)
    text = written(p.lines, places)
    place = {v.array: text.split(f"const {v.array}=(float*)m")[1][0] for v in (first, second, third, fourth)}
    assert place[first.array] in (place[third.array], place[fourth.array]), "the first is not read any more"
    assert place[second.array] not in (place[third.array], place[fourth.array]), "the loop reads the second again"
    assert places.sizes == [400] * 3
