"""REPAIRED: two students with a buffer each, and a teacher that learns from new levels."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import taught
import tutelage as tut

REPAIRED = tut.REPAIRED(taught.BUFFER, "maxmc", teacher=taught.TEACHER)


@pytest.fixture(scope="module", params=["new", "always"])
def lived(request):
    """A method, a state, the state after exploring, and after replaying then."""
    method = replace(REPAIRED, teacher_learns=request.param)
    config = taught.tiny(method)
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
    assert taught.same(mine.levels, its.levels), "the teacher's levels go to both"
    assert not np.allclose(mine.score, its.score), "each student judges for itself"
    assert not np.array_equal(replayed.buffer.staleness, replayed.own.buffer.staleness), "and draws for itself"


def test_students_learn_from_replay_alone():
    state = taught.after_updates(taught.tiny(REPAIRED), 6)
    assert int(state.updates[0]) == 6 < int(state.cycles[0]) == int(state.rollouts[0])
    assert float(state.log.means["explore/length"].weight[0]) > 0
    assert float(state.log.means["teacher/regret"].weight[0]) == int(state.cycles[0]) - 6


def test_seeds_share_nothing():
    taught.check_seeds(REPAIRED)


def test_a_run_resumes_exactly(tmp_path):
    taught.check_resume(replace(REPAIRED, teacher_learns="always"), tmp_path / "run")


def test_the_command_line_trains_it(tmp_path):
    taught.check_cli("repaired", "teacher", tmp_path / "run")


def test_the_teacher_learns_to_find_regret():
    """Replay only as often as the teacher explores, and students that learn slowly."""
    buffer = tut.BufferConfig(capacity=64, min_fill=0.3, replay_rate=0.3)
    method = tut.REPAIRED(buffer, "maxmc", teacher=taught.EAGER)
    config = taught.eager(method, ppo=tut.PPO(learning_rate=1e-4, discount=0.98))
    room = config.classroom()
    skilled, naive = taught.trained(config, 40)

    @jax.jit
    def regret(s, key):
        s, work = method.design(room, replace(s, key=key))

        def play(s):
            return method.play(room, s, work.levels, "explore")

        s, protagonist = play(s)
        _, antagonist = method.as_antagonist(s, play)
        return method.regret(protagonist.episodes, antagonist.episodes).mean()

    keys = jax.random.split(jax.random.key(1), 20)
    after, before = (np.mean([regret(s, k) for k in keys]) for s in (skilled, naive))
    assert after > before + 0.1, (after, before)
