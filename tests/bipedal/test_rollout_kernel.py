"""A rollout as one kernel finds what a rollout step by step finds."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal.gpu import some_gpu
from tutelage.envs.bipedal import WalkerDomain
from tutelage.envs.bipedal import run as fast
from tutelage.envs.bipedal.run import rollout as one_kernel
from tutelage.gpu import kernel_call, pallas
from tutelage.runs.devices import EACH, spread
from tutelage.runs.presets import preset
from tutelage.student.controller import Crowd
from tutelage.student.rollout import rollout

STEPS = 7
QUEUE = jnp.array([[0, 1], [2, 3]])


def rollouts(domain: WalkerDomain, seeds: int):
    """What plays them, and what it is given: of so many seeds, with two slots and two levels each."""
    env, pool = domain.env(), jax.vmap(domain.design().sample)(jax.random.split(jax.random.key(3), 4))
    config = preset("bipedal", "dr").student
    build = lambda key: config.build(domain.encoder(key), env.actions, key=key)  # noqa: E731
    students = jax.vmap(build)(jax.random.split(jax.random.key(0), seeds))
    keys = jax.random.split(jax.random.key(1), seeds)
    return jax.vmap(lambda key, student: rollout(key, env, student, pool, QUEUE, STEPS)), (keys, students)


@pytest.mark.usefixtures("unchecked")
def test_a_rollout_of_all_seeds_of_a_device_is_one_kernel(monkeypatch) -> None:
    """Here of two of four seeds, each device's share, with two slots each."""
    monkeypatch.setattr(fast, "kernels_run_here", lambda: True)
    run, given = rollouts(WalkerDomain(), seeds=4)
    with some_gpu(2):
        play = jax.jit(spread(run, 2, (EACH, EACH)))
        text = play.trace(*given).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call @__gpu$xla.gpu.triton") == 1
    assert "grid_x = 4 : i32" in text


@pytest.mark.slow
def test_the_kernel_finds_what_the_steps_find(monkeypatch) -> None:
    """Through the ends of short episodes, on to other levels (interpreting takes minutes to compile).

    Impulses too: in the first steps of an episode several points touch, and two legs share the load.
    """
    run, given = rollouts(WalkerDomain(max_steps=3), seeds=2)
    want, stood = jax.jit(run)(*given)
    monkeypatch.setattr(fast, "kernels_run_here", lambda: True)
    monkeypatch.setattr(one_kernel, "play", partial(one_kernel.play, interpret=True))
    have, stands = jax.jit(lambda *x: run(*x))(*given)  # noqa: PLW0108, a function not traced before
    assert want.truncated.any()
    for a, b in zip(jax.tree.leaves((have, stands)), jax.tree.leaves((want, stood)), strict=True):
        np.testing.assert_allclose(a, b, atol=5e-3)


def crowded(domain: WalkerDomain):
    """What plays one rollout of four slots, each with a policy of its own, and what it is given."""
    env, pool = domain.env(), jax.vmap(domain.design().sample)(jax.random.split(jax.random.key(3), 4))
    config = preset("bipedal-poet", "es").student
    build = lambda key: config.build(domain.encoder(key), env.actions, key=key)  # noqa: E731
    crowd = Crowd.of(jax.vmap(build)(jax.random.split(jax.random.key(0), 4)))
    queue = jnp.arange(4, dtype=jnp.int32)[:, None]
    return (lambda key, crowd: rollout(key, env, crowd, pool, queue, STEPS)), (jax.random.key(1), crowd)


@pytest.mark.slow
def test_walkers_with_policies_of_their_own_are_one_kernel_too(monkeypatch) -> None:
    """Of which each reads its own weights, and no more of them than there are."""
    monkeypatch.setattr(fast, "kernels_run_here", lambda: True)
    run, given = crowded(WalkerDomain())
    with some_gpu():
        text = jax.jit(run).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call @__gpu$xla.gpu.triton") == 1
    assert "grid_x = 4 : i32" in text
    for shape in ("4x32x40", "4x40x40", "4x40x4"):
        assert f"tensor<{shape}xf32>" in text


@pytest.mark.parametrize("units", [40, 64])
def test_a_layer_of_any_width_is_that_of_its_walker(units) -> None:
    """Filled up with zeros to a power of two."""
    weight = jax.random.normal(jax.random.key(0), (3, 24, units))
    bias, x = jax.random.normal(jax.random.key(1), (3, units)), jax.random.normal(jax.random.key(2), (3, 32))
    x = x.at[:, 24:].set(0.0)

    def program(weight_ref, bias_ref, x_ref, out_ref):
        walker = pallas().program_id(0) + jnp.zeros(1, jnp.int32)
        at = jnp.arange(32)[:, None]
        seen = x_ref[jnp.broadcast_to(walker, at.shape), at]
        found = one_kernel._layer(weight_ref, bias_ref, walker, seen, units)
        at = jnp.arange(64)[:, None]
        out_ref[jnp.broadcast_to(walker, at.shape), at] = found

    out = [jax.ShapeDtypeStruct((3, 64), jnp.float32)]
    (found,) = kernel_call(program, "layer", 3, out, interpret=True)(weight, bias, x)
    want = jnp.einsum("wi,wij->wj", x[:, :24], weight) + bias
    np.testing.assert_allclose(found[:, :units], want, atol=1e-5)
    np.testing.assert_array_equal(found[:, units:], 0.0)


@pytest.mark.slow
def test_the_kernel_of_a_crowd_finds_what_the_steps_find(monkeypatch) -> None:
    """As above, each walker with a policy of its own."""
    run, given = crowded(WalkerDomain(max_steps=3))
    want, _ = jax.jit(run)(*given)
    monkeypatch.setattr(fast, "kernels_run_here", lambda: True)
    monkeypatch.setattr(one_kernel, "play", partial(one_kernel.play, interpret=True))
    have, _ = jax.jit(lambda *x: run(*x))(*given)  # noqa: PLW0108, a function not traced before
    for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, atol=5e-3)
