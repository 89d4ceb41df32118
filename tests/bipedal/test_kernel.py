"""The fused kernel does what XLA does. There is no GPU here: it is lowered for one, and interpreted."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from bipedal.gpu import is_a_kernel, some_gpu
from bipedal.walkers import some_walkers
from tutelage.envs.bipedal import ground, jobs, kernel, physics
from tutelage.envs.bipedal.jobs import SPAN, Line, Stage
from tutelage.envs.bipedal.pages import Pages
from tutelage.gpu import kernels_can_be_lowered


def test_gpus_that_kernels_cannot_be_compiled_for_do_without(monkeypatch) -> None:
    """JAX refuses those whose names it does not know."""
    monkeypatch.setattr(kernel, "kernels_run_here", lambda: False)
    assert kernel.advance(0.5) is kernel._nested(kernel.abreast, 0.5, 0)
    monkeypatch.setattr(kernel, "kernels_run_here", lambda: True)
    assert kernel.advance(0.5) is kernel._nested(kernel.fused, 0.5, 0)


def test_whether_kernels_can_be_compiled_is_known_while_tracing(monkeypatch) -> None:
    """Which is when an env asks."""
    answers = []

    def ask(x):
        answers.append(kernels_can_be_lowered())
        return x

    def refused(*_, **__):
        raise NotImplementedError("an unknown GPU")

    with some_gpu():
        jax.eval_shape(ask, jax.ShapeDtypeStruct((), jnp.float32))
        monkeypatch.setattr(pl, "pallas_call", lambda *_, **__: refused)
        jax.eval_shape(ask, jax.ShapeDtypeStruct((1,), jnp.float32))
    assert answers == [True, False]


@pytest.mark.parametrize("tolerance", [0.0, physics.TOLERANCE])
def test_a_step_can_be_lowered_for_a_gpu(tolerance) -> None:
    """All of the physics is made of what kernels can hold."""
    step = jax.jit(partial(kernel.fused, tolerance))
    walkers = some_walkers(40)
    with some_gpu():
        text = step.trace(*walkers).lower(lowering_platforms=("cuda",)).as_text()
    rounds = physics.effort(tolerance).rounds
    kernels = 6 + 3 * rounds  # feel, solve, start, settle, finish, see; aim, touch, bounce

    assert text.count("custom_call") == kernels, "these kernels, and nothing beside them"


def test_what_is_on_pages_comes_off_them() -> None:
    """Whole numbers and flags too, whatever shapes there are."""
    values = {
        "flag": jnp.array([True, False, True]),
        "number": jnp.array([0.5, -1.0, jnp.inf]),
        "keys": jnp.arange(24).reshape(8, 3) - 1,
        "more": (jnp.ones((8, 3)), jnp.zeros(3)),
    }
    again = Pages.of(values).values()
    for a, b in zip(jax.tree.leaves(values), jax.tree.leaves(again), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_every_environment_is_read_and_written_in_its_place() -> None:
    """Also when they do not fill the last program."""
    sevens = {"x": jnp.arange(7.0), "eight": jnp.arange(56.0).reshape(8, 7), "on": jnp.arange(7) % 2 == 0}
    table = jax.random.normal(jax.random.key(0), (7, 5))

    def act(v, w, look):
        return v["x"] + look(jnp.full(v["x"].shape, 3)), jnp.where(v["on"], v["eight"], -w["x"]), ~v["on"]

    pages = [Pages.of(sevens), Pages.of({"x": 10 * jnp.arange(7.0)})]
    out = Stage(4, interpret=True).run(act, pages, (lambda table, lane, k: table[lane, k], table)).values()
    np.testing.assert_allclose(out[0], sevens["x"] + table[:, 3], rtol=1e-6)
    np.testing.assert_array_equal(out[1], np.where(sevens["on"], sevens["eight"], -10 * np.arange(7.0)))
    np.testing.assert_array_equal(out[2], ~sevens["on"])


@pytest.mark.parametrize("lanes", [1, 4, 32])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("far", [False, True])
def test_only_those_that_are_wanted_are_worked_on(lanes, share, far) -> None:
    """Each of them once, wherever they have moved up to; the others stay as they were."""
    n = 2 * SPAN + 44
    wanted = jax.random.uniform(jax.random.key(1), (n,)) < share
    kept, changed = jnp.arange(float(n)), {"x": 1000 + jnp.arange(float(n)), "eight": jnp.ones((8, n))}

    def act(a, b, look):
        return {"x": a + b["x"] + look(), "eight": b["eight"] + jnp.arange(8.0)[:, None]}

    look = (lambda table, lane: table[lane], 10_000 * jnp.arange(float(n)))
    pages = [Pages.of(kept), Pages.of(changed)]
    even = jnp.arange(n) % 2 == 0
    who = {"kinds": [wanted & even, wanted & ~even]} if far else {"wanted": wanted}
    out = Stage(lanes, interpret=True).run(act, pages, look, **who, anew=False).values()
    want = act(kept, changed, lambda: look[1])
    for name in want:
        np.testing.assert_array_equal(out[name], jnp.where(wanted, want[name], changed[name]), err_msg=name)


def test_kind_by_kind_those_that_are_wanted_move_up_to_the_front() -> None:
    none = jnp.zeros(3 * SPAN, bool)
    kinds = [none.at[jnp.array(at, int)].set(True) for at in ([5, SPAN + 7, 3 * SPAN - 1], [], [2, SPAN + 8])]
    line = Line.by_kind(kinds, 4)
    np.testing.assert_array_equal(line.order[:5], [5, SPAN + 7, 3 * SPAN - 1, 2, SPAN + 8])
    np.testing.assert_array_equal(line.wanted, [5])


def twice(values):
    return 2 * values["x"]


def thrice(values):
    return 3 * values["x"]


def test_two_kernels_side_by_side_each_write_their_own_pages() -> None:
    pages = [Pages.of({"x": jnp.arange(7.0)})]
    for n in (1, 4):
        stage = Stage(n, interpret=True)
        a, b = stage.job(twice, pages).beside(stage.job(thrice, pages))
        np.testing.assert_array_equal(a.values(), 2 * jnp.arange(7.0))
        np.testing.assert_array_equal(b.values(), 3 * jnp.arange(7.0))


def test_two_kernels_side_by_side_are_one_launch() -> None:
    """Of which the first programs do the one's work, and those after them the other's."""

    def run(x):
        pages, stage = [Pages.of({"x": x})], Stage(4)
        a, b = stage.job(twice, pages).beside(stage.job(thrice, pages))
        return a.values(), b.values()

    with some_gpu():
        text = jax.jit(run).trace(jnp.arange(8.0)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call") == 1
    assert "grid_x = 4 : i32" in text
    assert text.index("tt.call @twice") < text.index("tt.call @thrice")


def test_two_kernels_side_by_side_can_be_read_by_the_compiler(monkeypatch) -> None:
    """Each with arrays of its own, of which some are whole numbers."""
    texts = []

    def read(text, name, given, out, *rest):
        texts.append(text)
        return [jnp.zeros(o.shape, o.dtype) for o in out]

    monkeypatch.setattr(jobs, "launch", read)
    pages, stage = [Pages.of({"x": jnp.arange(8.0)})], Stage(4)
    with some_gpu():
        stage.job(twice, pages, wanted=jnp.arange(8) < 3).beside(stage.job(thrice, pages))
    [text] = texts
    assert is_a_kernel(text)
    assert "!tt.ptr<i32>" in text


def test_what_is_written_over_must_be_of_the_same_kind() -> None:
    """Or it would be read as something else."""
    pages = [Pages.of({"x": jnp.zeros(3)})]
    with pytest.raises(AssertionError, match="other than it was given"):
        Stage(1, interpret=True).run(lambda v: (v["x"], v["x"]), pages, anew=False)


def test_kernels_look_at_the_same_ground() -> None:
    """Cell by cell, in the terrain of each environment."""
    _, _, tiles = some_walkers(5)
    cell = jnp.arange(199).reshape(199, 1) * jnp.ones(5, int)
    want = ground.Ground(tiles, jnp.arange(5))(cell)
    have = kernel._look(tiles, jnp.arange(5), cell)
    for name, a, b in zip(want._fields, want, have, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert (np.asarray(want.box_again) & (np.asarray(want.box) >= 0)).any()


def push_and_look(world, action, look, tolerance):
    """In place of the physics: something that depends on all it is given."""
    cells = look(jnp.stack([(10 * body.x).astype(jnp.int32) for body in world.bodies[1:]]))
    fields = (cells.x1, cells.y2, cells.left, cells.top, cells.box.astype(jnp.float32), cells.box_again)
    seen = sum(jnp.sum(f, axis=0) for f in fields)
    bodies = tuple(b._replace(vx=b.vx + seen, spin=b.spin + action[k % 4]) for k, b in enumerate(world.bodies))
    joints = tuple(j._replace(motor=j.motor + action[k]) for k, j in enumerate(world.joints))
    memory = world.memory._replace(key=world.memory.key + jnp.arange(8).reshape(8, *(1,) * seen.ndim))
    return world._replace(bodies=bodies, joints=joints, memory=memory, feet=(seen > 9, ~world.feet[0]), fallen=seen < 9)


def test_seeds_and_slots_become_one_batch(monkeypatch) -> None:
    """However deep `vmap`s are nested, the kernel sees all environments at once."""
    seen = []

    def fused(tolerance, moment, action, tiles):
        seen.append(action.shape)
        return jax.vmap(partial(kernel.alone, tolerance))(moment, action, tiles)

    monkeypatch.setattr(physics, "step", push_and_look)
    monkeypatch.setattr(kernel, "_traced_once", kernel._traced_once.__wrapped__)  # what is traced now is not kept
    given = some_walkers(6)
    nested = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), given)
    have = jax.vmap(jax.vmap(kernel._nested(fused, 0.5, 0), in_axes=(0, 0, 0)))(*nested)
    want = jax.vmap(partial(kernel.alone, 0.5))(*given)
    assert seen[-1] == (6, 4), "what came before was traced only"
    for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 2])
def test_the_kernel_agrees_with_xla(lanes) -> None:
    """Step by step, from the same states (interpreting takes minutes to compile).

    To float rounding, but for the few steps whose iterations have not come to an end.
    """
    moment, _, tiles = some_walkers(3)
    plain = jax.jit(jax.vmap(partial(kernel.alone, physics.TOLERANCE)))
    several = kernel.Lanes(*[lanes] * len(kernel.Lanes._fields))
    fused = jax.jit(partial(kernel.fused, physics.TOLERANCE, lanes=several, interpret=True))
    errors = []
    for k in range(60):
        action = jax.random.uniform(jax.random.key(k), (3, 4), minval=-1, maxval=1)
        want, have = plain(moment, action, tiles), fused(moment, action, tiles)
        pairs = zip(jax.tree.leaves(have.moment.bodies), jax.tree.leaves(want.moment.bodies), strict=True)
        errors.append(np.max([np.abs(a - b).max(axis=1) for a, b in pairs], axis=0))
        np.testing.assert_allclose(have.rays[:, :10], want.rays[:, :10], atol=0.01)
        np.testing.assert_array_equal(have.fallen, want.fallen)
        moment = want.moment
    assert np.mean(np.array(errors) > 1e-4) < 0.03
    assert np.max(errors) < 0.02
