"""What machines do otherwise than plainly comes to the same; so does a step on each of them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal.walkers import some_walkers
from tutelage.envs.bipedal import TOLERANCE
from tutelage.envs.bipedal.physics.ground import Ground
from tutelage.envs.bipedal.physics.machine import Machine, computed_on, machine
from tutelage.envs.bipedal.run import solving
from tutelage.envs.bipedal.run.fold import in_one_kernel
from tutelage.envs.bipedal.run.machines import OnCPU, OneWalker, OnGPU
from tutelage.envs.bipedal.run.moment import packed, unpacked
from tutelage.envs.bipedal.run.stages import PLAINLY, Values, Way, step, table
from tutelage.envs.bipedal.run.xla import ON_CPU, ON_GPU, step_by_xla


def on(named: Machine, act):
    """A function traced for this machine; it still runs here."""

    def traced(*given):
        with computed_on(named):
            return act(*given)

    return jax.jit(traced)


def halved(x):
    return {"half": x / 2}


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("walkers", [1, 7, 100])
@pytest.mark.parametrize("named", [Machine(), OnCPU(), OnGPU()], ids=lambda m: type(m).__name__)
def test_each_walker_gets_what_it_asked_for(named, walkers: int, share: float) -> None:
    """None, a few, many or all of them."""
    rng = np.random.default_rng(0)
    wanted, x = rng.random(walkers) < share, rng.random((3, walkers)).astype(np.float32)
    have = named.for_few(jnp.asarray(wanted), halved, jnp.asarray(x), {"half": -x}, share=16)["half"]
    np.testing.assert_allclose(have, np.where(wanted, x / 2, -x))


def test_few_are_worked_on_at_a_time() -> None:
    """The work is done on a sixteenth of the walkers."""
    act = lambda w, x: OnCPU().for_few(w, jnp.tanh, x, x, share=16)  # noqa: E731
    program = jax.make_jaxpr(act)(jnp.zeros(64, bool), jnp.zeros(64))
    assert "f32[4] = tanh" in str(program)
    assert "f32[64] = tanh" not in str(program)


def mixed(kept, state):
    """A body with numbers of all kinds, which goes on for as long as it is on."""
    by, half, up = kept
    x, n, on = state
    x = jnp.where(on, jnp.where(up, x + half * by, jnp.sin(x)), x)
    return x, n + jnp.where(on, 2, 0), on & (x < 2)


def test_a_loop_in_one_kernel_does_what_its_rounds_do() -> None:
    """With numbers, whole numbers and truths."""
    keys = jax.random.split(jax.random.key(0), 2)
    kept = (jax.random.normal(keys[0], (4, 7)), 0.5, jax.random.bernoulli(keys[1], 0.5, (7,)))
    state = (jax.random.normal(jax.random.key(1), (4, 7)), jnp.arange(7), jnp.ones((4, 7), bool))
    have = jax.jit(lambda a, c, state: in_one_kernel(mixed, (a, 0.5, c), state, 12))(kept[0], kept[2], state)
    want = (state[0], jnp.broadcast_to(state[1], (4, 7)), state[2])
    for _ in range(12):
        want = mixed(kept, want)
    assert not want[2].all(), "some have ended"
    for a, b in zip(have, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_as_many_truths_as_there_are_come_back() -> None:
    """Also those that do not fit into one word."""
    state = tuple(jnp.arange(3) == k % 3 for k in range(40))
    have = in_one_kernel(lambda kept, state: (*state[1:], state[0]), jnp.zeros(3), state, 5)
    np.testing.assert_array_equal(have, (*state[5:], *state[:5]))


@pytest.mark.parametrize("between", [1, 5])
@pytest.mark.parametrize("first", [0, 5])
def test_looking_rarely_changes_nothing(between, first) -> None:
    """Each walker counts down from its number; the last one would take longer than there is time."""

    def down(k, state):
        left, seen = state
        return jnp.maximum(left - 1, 0), jnp.where(left > 0, k, seen)

    def count(start):
        state = (start, -jnp.ones_like(start))
        return machine().while_active(lambda s: s[0] > 0, down, state, first=first, last=20, between=between)

    start = jnp.array([0, 3, 7, 99])
    left, seen = on(OnGPU(), count)(start)
    np.testing.assert_array_equal(left, [0, 0, 0, 79 + first])
    np.testing.assert_array_equal(seen, [-1, first + 2, first + 6, 19])
    np.testing.assert_array_equal(count(start), (left, seen))


@pytest.fixture(scope="module")
def standing():
    """Walkers set down on the ground, some of them into it."""
    moment, action, tiles = some_walkers(6)
    sunk = moment.bodies._replace(y=moment.bodies.y - 0.1 * jnp.arange(6.0)[:, None], vy=moment.bodies.vy - 1)
    return moment._replace(bodies=sunk), action, tiles


def stand(way: Way, moment, action, tiles):
    """A step as far as the solvers."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    efforts = (action[0], action[1], action[2], action[3])
    stages, look = table(TOLERANCE, way), Ground(tiles, jnp.arange(len(tiles)))
    values = Values(stages.anew, world=unpacked(moment), efforts=efforts, look=look)
    for stage in stages.stages:
        if stage.name != "see":
            values.carry_out(stage)
    return values["push"].velocities, values["flight"].end, values["footing"].contacts.on


