"""PLR‖: both groups in one rollout, and the student learning from one of them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, signs
from tutelage.curricula.curated import Curated

BUFFER = tut.BufferConfig(capacity=64, min_fill=0.3, replay_rate=1.0, gate="fixed")
METHOD = tut.ParallelPLR(BUFFER)
UPDATES, STRIDE = 120, 10


@pytest.fixture(scope="module")
def course():
    return Course(signs(METHOD, seeds=2), UPDATES // STRIDE, STRIDE)


def test_a_rollout_counts_as_two_and_every_one_but_the_first_few_teaches(course):
    last = course.states[-1]
    fill = 2  # 0.3 · 64 = 20 levels, 16 a cycle
    assert last.updates.tolist() == [UPDATES] * 2
    assert last.cycles.tolist() == [UPDATES + fill] * 2
    assert last.rollouts.tolist() == [2 * (UPDATES + fill)] * 2


def test_before_it_may_replay_all_slots_hold_new_levels_and_nothing_is_learned(course):
    before = jax.tree.map(lambda x: x[0], course.states[0])
    after = jax.jit(lambda s: METHOD.explore(course.room, s))(before)
    assert int(after.buffer.filled) == 16
    assert int(after.updates) == 0
    same = jax.tree.map(jnp.array_equal, before.learner, after.learner)
    assert all(jax.tree.leaves(same))


def test_each_phase_has_half_the_slots(course):
    weight = {phase: course.states[2].log.means[f"{phase}/length"].weight for phase in ("explore", "replay", "edit")}
    episodes = 8 * 4 * STRIDE  # slots × episodes in a rollout × rollouts
    assert weight["explore"].tolist() == weight["replay"].tolist() == [episodes] * 2
    assert weight["edit"].tolist() == [0, 0]


def test_the_student_learns_from_the_replayed_slice_alone(course, monkeypatch):
    seen = []
    monkeypatch.setattr(Curated, "learn", lambda self, room, s, trial: seen.append(trial) or s)
    state = jax.tree.map(lambda x: x[0], course.states[-1].with_log(None))
    after, (trial,) = jax.jit(lambda s: (METHOD.replay(course.room, s), seen))(state)
    assert trial.rollout.value.shape == (course.room.steps, course.room.slots)
    # The observation is the level, so the rollout tells which levels were learned from: those whose scores are new.
    played = np.asarray(trial.rollout.obs[0])
    drawn = (np.asarray(state.buffer.level)[None] == played[:, None]).all(-1)
    assert drawn.any(axis=1).all(), "all of them were in the buffer before"
    scores = np.asarray(trial.marks.score[:, 0])
    place = {tuple(level): score for level, score in zip(played.tolist(), scores, strict=True)}
    kept = np.asarray(after.buffer.level)[: int(after.buffer.filled)]
    for level, score in zip(kept.tolist(), np.asarray(after.buffer.score), strict=True):
        assert place.get(tuple(level), score) == score


def test_it_learns_what_can_be_learned(course):
    """New levels are solved more often by 0.25 and replayed ones by 0.6; half of all levels can be solved at most."""
    assert course.mean(-1, "explore/solved") > course.mean(1, "explore/solved") + 0.25
    assert course.mean(-1, "replay/solved") > course.mean(1, "replay/solved") + 0.6
    assert float((course.states[-1].buffer.level[..., 0] > 0).mean()) > 0.85, "the buffer holds solvable levels"


def test_the_best_return_of_a_replayed_level_is_remembered(course):
    """MaxMC: a replayed level's score knows returns of earlier rollouts, a new level's does not."""
    method = replace(METHOD, score="maxmc")
    state = jax.tree.map(lambda x: x[0], course.states[-1].with_log(None))
    state = replace(state, buffer=replace(state.buffer, best_return=state.buffer.best_return + 5))
    drawn = jnp.arange(8)
    known = np.asarray(method.known_returns(course.room, state, drawn))
    assert np.array_equal(known[:8], state.buffer.best_return[:8])
    assert np.isneginf(known[8:]).all()
    levels = {"replay": state.buffer.level[:8], "explore": state.buffer.level[8:16]}
    _, trial = jax.jit(lambda s: method.play_together(course.room, s, levels, jnp.asarray(known)))(state)
    best = np.asarray(trial.marks.best_return[:, 0])
    assert (best[:8] >= 5).all()
    assert (best[8:] <= 1).all()
