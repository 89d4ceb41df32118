"""Walkers in engines: everything but the step is JAX's to the last bit; the step is too where XLA rounds as it is told.

By default XLA contracts and rearranges operations as suits the machine, so that JAX differs from itself there. Told not
to, it comes to the very numbers of the engine (the slow test); so here steps are compared to within rounding.
"""

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d, lockstep
from page.played import Called, assert_close, assert_equal
from tutelage.envs.bipedal import TOLERANCE, PoetDomain, WalkerDomain
from tutelage.page import engines

DOMAINS = {8: WalkerDomain(), 5: PoetDomain(generator="easy")}
KEYS = jax.random.split(jax.random.key(3), 4)
STRICT = "--xla_cpu_max_isa=AVX --xla_disable_hlo_passes=algsimp --xla_backend_optimization_level=0"


@lru_cache
def called(parameters: int) -> Called:
    return Called(engines.for_domain(DOMAINS[parameters]))


@pytest.mark.parametrize("parameters", DOMAINS)
def test_levels_are_drawn_edited_and_measured_alike(parameters: int) -> None:
    """From the same keys."""
    design, ours = DOMAINS[parameters].design(), called(parameters)
    sample, edit = jax.jit(design.sample), jax.jit(lambda key, level: design.edit(key, level, 3))
    for key in KEYS:
        level = sample(key)
        assert_equal(ours("sample", key), level)
        assert_equal(ours("edit_3", key, level), edit(key, level))
        assert_equal(ours("describe", level), design.describe(level))


def test_episodes_begin_alike() -> None:
    """Terrain, first state, what is seen and what pictures show."""
    env, design, ours = DOMAINS[8].env(), DOMAINS[8].design(), called(8)
    functions = {role: (of, jax.jit(function)) for role, (of, function) in env.exports().items()}
    reset = jax.jit(env.reset)
    for key in KEYS:
        level = design.sample(key)
        begun = reset(key, level)
        assert_close(ours("reset", key, level), begun, within=1e-6)
        for role, (of, function) in functions.items():
            given = level if of == "level" else begun[0]
            assert_close(ours(role, given), function(given), within=1e-5)


def test_a_step_to_within_rounding() -> None:
    """From states of episodes that JAX plays; solvers that end early or late make more of rounding in a few."""
    start, step = lockstep.compiled(TOLERANCE)
    ours, errors = called(8), []
    state, _ = start(jax.tree.map(lambda v: jnp.stack([v] * 8), box2d.flat()), jnp.linspace(-5.0, 5.0, 8))
    for key in jax.random.split(KEYS[0], 15):
        action = jax.random.uniform(key, (8, 4), minval=-1.0)
        after, seen = step(state, action)
        for k in range(8):
            one = jax.tree.map(lambda x, k=k: x[k], (state, action, seen.obs))
            found = ours("step", KEYS[0], *one[:2], jnp.int32(2000))
            errors.append(np.abs(found[-4] - np.asarray(one[2])).max())
        state = after
    assert np.median(errors) < 1e-5
    assert np.max(errors) < 0.02


@pytest.mark.slow
def test_every_bit_of_a_step_where_xla_rounds_as_it_is_told() -> None:
    """In another process, as flags are read but once."""
    environment = os.environ | {"XLA_FLAGS": STRICT, "JAX_COMPILATION_CACHE_DIR": ""}
    program = Path(__file__).with_name("strictly.py")
    run = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("0 of"), run.stdout


@pytest.mark.slow
def test_a_trained_student_comes_as_far_as_in_jax() -> None:
    """Its mean return on 128 rough terrains, each walked once in both from the same keys, by XLA as it likes."""
    run = Path(__file__).resolve().parents[2] / "results" / "bipedal-accel"
    if not run.is_dir():
        pytest.skip("no walkers")
    program = Path(__file__).with_name("returned.py")
    found = subprocess.run([sys.executable, program, run, "128"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert abs(float(found.stdout.split()[-1])) < 2, found.stdout
