"""Kernels of a step do what XLA does. There is no GPU here: they are lowered for one, and interpreted."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal.gpu import is_a_kernel, some_gpu
from bipedal.walkers import some_walkers
from tutelage import gpu
from tutelage.envs.bipedal import TOLERANCE, run
from tutelage.envs.bipedal.physics import ground, impact
from tutelage.envs.bipedal.physics.step import Seen
from tutelage.envs.bipedal.run import xla
from tutelage.envs.bipedal.run.kernels import read_cells, step_by_kernels
from tutelage.envs.bipedal.run.launch import SPAN, Gathered, Launch, Size
from tutelage.envs.bipedal.run.moment import as_one_batch
from tutelage.envs.bipedal.run.packing import Packed
from tutelage.envs.bipedal.run.stages import Stage, Wanted
from tutelage.envs.bipedal.run.xla import step_by_xla


def test_gpus_that_kernels_cannot_be_compiled_for_do_without(monkeypatch) -> None:
    """JAX refuses those whose names it does not know."""
    monkeypatch.setattr(run, "kernels_run_here", lambda: False)
    assert run.advance(0.5) is run.one_step(step_by_xla, 0.5)
    monkeypatch.setattr(run, "kernels_run_here", lambda: True)
    assert run.advance(0.5) is run.one_step(step_by_kernels, 0.5)


@pytest.mark.parametrize("tolerance", [TOLERANCE, pytest.param(0.0, marks=pytest.mark.slow)])
def test_a_step_can_be_lowered_for_a_gpu(tolerance) -> None:
    """All of the physics is made of what kernels can hold."""
    step = jax.jit(partial(step_by_kernels, tolerance))
    walkers = some_walkers(40)
    with some_gpu():
        text = step.trace(*walkers).lower(lowering_platforms=("cuda",)).as_text()
    kernels = 6 + 3 * impact.effort(tolerance).rounds  # feel, solve, move, settle twice, see; aim, touch, bounce
    assert text.count("custom_call") == kernels, "these kernels, and nothing beside them"


def test_what_is_packed_is_unpacked() -> None:
    """Whole numbers and flags too, whatever shapes there are."""
    values = {
        "flag": jnp.array([True, False, True]),
        "number": jnp.array([0.5, -1.0, jnp.inf]),
        "keys": jnp.arange(24).reshape(8, 3) - 1,
        "more": (jnp.ones((8, 3)), jnp.zeros(3)),
    }
    again = Packed.of(values).values()
    for a, b in zip(jax.tree.leaves(values), jax.tree.leaves(again), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def launched(act, there, walkers, *, reads=None, wanted=None, updates=None) -> Packed:
    """What a stage makes of all that is there, interpreted."""
    writes = updates or "made"
    stage = Stage("act", act, tuple(reads or there), writes, wanted=wanted, updates=updates is not None)
    return Launch(stage, {}, there, Size(walkers, interpret=True)).run()


def test_every_walker_is_read_and_written_in_its_place() -> None:
    """Also when they do not fill the last program."""
    sevens = {"x": jnp.arange(7.0), "eight": jnp.arange(56.0).reshape(8, 7), "on": jnp.arange(7) % 2 == 0}
    table = jax.random.normal(jax.random.key(0), (7, 5))

    def act(v, w, table, walker):
        x = v["x"] + table[walker, jnp.full(v["x"].shape, 3)]
        return x, jnp.where(v["on"], v["eight"], -w["x"]), ~v["on"]

    there = {"v": Packed.of(sevens), "w": Packed.of({"x": 10 * jnp.arange(7.0)}), "table": table}
    out = launched(act, there, 4, reads=("v", "w", "table", "walker")).values()
    np.testing.assert_allclose(out[0], sevens["x"] + table[:, 3], rtol=1e-6)
    np.testing.assert_array_equal(out[1], np.where(sevens["on"], sevens["eight"], -10 * np.arange(7.0)))
    np.testing.assert_array_equal(out[2], ~sevens["on"])


@pytest.mark.parametrize("walkers", [1, 4, 32])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("gathered", [False, True])
def test_only_those_that_are_wanted_are_worked_on(walkers, share, gathered) -> None:
    """Each of them once, wherever they have moved up to; the others stay as they were."""
    n = 2 * SPAN + 44
    who = jax.random.uniform(jax.random.key(1), (n,)) < share
    kept, changed = jnp.arange(float(n)), {"x": 1000 + jnp.arange(float(n)), "eight": jnp.ones((8, n))}

    def add(kept, changed, more):
        return {"x": kept + changed["x"] + more, "eight": changed["eight"] + jnp.arange(8.0)[:, None]}

    def act(kept, changed, table, walker):
        return add(kept["n"], changed, table[walker])

    table, even = 10_000 * jnp.arange(float(n)), jnp.arange(n) % 2 == 0
    there = {"kept": Packed.of({"n": kept, "who": who, "even": even}), "changed": Packed.of(changed), "table": table}
    if gathered:
        wanted = Wanted("kept", lambda kept: [kept["who"] & kept["even"], kept["who"] & ~kept["even"]], gathered=True)
    else:
        wanted = Wanted("kept", lambda kept: [kept["who"]])
    reads = ("kept", "changed", "table", "walker")
    out = launched(act, there, walkers, reads=reads, wanted=wanted, updates="changed").values()
    want = add(kept, changed, table)
    for name in want:
        np.testing.assert_array_equal(out[name], jnp.where(who, want[name], changed[name]), err_msg=name)


def test_kind_by_kind_those_that_are_wanted_move_up_to_the_front() -> None:
    none = jnp.zeros(3 * SPAN, bool)
    kinds = [none.at[jnp.array(at, int)].set(True) for at in ([5, SPAN + 7, 3 * SPAN - 1], [], [2, SPAN + 8])]
    gathered = Gathered.by_kind(kinds, 4)
    np.testing.assert_array_equal(gathered.order[:5], [5, SPAN + 7, 3 * SPAN - 1, 2, SPAN + 8])
    np.testing.assert_array_equal(gathered.wanted, [5])


def twice_and_thrice(x, size: Size, wanted: Wanted | None = None) -> tuple[Launch, Launch]:
    """Two kernels of one value."""
    there = {"x": Packed.of({"x": x})}
    twice = Stage("twice", lambda v: 2 * v["x"], ("x",), "two", wanted=wanted)
    thrice = Stage("thrice", lambda v: 3 * v["x"], ("x",), "three")
    return Launch(twice, {}, there, size), Launch(thrice, {}, there, size)


@pytest.mark.parametrize("walkers", [1, 4])
def test_two_kernels_side_by_side_each_write_their_own(walkers) -> None:
    one, other = twice_and_thrice(jnp.arange(7.0), Size(walkers, interpret=True))
    a, b = one.beside(other)
    np.testing.assert_array_equal(a.values(), 2 * jnp.arange(7.0))
    np.testing.assert_array_equal(b.values(), 3 * jnp.arange(7.0))


def test_two_kernels_side_by_side_are_one_launch() -> None:
    """Of which the first programs do the one's work, and those after them the other's."""

    def run_both(x):
        one, other = twice_and_thrice(x, Size(4))
        a, b = one.beside(other)
        return a.values(), b.values()

    with some_gpu():
        text = jax.jit(run_both).trace(jnp.arange(8.0)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call") == 1
    assert "grid_x = 4 : i32" in text
    assert text.index("tt.call @twice") < text.index("tt.call @thrice")


def test_two_kernels_side_by_side_can_be_read_by_the_compiler(monkeypatch) -> None:
    """Each with arrays of its own, of which some are whole numbers."""
    texts = []

    def read(text, name, given, out, *rest):
        texts.append(text)
        return [jnp.zeros(o.shape, o.dtype) for o in out]

    monkeypatch.setattr(gpu, "launch", read)
    with some_gpu():
        one, other = twice_and_thrice(jnp.arange(8.0), Size(4), Wanted("x", lambda v: [v["x"] < 3]))
        one.beside(other)
    [text] = texts
    assert is_a_kernel(text)
    assert "!tt.ptr<i32>" in text


def test_what_is_written_over_must_be_of_the_same_kind() -> None:
    """Or it would be read as something else."""
    with pytest.raises(AssertionError, match="other than there was"):
        launched(lambda v: (v["x"], v["x"]), {"v": Packed.of({"x": jnp.zeros(3)})}, 1, updates="v")


def test_kernels_look_at_the_same_ground() -> None:
    """Cell by cell, in the terrain of each environment."""
    _, _, tiles = some_walkers(5)
    cell = jnp.arange(199).reshape(199, 1) * jnp.ones(5, int)
    want = ground.Ground(tiles, jnp.arange(5))(cell)
    have = read_cells(tiles, jnp.arange(5), cell)
    for name, a, b in zip(want._fields, want, have, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert (np.asarray(want.box_again) & (np.asarray(want.box) >= 0)).any()


def push_and_look(world, action, look, table):
    """In place of a step: something that depends on all it is given."""
    cells = look(jnp.stack([(10 * body.x).astype(jnp.int32) for body in world.bodies[1:]]))
    fields = (cells.x1, cells.y2, cells.left, cells.top, cells.box.astype(jnp.float32), cells.box_again)
    seen = sum(jnp.sum(f, axis=0) for f in fields)
    bodies = tuple(b._replace(vx=b.vx + seen, spin=b.spin + action[k % 4]) for k, b in enumerate(world.bodies))
    joints = tuple(j._replace(motor=j.motor + action[k]) for k, j in enumerate(world.joints))
    memory = world.memory._replace(key=world.memory.key + jnp.arange(8).reshape(8, *(1,) * seen.ndim))
    world = world._replace(bodies=bodies, joints=joints, memory=memory, feet=(seen > 9, ~world.feet[0]))
    return world, Seen(seen < 9, jnp.broadcast_to(seen, (16, *seen.shape)))


def test_seeds_and_slots_become_one_batch(monkeypatch) -> None:
    """However deep `vmap`s are nested, a step sees all walkers at once."""
    seen = []

    def together(moment, action, tiles):
        seen.append(action.shape)
        return step_by_xla(0.5, moment, action, tiles)

    monkeypatch.setattr(xla, "step", push_and_look)
    given = some_walkers(6)
    nested = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), given)
    step = as_one_batch(together, alone=partial(step_by_xla, 0.5))
    have = jax.vmap(jax.vmap(step))(*nested)
    want = jax.vmap(step)(*given)
    assert seen == [(3, 4), (6, 4), (6, 4)], "what came before was traced only"
    for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("walkers", [1, 2])
def test_kernels_agree_with_xla(walkers) -> None:
    """Step by step, from the same states (interpreting takes minutes to compile).

    To float rounding, but for the few steps whose iterations have not come to an end.
    """
    moment, _, tiles = some_walkers(3)
    plain = jax.jit(partial(step_by_xla, TOLERANCE))
    fused = jax.jit(partial(step_by_kernels, TOLERANCE, walkers=walkers, interpret=True))
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
