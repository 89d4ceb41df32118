"""Loops as they are written for XLA on GPUs do what they do elsewhere."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal.walkers import some_walkers
from tutelage.envs.bipedal import ground, kernel
from tutelage.envs.bipedal.lanes import looped, unfenced, while_active


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Traces a function as for a GPU; it still runs here."""

    def traced(act, *given):
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda: "gpu")
            return jax.jit(lambda *given: act(*given))(*given)  # noqa: PLW0108, a function not traced before

    return traced


def test_what_a_loop_keeps_comes_back_as_it_was(as_on_a_gpu) -> None:
    """Of every shape and type, and numbers that are no arrays."""
    arrays = {
        "x": jnp.arange(3.0),
        "y": jnp.ones(3),
        "on": jnp.arange(3) > 1,
        "at": jnp.arange(3),
        "m": jnp.ones((2, 3)),
    }
    kept = arrays | {"half": 0.5}
    out = as_on_a_gpu(lambda arrays: looped(lambda kept, n: (kept, n + 1), arrays | {"half": 0.5})(1), arrays)
    assert out[1] == 2
    for name, value in kept.items():
        np.testing.assert_array_equal(out[0][name], value)
        assert jnp.asarray(out[0][name]).dtype == jnp.asarray(value).dtype


@pytest.mark.parametrize("between", [1, 5, 20])
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
    stages = kernel.Stages("reduced")
    footing = stages.feel(given, ground.Ground(tiles, jnp.arange(len(tiles))))
    push = stages.solve(given, footing)
    return push.velocities, stages.move(given, footing, push).end, footing.contacts.on


def test_solvers_written_for_gpus_find_the_same(as_on_a_gpu) -> None:
    """Walkers set down on the ground, some of them into it."""
    moment, action, tiles = some_walkers(6)
    sunk = moment.bodies._replace(y=moment.bodies.y - 0.1 * jnp.arange(6.0)[:, None], vy=moment.bodies.vy - 1)
    given = (moment._replace(bodies=sunk), action, tiles)
    have, want = as_on_a_gpu(stand, *given), jax.jit(stand)(*given)
    assert np.asarray(want[2]).any(axis=(0, 1)).sum() > 2, "some stand"
    for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_solvers_written_for_kernels_find_the_same() -> None:
    """One walker at a time, as in a kernel for a rollout: what need not be done is left out, sweeps included."""
    moment, action, tiles = some_walkers(6)
    sunk = moment.bodies._replace(y=moment.bodies.y - 0.1 * jnp.arange(6.0)[:, None], vy=moment.bodies.vy - 1)
    given = (moment._replace(bodies=sunk), action, tiles)
    want = jax.jit(stand)(*given)
    with unfenced():
        alone = jax.jit(lambda *given: stand(*given))  # noqa: PLW0108, a function not traced before
        have = [alone(*jax.tree.map(lambda x, k=k: x[k : k + 1], given)) for k in range(6)]
    for a, b in zip(jax.tree.leaves(tree_concat(have)), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def tree_concat(parts):
    return jax.tree.map(lambda *x: jnp.concatenate(x, axis=-1), *parts)


@pytest.mark.slow
def test_a_step_written_for_gpus_does_the_same(monkeypatch) -> None:
    """Step by step, from the same states, to float rounding, which may decide whether a corner is struck."""
    moment, _, tiles = some_walkers(8)
    errors = []
    plain = jax.jit(partial(kernel.abreast, "reduced"))
    as_for_gpus = jax.jit(lambda *given: kernel.abreast("reduced", *given))
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
