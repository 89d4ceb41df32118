"""Minimax: the teacher gains what the student's best episode loses."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taught
import tutelage as tut
from tutelage.curricula.teacher import max_return, mean_return
from tutelage.student.rollout import Episodes

MINIMAX = tut.Minimax(taught.BUFFER, teacher=taught.TEACHER)
FALL = 0.3


def test_returns_of_a_slot_are_those_of_episodes_that_ended():
    ended = jnp.array([[True, False, False], [False, True, False], [True, True, False]])
    returns = jnp.array([[0.2, 9.0, 9.0], [9.0, -1.0, 9.0], [0.6, -3.0, 9.0]])
    episodes = Episodes(ended, returns, jnp.ones((3, 3)))
    assert np.allclose(max_return(episodes), [0.6, -1.0, 0.0])
    assert np.allclose(mean_return(episodes), [0.4, -2.0, 0.0])


@pytest.fixture(scope="module")
def cycled():
    config = taught.tiny(MINIMAX)
    room, before = config.classroom(), taught.one_seed(config)
    return before, jax.jit(lambda s: MINIMAX.cycle(room, s))(before)


def test_teacher_and_student_learn_in_a_cycle(cycled):
    before, after = cycled
    assert not taught.same(before.learner, after.learner)
    assert not taught.same(before.own.teacher, after.own.teacher)
    assert (int(after.updates), int(after.cycles), int(after.rollouts)) == (1, 1, 1)
    assert int(after.buffer.filled) > 0


def test_seeds_share_nothing():
    taught.check_seeds(MINIMAX)


def test_a_run_resumes_exactly(tmp_path):
    rows = taught.check_resume(MINIMAX, tmp_path / "run").metrics()
    assert all(-1 <= row["teacher/return"] <= 0 for row in rows)


def test_the_command_line_trains_it(tmp_path):
    taught.check_cli("minimax", "teacher", tmp_path / "run")


def test_the_teacher_learns_to_make_the_student_fail():
    method = tut.Minimax(taught.BUFFER, teacher=taught.EAGER)
    config = taught.eager(method)
    room = config.classroom()
    skilled, naive = taught.trained(config, 110)

    @jax.jit
    def teacher_return(s, key):
        s, work = method.design(room, replace(s, key=key))
        return -max_return(method.play(room, s, work.levels, "explore")[1].episodes).mean()

    keys = jax.random.split(jax.random.key(1), 20)
    after, before = (np.mean([teacher_return(s, k) for k in keys]) for s in (skilled, naive))
    assert after > before + FALL, (after, before)
