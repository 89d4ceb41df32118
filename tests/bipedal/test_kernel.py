"""The fused kernel does what XLA does. There is no GPU here: it is lowered for one, and interpreted."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal.gpu import some_gpu
from bipedal.walkers import some_walkers
from tutelage.envs.bipedal import ground, kernel, pages, physics
from tutelage.envs.bipedal.pages import Pages, kernels_can_be_lowered, stage


def test_gpus_that_kernels_cannot_be_compiled_for_do_without(monkeypatch) -> None:
    """JAX refuses those whose names it does not know."""
    monkeypatch.setattr(kernel, "kernels_run_here", lambda: False)
    assert kernel.advance("reduced") is kernel._nested(kernel.abreast, "reduced", 0)
    monkeypatch.setattr(kernel, "kernels_run_here", lambda: True)
    assert kernel.advance("reduced") is kernel._nested(kernel.fused, "reduced", 0)


def test_whether_kernels_can_be_compiled_is_known_while_tracing(monkeypatch) -> None:
    """Which is when an env asks."""
    answers = []

    def ask(x):
        answers.append(kernels_can_be_lowered())
        return x

    def refused(*_):
        raise NotImplementedError("an unknown GPU")

    with some_gpu():
        jax.eval_shape(ask, jax.ShapeDtypeStruct((), jnp.float32))
        monkeypatch.setattr(pages, "written", refused)
        jax.eval_shape(ask, jax.ShapeDtypeStruct((1,), jnp.float32))
    assert answers == [True, False]


@pytest.mark.parametrize("solver", ["reduced", "exact"])
def test_a_step_can_be_lowered_for_a_gpu(solver) -> None:
    """All of the physics is made of what kernels can hold."""
    step = jax.jit(partial(kernel.fused, solver))
    walkers = some_walkers(40)
    with some_gpu():
        text = step.trace(*walkers).lower(lowering_platforms=("cuda",)).as_text()
    rounds = physics.effort(solver).rounds
    kernels = 4 + 3 * rounds + (solver == "reduced")  # feel, solve, move, see; aim, touch, bounce; begin
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
    out = stage(act, pages, (lambda table, lane, k: table[lane, k], table), lanes=4, interpret=True).values()
    np.testing.assert_allclose(out[0], sevens["x"] + table[:, 3], rtol=1e-6)
    np.testing.assert_array_equal(out[1], np.where(sevens["on"], sevens["eight"], -10 * np.arange(7.0)))
    np.testing.assert_array_equal(out[2], ~sevens["on"])


def test_kernels_look_at_the_same_ground() -> None:
    """Cell by cell, in the terrain of each environment."""
    _, _, tiles = some_walkers(5)
    cell = jnp.arange(199).reshape(199, 1) * jnp.ones(5, int)
    want = ground.Ground(tiles, jnp.arange(5))(cell)
    have = kernel._look(tiles, jnp.arange(5), cell)
    for name, a, b in zip(want._fields, want, have, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert (np.asarray(want.box_again) & (np.asarray(want.box) >= 0)).any()


def push_and_look(world, action, look, solver):
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

    def fused(solver, moment, action, tiles):
        seen.append(action.shape)
        return jax.vmap(partial(kernel.alone, solver))(moment, action, tiles)

    monkeypatch.setattr(physics, "step", push_and_look)
    monkeypatch.setattr(kernel, "_traced_once", kernel._traced_once.__wrapped__)  # what is traced now is not kept
    given = some_walkers(6)
    nested = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), given)
    have = jax.vmap(jax.vmap(kernel._nested(fused, "reduced", 0), in_axes=(0, 0, 0)))(*nested)
    want = jax.vmap(partial(kernel.alone, "reduced"))(*given)
    assert seen[-1] == (6, 4), "what came before was traced only"
    for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-6)


@pytest.mark.slow
def test_the_kernel_agrees_with_xla() -> None:
    """Step by step, from the same states, to float rounding (interpreting takes minutes to compile)."""
    moment, _, tiles = some_walkers(3)
    plain = jax.jit(jax.vmap(partial(kernel.alone, "reduced")))
    fused = jax.jit(partial(kernel.fused, "reduced", interpret=True))
    for k in range(60):
        action = jax.random.uniform(jax.random.key(k), (3, 4), minval=-1, maxval=1)
        want, have = plain(moment, action, tiles), fused(moment, action, tiles)
        for a, b in zip(jax.tree.leaves(have.moment.bodies), jax.tree.leaves(want.moment.bodies), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)
        np.testing.assert_allclose(have.rays[:, :10], want.rays[:, :10], atol=1e-5)
        np.testing.assert_array_equal(have.fallen, want.fallen)
        moment = want.moment
