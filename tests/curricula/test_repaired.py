"""REPAIRED: two students with a buffer each, and a teacher that learns from new levels."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import taught
import tutelage as tut

# The teacher explores more often than the students replay; and there is room for all of the first levels.
BUFFER = tut.BufferConfig(capacity=64, min_fill=0.3, replay_rate=0.3)
REPAIRED = tut.REPAIRED(BUFFER, "maxmc", teacher=taught.SEEKER)


@pytest.fixture(scope="module", params=["new", "always"])
def lived(request):
    """A method, a state, the state after exploring, and after replaying then."""
    method = replace(REPAIRED, teacher_learns=request.param)
    config = taught.square(method)
    room, before = config.classroom(), taught.one_seed(config)
    explored = jax.jit(lambda s: method.explore(room, s))(before)
    return method, before, explored, jax.jit(lambda s: method.replay(room, s))(explored)


def test_exploring_teaches_only_the_teacher(lived):
    _, before, explored, _ = lived
    assert taught.same(before.learner, explored.learner)
    assert taught.same(before.own.antagonist, explored.own.antagonist)
    assert not taught.same(before.own.teacher, explored.own.teacher)
    assert int(explored.updates) == 0


def test_replaying_teaches_both_students(lived):
    _, _, explored, replayed = lived
    assert not taught.same(explored.learner, replayed.learner)
    assert not taught.same(explored.own.antagonist, replayed.own.antagonist)
    assert int(replayed.updates) == 1


def test_replaying_teaches_the_teacher_only_as_in_the_reference(lived):
    method, _, explored, replayed = lived
    unchanged = taught.same(explored.own.teacher, replayed.own.teacher)
    assert unchanged == (method.teacher_learns == "new")
    assert (explored.own.last is None) == (method.teacher_learns == "new")


def test_each_student_keeps_its_own_buffer(lived):
    _, _, explored, replayed = lived
    mine, its = explored.buffer, explored.own.buffer
    assert int(mine.filled) == int(its.filled) > 0
    assert taught.same(mine.level, its.level), "the teacher's levels go to both"
    assert not np.allclose(mine.score, its.score), "each student judges for itself"
    assert not np.array_equal(replayed.buffer.staleness, replayed.own.buffer.staleness), "and draws for itself"


def test_students_learn_from_replay_alone():
    state = taught.after_updates(taught.square(REPAIRED), 6)
    assert int(state.updates[0]) == 6 < int(state.cycles[0]) == int(state.rollouts[0])
    assert float(state.log.means["explore/length"].weight[0]) > 0
    assert float(state.log.means["teacher/regret"].weight[0]) == int(state.cycles[0]) - 6


def test_the_teacher_learns_to_find_regret():
    after, before = taught.regret_found(taught.square(REPAIRED), 30)
    assert after > before + 0.1, (after, before)
