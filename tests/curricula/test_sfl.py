"""SFL: a search finds levels that are worth learning, and half of the slots train on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, signs
from tutelage.curricula.sfl import learnability

METHOD = tut.SFL(
    tut.BufferConfig(capacity=20), scout_every=10, scout_batches=2, scout_levels=55, scout_episodes=8, chosen_share=0.5
)
UPDATES, STRIDE = 120, 10
SLOTS = STEPS = 8
SEARCH = 2 * 55 * 8 * 2  # env steps: batches × levels × episodes × their length


@pytest.fixture(scope="module")
def course():
    return Course(signs(METHOD, seeds=2), UPDATES // STRIDE, STRIDE)


def one(state, seed=0):
    return jax.tree.map(lambda x: x[seed], state.with_log(None))


@pytest.mark.parametrize("i", [1, 2, 7, 12])
def test_a_search_counts_as_the_rollouts_it_costs(course, i):
    """27.5 rollouts a search: the half is carried over, so that the count is never wrong by a whole one."""
    state = course.states[i]
    assert state.updates.tolist() == state.cycles.tolist() == [STRIDE * i] * 2
    assert state.rollouts.tolist() == [STRIDE * i + SEARCH * i // (SLOTS * STEPS)] * 2


def test_the_chosen_are_the_best_of_all_that_were_looked_at(course):
    state, found = one(course.states[5]), []

    class Watched(tut.SFL):
        def generate(self, room, key, count=None):
            levels = super().generate(room, key, count)
            jax.debug.callback(lambda x: found.append(np.asarray(x)), levels)
            return levels

    after = jax.jit(lambda s: Watched(**vars(METHOD)).scout(course.room, s))(state)
    jax.effects_barrier()
    looked_at = np.concatenate(found)
    assert looked_at.shape == (110, 2)
    buffer = after.buffer
    assert int(buffer.filled) == 20
    chosen = np.asarray(buffer.level)
    assert (chosen[:, None] == looked_at[None]).all(-1).any(1).all()
    assert (np.diff(buffer.score) <= 0).all()
    assert float(buffer.score.max()) <= 0.25
    assert buffer.id.tolist() == list(range(int(state.buffer.next_id), int(state.buffer.next_id) + 20))
    assert (buffer.birth == state.updates).all()


def test_learnability_is_p_times_1_minus_p(course):
    """By hand, from the returns of the same rollout."""
    from tutelage.student.rollout import episodes, rollout

    state, room = one(course.states[5]), course.room
    levels = jax.vmap(room.design.sample)(jax.random.split(jax.random.key(1), 30))
    key, student = jax.random.key(2), state.learner.student

    @jax.jit
    def measure():
        r, _ = rollout(key, room.env, student, levels, jnp.arange(30, dtype=jnp.int32)[:, None], 16)
        return learnability(room, key, student, levels, 16), episodes(r).returns

    marks, returns = measure()
    solved = np.asarray(returns)[1::2] > 0.75  # episodes last two steps
    p = solved.mean(axis=0)
    assert solved.shape == (8, 30)
    assert np.allclose(marks.score[:, 0], p * (1 - p), atol=1e-6)
    assert len(np.unique(np.round(p, 3))) > 2


def test_the_chosen_levels_are_more_learnable_than_random_ones_when_looked_at_again(course):
    """Judged by other episodes than those that chose them: at least twice as learnable, and by 0.05 at least."""
    state, room = one(course.states[5]), course.room
    measure = jax.jit(lambda key, levels: learnability(room, key, state.learner.student, levels, 200).score.mean())
    random = jax.vmap(room.design.sample)(jax.random.split(jax.random.key(5), 20))
    # The buffer was chosen ten updates ago; a fresh choice by the student as it is now:
    fresh = jax.jit(lambda s: METHOD.scout(room, s))(state).buffer.level
    chosen, ordinary = float(measure(jax.random.key(6), fresh)), float(measure(jax.random.key(6), random))
    assert chosen > max(2 * ordinary, ordinary + 0.05), (chosen, ordinary)


def test_half_of_the_slots_play_chosen_levels_and_all_of_them_teach(course):
    weight = {phase: course.states[2].log.means[f"{phase}/length"].weight for phase in ("explore", "replay")}
    assert weight["explore"].tolist() == weight["replay"].tolist() == [4 * 4 * STRIDE] * 2
    assert course.mean(4, "sfl/learnability") > 2 * course.mean(4, "sfl/learnability_random")


def test_it_learns_what_can_be_learned(course):
    """New levels are solved more often by 0.25; half of them can be solved at most."""
    assert course.mean(-1, "explore/solved") > course.mean(1, "explore/solved") + 0.25


def test_every_chosen_level_is_written_down(course):
    levels = course.admitted()
    assert [level["id"] for level in levels] == list(range(20 * UPDATES // 10))
    assert [level["birth"] for level in levels[::20]] == list(range(0, UPDATES, 10))
    assert all(level["parent"] == -1 for level in levels)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (dict(scout_levels=10), "at least `buffer.capacity`"),
        (dict(scout_every=0), "at least 1"),
        (dict(chosen_share=1.5), "must lie in"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        tut.SFL(**settings)
