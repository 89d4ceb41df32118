"""Loops as they are written for XLA on GPUs do what they do elsewhere."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal.walkers import some_walkers
from tutelage.envs.bipedal import ground, kernel, physics
from tutelage.envs.bipedal.lanes import unfenced, while_active
from tutelage.envs.bipedal.window import in_one_kernel


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Traces a function as for a GPU; it still runs here."""

    def traced(act, *given):
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda: "gpu")
            return jax.jit(lambda *given: act(*given))(*given)  # noqa: PLW0108, a function not traced before

    return traced


def mixed(k, kept, state):
    """A body with numbers of all kinds, which goes on for as long as it is on."""
    by, half, up = kept
    x, n, on = state
    x = jnp.where(on, jnp.where(up, x + half * by, jnp.sin(x)), x)
    return x, n + jnp.where(on, k, 0), on & (x < 2)


@pytest.mark.parametrize("sets", [1, 3])
def test_a_loop_in_one_kernel_does_what_its_rounds_do(sets) -> None:
    """With numbers, whole numbers and truths; what it reads changes in turn."""
    keys = jax.random.split(jax.random.key(0), 2 * sets)
    kept = [
        (jax.random.normal(keys[2 * i], (4, 7)), 0.5, jax.random.bernoulli(keys[2 * i + 1], 0.5, (7,)))
        for i in range(sets)
    ]
    state = (jax.random.normal(jax.random.key(1), (4, 7)), jnp.arange(7), jnp.ones((4, 7), bool))
    have = jax.jit(lambda kept, state: in_one_kernel(mixed, [(a, 0.5, c) for a, _, c in kept], state, 12))(kept, state)
    want = (state[0], jnp.broadcast_to(state[1], (4, 7)), state[2])
    for k in range(12):
        want = mixed(k, kept[k % sets], want)
    assert not want[2].all(), "some have ended"
    for a, b in zip(have, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_as_many_truths_as_there_are_come_back() -> None:
    """Also those that do not fit into one word."""
    state = tuple(jnp.arange(3) == k % 3 for k in range(40))
    have = in_one_kernel(lambda k, kept, state: (*state[1:], state[0]), [jnp.zeros(3)], state, 5)
    np.testing.assert_array_equal(have, (*state[5:], *state[:5]))


@pytest.mark.parametrize("between", [1, 5])
@pytest.mark.parametrize("first", [0, 5])
def test_looking_rarely_changes_nothing(as_on_a_gpu, between, first) -> None:
    """Each lane counts down from its number; the last one would take longer than there is time."""

    def down(k, state):
        left, seen = state
        return jnp.maximum(left - 1, 0), jnp.where(left > 0, k, seen)

    def count(start):
        run = partial(while_active, lambda s: s[0] > 0, down, (start, -jnp.ones_like(start)))
        return run(first=first, last=20, between=between)

    start = jnp.array([0, 3, 7, 99])
    left, seen = as_on_a_gpu(count, start)
    np.testing.assert_array_equal(left, [0, 0, 0, 79 + first])
    np.testing.assert_array_equal(seen, [-1, first + 2, first + 6, 19])
    np.testing.assert_array_equal(count(start), (left, seen))


def stand(moment, action, tiles):
    """The solvers' part of a step."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    given = (kernel.unpacked(moment), (action[0], action[1], action[2], action[3]))
    stages = kernel.Stages(physics.TOLERANCE)
    footing = stages.feel(given, ground.Ground(tiles, jnp.arange(len(tiles))))
    push = stages.solve(given, footing)
    return push.velocities, stages.move(given, footing, push).end, footing.contacts.on


def test_a_solver_written_for_gpus_finds_the_same(as_on_a_gpu) -> None:
    """Walkers set down on the ground, some of them into it."""
    moment, action, tiles = some_walkers(6)
    sunk = moment.bodies._replace(y=moment.bodies.y - 0.1 * jnp.arange(6.0)[:, None], vy=moment.bodies.vy - 1)
    given = (moment._replace(bodies=sunk), action, tiles)
    have, want = as_on_a_gpu(stand, *given), jax.jit(stand)(*given)
    assert np.asarray(want[2]).any(axis=(0, 1)).sum() > 2, "some stand"
    for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, atol=3e-3)


def test_a_solver_written_for_kernels_finds_the_same() -> None:
    """One walker at a time, as in a kernel for a rollout: what need not be done is left out."""
    moment, action, tiles = some_walkers(6)
    sunk = moment.bodies._replace(y=moment.bodies.y - 0.1 * jnp.arange(6.0)[:, None], vy=moment.bodies.vy - 1)
    given = (moment._replace(bodies=sunk), action, tiles)
    want = jax.jit(stand)(*given)
    with unfenced():
        alone = jax.jit(lambda *given: stand(*given))  # noqa: PLW0108, a function not traced before
        have = [alone(*jax.tree.map(lambda x, k=k: x[k : k + 1], given)) for k in range(6)]
    for a, b in zip(jax.tree.leaves(tree_concat(have)), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, atol=3e-3)


def tree_concat(parts):
    return jax.tree.map(lambda *x: jnp.concatenate(x, axis=-1), *parts)


def test_a_step_written_for_gpus_does_the_same(monkeypatch) -> None:
    """Step by step, from the same states, to float rounding, which may decide whether a corner is struck."""
    moment, _, tiles = some_walkers(8)
    errors = []
    plain = jax.jit(partial(kernel.abreast, physics.TOLERANCE))
    as_for_gpus = jax.jit(lambda *given: kernel.abreast(physics.TOLERANCE, *given))
    for k in range(80):
        action = jax.random.uniform(jax.random.key(k), (8, 4), minval=-1, maxval=1)
        want = plain(moment, action, tiles)
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda: "gpu")
            have = as_for_gpus(moment, action, tiles)
        pairs = zip(jax.tree.leaves(have.moment.bodies), jax.tree.leaves(want.moment.bodies), strict=True)
        errors.append(np.max([np.abs(a - b).max(axis=1) for a, b in pairs], axis=0))
        np.testing.assert_array_equal(have.fallen, want.fallen)
        np.testing.assert_array_equal(have.moment.feet, want.moment.feet)
        moment = want.moment
    assert np.sum(np.stack(errors) > 2e-3) <= 2, "of 640 steps"
