"""Students in engines: what they do and think is what JAX says, to rounding."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from page.played import Called, leaves
from tutelage.env import Discrete
from tutelage.page import catalogue, engines
from tutelage.runs.config import Config
from tutelage.runs.presets import PRESETS
from tutelage.student import distributions

NAMES = ("maze/accel", "lava/small", "bipedal/accel")


def check(config: Config) -> None:
    """Steps one after another, each with the memory that JAX's student has of those before."""
    env, design = config.env.env(), config.env.design()
    key = jax.random.key(1)
    student = catalogue.built(config, key)
    ours = Called(engines.for_student(config))
    weights = eqx.filter(student, eqx.is_array)
    layout = ours.engine.layouts["params"]
    assert engines.weights(student, layout) == layout.pack(weights)
    memory, start = student.memory(1), jnp.bool_(True)
    act = jax.jit(lambda memory, obs, start, noise: _act(student, memory, obs, start, noise))
    begin = jax.jit(lambda key: env.reset(key, design.sample(key)))
    step = jax.jit(env.step) if isinstance(env.actions, Discrete) else None
    state, obs = begin(key) if step else (None, jax.random.normal(key, (24,)))
    for k in jax.random.split(key, 20):
        noise = distributions.noise(k, env.actions, ())
        np.testing.assert_allclose(ours("noise", k)[0], noise, rtol=1e-5, atol=1e-6)
        found = ours("act", weights, memory, obs, start, noise)
        want = act(memory, obs, start, noise)
        for a, b in zip(found, leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        memory, action, _ = want
        start = jnp.bool_(False)
        if step:
            state, seen = step(k, state, action)
            obs = seen.obs
        else:
            obs = jax.random.normal(k, obs.shape)


def _act(student, memory, obs, start, noise):
    memory, policy, value = student.act(memory, jax.tree.map(lambda x: x[None], obs), start[None])
    if isinstance(policy, distributions.Categorical):
        thoughts = {"probabilities": jax.nn.softmax(policy.logits[0])}
    else:
        thoughts = {"mean": policy.mean[0], "std": jnp.exp(policy.log_std[0])}
    return memory, policy.sample(noise[None])[0], thoughts | {"value": value[0]}


@pytest.mark.parametrize("name", NAMES)
def test_students(name: str) -> None:
    check(PRESETS[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["maze/demo", "lava/accel", "maze/sfl"])
def test_large_students(name: str) -> None:
    check(PRESETS[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["gru", "s5", "transformer"])
def test_students_with_other_memories(cell: str, tmp_path, monkeypatch) -> None:
    """No preset has them: their engines are made here."""
    pytest.importorskip("ziglang")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    config = PRESETS["maze/demo"][1]
    check(replace(config, student=replace(config.student, cell=cell, memory=True)))
