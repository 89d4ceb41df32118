"""Stages as one kernel: what they do to the arrays, and that it can be lowered for a GPU."""

import jax
import jax.numpy as jnp
import numpy as np

from bipedal.gpu import is_a_kernel, some_gpu
from tutelage import gpu
from tutelage.envs.bipedal.run.loop import Loop
from tutelage.envs.bipedal.run.packing import Layout
from tutelage.envs.bipedal.run.stages import Stage, Wanted


def counting(n: int) -> Loop:
    """Each walker adds its own step to its number, and writes down what it had."""
    s = Loop(n, {})
    one = jax.ShapeDtypeStruct((1,), jnp.float32)
    s.add_value("count", Layout.of({"number": one, "clock": jax.ShapeDtypeStruct((1,), jnp.int32)}))
    s.add_array("steps", (n, 1))
    s.add_array("log", (n, 8))

    def double(count):
        return {"twice": 2 * count["number"]}

    def add(count, doubled, steps, walker, log):
        log[walker, count["clock"]] = doubled["twice"]
        return {"number": count["number"] + steps[walker, jnp.zeros_like(walker)], "clock": count["clock"] + 1}

    s.add(Stage("double", double, ("count",), "doubled"))
    s.add(Stage("add", add, ("count", "doubled", "steps", "walker"), "count", logs=("log",)))
    return s


def given(s: Loop, n: int):
    count = {"number": jnp.arange(n, dtype=jnp.float32), "clock": jnp.zeros(n, jnp.int32)}
    return s.packed("count", count) | {"steps": jnp.arange(1.0, n + 1)[:, None]}


def test_stages_hand_on_what_they_find() -> None:
    s = counting(3)
    out = s.interpreted(given(s, 3), 4)
    count = s.values("count", out)
    np.testing.assert_array_equal(count["number"], [4, 9, 14])
    np.testing.assert_array_equal(count["clock"], [4, 4, 4])
    np.testing.assert_array_equal(out["log"][:, :4], [[0, 2, 4, 6], [2, 6, 10, 14], [4, 10, 16, 22]])
    np.testing.assert_array_equal(out["log"][:, 4:], 0)


def test_a_stage_is_done_for_those_it_is_for() -> None:
    s = counting(3)
    even = Wanted("count", lambda count: [count["number"] % 2 == 0])
    s.add(Stage("halve", lambda count: count | {"number": count["number"] / 2}, ("count",), "count", wanted=even))
    out = s.interpreted(given(s, 3), 1)
    np.testing.assert_array_equal(s.values("count", out)["number"], [1, 3, 5])
    out = s.interpreted(given(s, 3), 2)
    np.testing.assert_array_equal(s.values("count", out)["number"], [1, 5, 4])


def test_it_is_one_kernel_that_calls_each_stage_in_turn() -> None:
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

    monkeypatch.setattr(gpu, "launch", read)
    s = counting(3)
    with some_gpu():
        s.run(given(s, 3), 4)
    [text] = texts
    assert is_a_kernel(text)
    assert text.count("scf.for") == 1