@pytest.fixture(scope="module")
def stood(standing):
    """What the plain machine makes of them, everybody's iterations ended by the rule."""
    return jax.jit(partial(stand, PLAINLY))(*standing)


@pytest.mark.slow
@pytest.mark.parametrize(("named", "way"), [(OnCPU(), ON_CPU), (OnGPU(), ON_GPU)], ids=["CPU", "GPU"])
def test_solvers_find_the_same_by_xla(standing, stood, named, way) -> None:
    have = on(named, partial(stand, way))(*standing)
    assert np.asarray(stood[2]).any(axis=(0, 1)).sum() > 2, "some stand"
    for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(stood), strict=True):
        np.testing.assert_allclose(a, b, atol=3e-3)


def test_solvers_find_the_same_in_kernels(standing, stood) -> None:
    """One walker at a time, as in a kernel for a rollout: what need not be done is left out."""
    alone = on(OneWalker(), partial(stand, Way(solving.alone)))
    have = [alone(*jax.tree.map(lambda x, k=k: x[k : k + 1], standing)) for k in range(6)]
    for a, b in zip(jax.tree.leaves(tree_concat(have)), jax.tree.leaves(stood), strict=True):
        np.testing.assert_allclose(a, b, atol=3e-3)


def tree_concat(parts):
    return jax.tree.map(lambda *x: jnp.concatenate(x, axis=-1), *parts)


def plain_step(moment, action, tiles):
    """A step as it is traced where no machine is named."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    efforts = (action[0], action[1], action[2], action[3])
    world, _ = step(unpacked(moment), efforts, Ground(tiles, jnp.arange(len(tiles))), table(TOLERANCE))
    return world


def test_nothing_is_fenced_where_no_machine_is_named(standing) -> None:
    """So that the physics can be translated into another language as it is."""
    traced = str(jax.make_jaxpr(plain_step)(*standing))
    assert "optimization_barrier" not in traced
    assert "custom" not in traced
    fenced = str(jax.make_jaxpr(partial(step_by_xla, TOLERANCE))(*standing))
    assert fenced.count(" div ") > 2 * traced.count(" div ")


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("where", "few"), [("gpu", 2), ("nowhere", 10)])
def test_a_step_on_other_machines_does_the_same(monkeypatch, where, few) -> None:
    """Step by step, from the same states, to float rounding, which may decide whether a corner is struck.

    XLA, for which the plain machine is not meant, rounds a value differently from one use to the next.
    """
    moment, _, tiles = some_walkers(8)
    errors = []
    on_cpu = jax.jit(partial(step_by_xla, TOLERANCE))
    other = jax.jit(lambda *given: step_by_xla(TOLERANCE, *given)) if where == "gpu" else jax.jit(plain_step)
    for k in range(80):
        action = jax.random.uniform(jax.random.key(k), (8, 4), minval=-1, maxval=1)
        want = on_cpu(moment, action, tiles)
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda: "gpu")
            have = other(moment, action, tiles)
        bodies = have.moment.bodies if where == "gpu" else packed_last(have).bodies
        pairs = zip(jax.tree.leaves(bodies), jax.tree.leaves(want.moment.bodies), strict=True)
        errors.append(np.max([np.abs(a - b).max(axis=1) for a, b in pairs], axis=0))
        assert where == "nowhere" or np.array_equal(have.fallen, want.fallen)
        moment = want.moment
    assert np.sum(np.stack(errors) > 5e-3) <= few, "of 640 steps"


def packed_last(world):
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), packed(world))
