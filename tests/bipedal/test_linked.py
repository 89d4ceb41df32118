"""Parts linked into one kernel: what they do to the arrays, and that it can be lowered for a GPU."""

import jax
import jax.numpy as jnp
import numpy as np

from bipedal.gpu import is_a_kernel, some_gpu
from tutelage.envs.bipedal import linked
from tutelage.envs.bipedal.linked import Script
from tutelage.envs.bipedal.pages import Form


def counting(n: int) -> Script:
    """Each environment adds its own step to its number, and writes down what it had."""
    s = Script(n)
    one = jax.ShapeDtypeStruct((1,), jnp.float32)
    s.add_pages("count", Form.of({"number": one, "clock": jax.ShapeDtypeStruct((1,), jnp.int32)}))
    s.add_array("steps", (n, 1))
    s.add_array("log", (n, 8))

    def double(count, lane):
        return {"twice": 2 * count["number"]}

    def add(count, doubled, steps, log, lane):
        log[lane, count["clock"]] = doubled["twice"]
        return {"number": count["number"] + steps[lane, jnp.zeros_like(lane)], "clock": count["clock"] + 1}

    s.add(double, ["count"], "doubled")
    s.add(add, ["count", "doubled"], "count", looks=["steps"], logs=["log"])
    return s


def given(s: Script, n: int):
    count = {"number": jnp.arange(n, dtype=jnp.float32), "clock": jnp.zeros(n, jnp.int32)}
    return s.laid("count", count) | {"steps": jnp.arange(1.0, n + 1)[:, None]}


def test_parts_hand_on_what_they_find() -> None:
    s = counting(3)
    out = s.interpreted(given(s, 3), 4)
    count = s.values("count", out)
    np.testing.assert_array_equal(count["number"], [4, 9, 14])
    np.testing.assert_array_equal(count["clock"], [4, 4, 4])
    np.testing.assert_array_equal(out["log"][:, :4], [[0, 2, 4, 6], [2, 6, 10, 14], [4, 10, 16, 22]])
    np.testing.assert_array_equal(out["log"][:, 4:], 0)


def test_it_is_one_kernel_that_calls_each_part_in_turn() -> None:
    s = counting(3)
    arrays = given(s, 3)
    with some_gpu():
        text = jax.jit(lambda a: s.run(a, 4)).trace(arrays).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call @") == 1
    assert "arith.constant 4 : i32" in text
    assert text.index("tt.call @double_") < text.index("tt.call @add_")
    assert text.count("noinline") == 2


def test_what_is_handed_to_the_compiler_can_be_read(monkeypatch) -> None:
    """Its loop is written by hand."""
    texts = []

    def read(text, name, given, out, *rest):
        texts.append(text)
        return [jnp.zeros(o.shape, o.dtype) for o in out]

    monkeypatch.setattr(linked, "launch", read)
    s = counting(3)
    with some_gpu():
        s.run(given(s, 3), 4)
    [text] = texts
    assert is_a_kernel(text)
    assert text.count("scf.for") == 1
