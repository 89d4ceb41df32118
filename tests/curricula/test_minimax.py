"""Minimax: the teacher gains what the student's best episode loses."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taught
import tutelage as tut
from tutelage.curricula.teacher import max_return
from tutelage.student.rollout import Episodes, mean_return

MINIMAX = tut.Minimax(taught.BUFFER, teacher=taught.SEEKER)
FALL = 0.15


def test_returns_of_a_slot_are_those_of_episodes_that_ended():
    ended = jnp.array([[True, False, False], [False, True, False], [True, True, False]])
    returns = jnp.array([[0.2, 9.0, 9.0], [9.0, -1.0, 9.0], [0.6, -3.0, 9.0]])
    episodes = Episodes(ended, returns, jnp.ones((3, 3)))
    assert np.allclose(max_return(episodes), [0.6, -1.0, 0.0])
    assert np.allclose(mean_return(episodes), [0.4, -2.0, 0.0])


@pytest.fixture(scope="module")
def cycled():
    config = taught.square(MINIMAX, ppo=tut.PPO(learning_rate=3e-3, epochs=1))
    after = jax.tree.map(lambda x: x[0], taught.after_updates(config, 1))
    return taught.one_seed(config), after


def test_teacher_and_student_learn_in_a_cycle(cycled):
    before, after = cycled
    assert not taught.same(before.learner, after.learner)
    assert not taught.same(before.own.teacher, after.own.teacher)
    assert (int(after.updates), int(after.cycles), int(after.rollouts)) == (1, 1, 1)
    assert int(after.buffer.filled) > 0


def test_the_teacher_is_never_paid_more_than_nothing(cycled):
    total, weight = cycled[1].log.means["teacher/return"]
    assert float(weight) == 1
    assert -1 <= float(total) <= 0


def test_the_teacher_learns_to_make_the_student_fail():
    config = taught.square(MINIMAX, ppo=tut.PPO(learning_rate=3e-3, epochs=1))
    room = config.classroom()
    skilled, naive = taught.trained(config, 30)

    @jax.jit
    def teacher_return(s, key):
        s, work = MINIMAX.design(room, replace(s, key=key))
        return -max_return(MINIMAX.play(room, s, work.levels, "explore")[1].episodes).mean()

    keys = jax.random.split(jax.random.key(1), 20)
    after, before = (np.mean([teacher_return(s, k) for k in keys]) for s in (skilled, naive))
    assert after > before + FALL, (after, before)
