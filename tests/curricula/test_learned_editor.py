"""ACCEL with an editor that learns: its children, its reward, its lineage."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taught
import tutelage as tut
from toys import tiny_maze
from tutelage.curricula import buffer as buffers
from tutelage.curricula.drafting import editing
from tutelage.curricula.learned_editor import positive_value_loss
from tutelage.envs.lava import LavaDomain
from tutelage.envs.maze import MazeDomain

EDITOR = tut.LearnedEditor(taught.BUFFER, edits=2, editor=taught.TEACHER)


def test_the_editor_is_paid_the_clipped_mean_positive_value_loss():
    advantage = np.array([[0.5, -1.0, 9.0], [-0.5, -2.0, 3.0]], np.float32)
    expected = np.clip(np.maximum(advantage, 0).mean(axis=0), -1, 1)
    assert np.allclose(positive_value_loss(jnp.asarray(advantage)), expected)
    assert expected.tolist() == [0.25, 0.0, 1.0]


@pytest.fixture(scope="module")
def lived():
    """A state, the state after exploring, and after editing levels of the buffer then."""
    config = taught.tiny(EDITOR)
    room, before = config.classroom(), taught.one_seed(config)
    explored = jax.jit(lambda s: EDITOR.explore(room, s))(before)
    parents = jnp.arange(config.slots) % explored.buffer.filled
    return explored, parents, jax.jit(lambda s, p: EDITOR.edit(room, s, p))(explored, parents)


def test_editing_teaches_the_editor_and_not_the_student(lived):
    explored, _, edited = lived
    assert taught.same(explored.learner, edited.learner)
    assert not taught.same(explored.own.teacher, edited.own.teacher)
    assert int(edited.updates) == 0
    assert int(edited.rollouts) == int(explored.rollouts) + 1


def test_children_know_their_parents(lived):
    explored, _, edited = lived
    b = edited.buffer
    children = np.flatnonzero(np.asarray(b.generation)[: int(b.filled)] == 1)
    assert children.size > 0
    assert set(np.asarray(b.parent)[children]) <= set(np.asarray(explored.buffer.id).tolist())


@pytest.mark.slow
def test_lava_grids_are_edited_too():
    env = LavaDomain(max_steps=20, generator="empty", placements=0)
    buffer = tut.BufferConfig(capacity=16, min_fill=0.3, replay_rate=0.9)
    config = taught.tiny(replace(EDITOR, buffer=buffer), env=env)
    state = taught.after_updates(config, 4)
    assert int(state.buffer.generation.max()) >= 1
    assert bool(state.buffer.level.lava.any()), "lava comes from the editor alone"


def test_the_editor_learns_to_make_children_of_high_score():
    method = tut.LearnedEditor(
        tut.BufferConfig(capacity=128, min_fill=0.3, replay_rate=0.8), edits=3, editor=taught.EAGER
    )
    env = MazeDomain(size=5, max_steps=24, generator="variable", blocks=10)
    config = tiny_maze(
        method,
        env=env,
        student=tut.StudentConfig(memory=False, hidden=32, head=16),
        ppo=tut.PPO(learning_rate=3e-4, discount=0.98),
        slots=32,
        steps=48,
    )
    room = config.classroom()
    skilled, naive = taught.trained(config, 50)

    @jax.jit
    def score(s, key):
        key_draw, key_make = jax.random.split(key)
        parents, _ = buffers.sample(key_draw, s.buffer, method.buffer, config.slots)
        levels = jax.tree.map(lambda x: x[parents], s.buffer.level)
        work = method.editor.make(key_make, s.own.teacher, editing(room.design, 3), config.slots, levels)
        return positive_value_loss(method.play(room, s, work.levels, "edit")[1].advantage).mean()

    keys = jax.random.split(jax.random.key(1), 20)
    after, before = (np.mean([score(s, k) for k in keys]) for s in (skilled, naive))
    assert after > 1.4 * before, (after, before)
