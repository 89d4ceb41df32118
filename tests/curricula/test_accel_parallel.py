"""ACCEL‖: three groups in one rollout, and children that know their parents."""

import jax
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, signs

BUFFER = tut.BufferConfig(capacity=64, min_fill=0.3, replay_rate=1.0, gate="fixed")
METHOD = tut.ParallelACCEL(BUFFER, edits=2)
UPDATES, STRIDE = 120, 10


@pytest.fixture(scope="module")
def course():
    return Course(signs(METHOD, seeds=2), UPDATES // STRIDE, STRIDE)


def test_a_rollout_counts_as_three_and_every_one_but_the_first_teaches(course):
    last = course.states[-1]
    assert last.updates.tolist() == [UPDATES] * 2
    assert last.cycles.tolist() == [UPDATES + 1] * 2
    assert last.rollouts.tolist() == [3 * (UPDATES + 1)] * 2


def test_each_phase_has_a_third_of_the_slots(course):
    episodes = 8 * 4 * STRIDE  # slots × episodes in a rollout × rollouts
    for phase in ("explore", "replay", "edit"):
        assert course.states[2].log.means[f"{phase}/length"].weight.tolist() == [episodes] * 2


def test_children_know_their_parents(course):
    born = {}
    for level in course.admitted():
        assert level["id"] not in born, "an id is given once"
        parent = level["parent"]
        assert level["generation"] == (born[parent]["generation"] + 1 if parent >= 0 else 0)
        born[level["id"]] = level
    assert max(level["generation"] for level in born.values()) >= 3
    buffer = jax.tree.map(lambda x: x[0], course.states[-1].buffer)
    for k in range(int(buffer.filled)):
        assert born[int(buffer.id[k])] == {
            "id": int(buffer.id[k]),
            "parent": int(buffer.parent[k]),
            "generation": int(buffer.generation[k]),
            "birth": int(buffer.birth[k]),
        }


def test_children_are_edits_of_the_levels_that_are_replayed(course):
    """One cycle: the levels of the children's slots lie two small edits from those of the replay slots."""
    state = jax.tree.map(lambda x: x[0], course.states[-1].with_log(None))

    def replay(s):
        played = {}

        class Watched(tut.ParallelACCEL):
            def play_together(self, room, s, groups, best=None):
                played.update(groups)
                return super().play_together(room, s, groups, best)

        Watched(BUFFER, edits=2).replay(course.room, s)
        return played

    played = jax.jit(replay)(state)
    replayed, children = np.asarray(played["replay"]), np.asarray(played["edit"])
    kept = np.asarray(state.buffer.level)
    assert (replayed[:, None] == kept[None]).all(-1).any(1).all()
    away = np.abs(children - replayed).max(axis=1)
    assert (away < 0.7).all()
    assert (away > 0).all()
    assert not (np.asarray(played["explore"])[:, None] == kept[None]).all(-1).any()


def test_it_learns_what_can_be_learned(course):
    """Replayed levels are solved more often by 0.6, children by 0.3; half of all levels can be solved at most."""
    assert course.mean(-1, "replay/solved") > course.mean(1, "replay/solved") + 0.6
    assert course.mean(-1, "edit/solved") > course.mean(1, "edit/solved") + 0.3
    assert float((course.states[-1].buffer.level[..., 0] > 0).mean()) > 0.85, "the buffer holds solvable levels"


def test_the_env_steps_of_a_run_are_those_of_all_slots(tmp_path):
    row = tut.train(signs(METHOD, seeds=2), tmp_path / "run").metrics()[-1]
    assert row["updates"] == 12
    assert row["env_steps"] == (12 + 1) * 3 * 8 * 8
    assert {"replay/solved", "edit/admitted", "explore/score"} <= {k for k, v in row.items() if v is not None}


def test_an_edit_of_nothing_is_refused():
    with pytest.raises(ValueError, match="`edits` must be at least 1"):
        tut.ParallelACCEL(edits=0)
