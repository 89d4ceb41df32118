import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from toys import tiny_maze
from tutelage.runs.run import initial_state
from tutelage.runs.trainer import advance


def after_updates(config, updates):
    room = config.classroom()
    return jax.jit(lambda s: advance(room, config.method, s, jnp.int32(updates)))(initial_state(config))


def test_seed_3_alone_equals_seed_3_of_five():
    """Over a few updates: rounding differs with the batch, and learning amplifies what differs."""
    five = after_updates(tiny_maze(seeds=5, seed=0), 4)
    alone = after_updates(tiny_maze(seeds=1, seed=3), 4)
    of_five, alone = (jax.tree.map(lambda x, i=i: x[i], s) for s, i in ((five, 3), (alone, 0)))
    for name in ("cycles", "rollouts", "updates"):
        assert int(getattr(of_five, name)) == int(getattr(alone, name))
    for a, b in zip(*map(jax.tree.leaves, (of_five.learner.student, alone.learner.student)), strict=True):
        assert np.allclose(a, b, atol=1e-5)
    assert np.array_equal(of_five.buffer.id, alone.buffer.id)
    assert all(np.array_equal(a, b) for a, b in zip(of_five.buffer.level, alone.buffer.level, strict=True))
    assert np.allclose(of_five.buffer.score, alone.buffer.score, atol=1e-5)


def test_seeds_differ():
    states = initial_state(tiny_maze(seeds=2))
    weights = states.learner.student.core.weight_h
    assert not jnp.allclose(weights[0], weights[1])


BEGIN = """
import jax
from dataclasses import replace
from tutelage.runs.presets import preset
from tutelage.runs.run import initial_state
config = preset("maze", "dr", seeds=2)
config = replace(config, method=replace(config.method, buffer=replace(config.method.buffer, capacity=64)))
jax.block_until_ready(jax.jit(lambda: initial_state(config))())
"""


def test_several_seeds_of_full_size_begin_within_one_program():
    """In a process of its own: on two cores this once waited for ever."""
    subprocess.run([sys.executable, "-c", BEGIN], check=True, timeout=300)
