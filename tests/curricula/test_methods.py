"""What the methods do that share one cycle: explore or replay, and then perhaps edit."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, signs
from curricula.test_scores import ENTRIES, SLOTS, evidence
from taught import one_seed
from tutelage.curricula.accel import lowest_slots
from tutelage.curricula.buffer import fingerprint
from tutelage.curricula.curated import Trial
from tutelage.curricula.scores import mark
from tutelage.curricula.seeds import shared_uniform, when
from tutelage.runs.run import initial_state

BUFFER = tut.BufferConfig(capacity=24, min_fill=0.3, replay_rate=0.7)
METHODS = {
    "dr": tut.DR(BUFFER),
    "plr": tut.PLR(BUFFER),
    "robust-plr": tut.RobustPLR(BUFFER),
    "accel": tut.ACCEL(BUFFER, edits=2),
    "accel-lowest": tut.ACCEL(BUFFER, edits=2, parents="lowest", after_episode="repeat", score_over="last"),
    "no-editor": tut.NoEditor(BUFFER),
}


@pytest.fixture(scope="module")
def seen():
    """A method taken one update at a time, before which there may be several cycles of exploring."""
    cache = {}

    def get(name):
        if name not in cache:
            cache[name] = Course(signs(METHODS[name], seeds=2), 20)
        return cache[name]

    return get


def total(state, name):
    return float(state.log.means[name].weight.sum())


@pytest.mark.parametrize("name", METHODS)
def test_counters_tell_updates_cycles_and_rollouts_apart(seen, name):
    last = seen(name).states[-1]
    assert last.updates.tolist() == [20, 20]
    updates, cycles, rollouts = (int(x[0]) for x in (last.updates, last.cycles, last.rollouts))
    if name in ("dr", "plr"):
        assert updates == cycles == rollouts
    elif name == "robust-plr":
        assert updates < cycles == rollouts
    else:  # an extra rollout after each replay
        assert updates < cycles
        assert rollouts == cycles + updates


@pytest.mark.parametrize("name", METHODS)
def test_phases_are_those_of_the_method(seen, name):
    played = {
        phase: sum(total(s, f"{phase}/length") for s in seen(name).states[1:])
        for phase in ("explore", "replay", "edit")
    }
    assert played["explore"] > 0
    assert (played["replay"] > 0) == (name != "dr")
    assert (played["edit"] > 0) == name.startswith("accel")


@pytest.mark.parametrize("name", ["robust-plr", "accel", "no-editor"])
def test_exploring_teaches_nothing(seen, name):
    course = seen(name)
    before = jax.tree.map(lambda x: x[0], course.states[0])
    after = jax.jit(lambda s: METHODS[name].explore(course.room, s))(before)
    assert all(
        jnp.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (before.learner, after.learner)), strict=True)
    )
    assert int(after.buffer.filled) > 0


@pytest.mark.parametrize("name", METHODS)
def test_the_student_changes_with_every_update(seen, name):
    first, second = (s.learner.student.actor.output.weight for s in seen(name).states[5:7])
    assert not jnp.array_equal(first, second)


def test_children_know_their_parents(seen):
    generations = {}
    for level in seen("accel").admitted():
        assert level["id"] not in generations, "an id is given once"
        parent = level["parent"]
        assert level["generation"] == (generations[parent] + 1 if parent >= 0 else 0)
        generations[level["id"]] = level["generation"]
    assert max(generations.values()) >= 2
    buffer = seen("accel").states[-1].buffer
    for k in range(int(buffer.filled[0])):
        assert generations[int(buffer.id[0, k])] == int(buffer.generation[0, k])


def test_without_an_editor_nothing_has_a_parent(seen):
    assert (seen("no-editor").states[-1].buffer.parent == -1).all()


def test_no_seed_gets_ahead_of_the_others(seen):
    for name in METHODS:
        for state in seen(name).states:
            assert len(set(state.updates.tolist())) == 1


def test_lowest_slots_are_those_of_lowest_return_minus_value_loss():
    config = signs(METHODS["accel"])
    room, method = config.classroom(), config.method
    state = jax.tree.map(lambda x: x[0], initial_state(config))

    @jax.jit
    def play(s):
        return method.play(room, s, method.generate(room, s.key), "explore")[1]

    trial = play(state)
    ended, returns = np.asarray(trial.episodes.ended), np.asarray(trial.episodes.returns)
    mean = [returns[ended[:, p], p].mean() if ended[:, p].any() else 0.0 for p in range(config.slots)]
    value_loss = np.clip(np.abs(np.asarray(trial.advantage)).mean(0), -1, 1)
    lowest = np.argsort(np.array(mean) - value_loss, kind="stable")[:4]
    assert lowest_slots(trial).tolist() == [*lowest, *lowest]


@dataclass(frozen=True)
class Watched(tut.DR):
    """Domain randomisation that keeps what the student saw."""

    def learn(self, room, s, trial):
        return replace(super().learn(room, s, trial), own=trial.rollout.obs)


@pytest.mark.parametrize(("new_level", "levels"), [("rollout", 1), ("episode", 4)])
def test_dr_as_released_plays_a_new_level_in_every_episode(new_level, levels):
    """On the square, where a student sees its level and a rollout of 8 steps has four episodes."""
    config = signs(Watched(BUFFER, new_level=new_level))
    state = jax.jit(lambda s: config.method.cycle(config.classroom(), s))(one_seed(config))
    seen = np.asarray(state.own)
    assert seen.shape == (8, config.slots, 2)
    assert len(np.unique(seen.reshape(-1, 2), axis=0)) == levels * config.slots
    assert (seen[0::2] == seen[1::2]).all(), "a level is played to the episode's end"
    kept = np.asarray(state.buffer.level)[: int(state.buffer.filled)]
    assert sorted(kept.tolist()) == sorted(seen[0].tolist()), "the first level of every slot is offered"


@pytest.mark.parametrize("admission", ["score", "first"])
def test_as_released_the_first_episode_admits_and_the_last_ones_score_stays(admission):
    """Against a plain loop over the slots: four levels, of which one finishes no episode, and a buffer of three."""
    e = evidence(seed=3, done_rate=0.4)
    first, last = (mark("pvl", over, e, None, ENTRIES) for over in ("first", "last"))
    trial = Trial(e, e.advantage, last)
    method = tut.DR(tut.BufferConfig(capacity=3, eviction="score"), score_over="last", admission=admission)
    state = one_seed(signs(method))
    known = state.buffer.level.at[:].set(jnp.arange(6.0).reshape(3, 2))
    scores = jnp.array([0.2, 0.3, 0.4])
    prints = jax.vmap(fingerprint)(known)
    buffer = replace(state.buffer, level=known, score=scores, filled=jnp.int32(3), fingerprint=prints)
    new = 10 + jnp.arange(8.0).reshape(SLOTS, 2)
    after = method.offer(replace(state, buffer=buffer), new, trial, "explore").buffer

    bids = np.asarray((first if admission == "first" else last).score[:, 0])
    levels, scores = np.asarray(known).copy(), np.asarray(scores).copy()
    for p in np.flatnonzero(last.finished[:, 0]):
        worst = scores.argmin()
        if scores[worst] <= bids[p]:
            levels[worst], scores[worst] = new[p], last.score[p, 0]
    np.testing.assert_array_equal(after.level, levels)
    np.testing.assert_allclose(after.score, scores, atol=1e-6)
    assert (levels > 9).any(), "something was admitted"


def test_a_remembered_score_is_mixed_with_the_new_one(seen):
    state = jax.tree.map(lambda x: x[0], seen("robust-plr").states[-1])

    def replayed(memory: float):
        config = signs(tut.RobustPLR(BUFFER, score_memory=memory))
        return jax.jit(lambda s: config.method.play_buffer(config.classroom(), s)[0].buffer.score)(state)

    before, new, mixed = (np.asarray(x) for x in (state.buffer.score, replayed(0.0), replayed(0.75)))
    played = new != before
    assert played.any()
    np.testing.assert_allclose(mixed[played], 0.75 * before[played] + 0.25 * new[played], rtol=1e-5)
    np.testing.assert_array_equal(mixed[~played], before[~played])


def test_when_computes_a_phase_only_if_a_seed_wants_it():
    ran = []

    def act(x):
        jax.debug.callback(lambda: ran.append(1))
        return x + 1

    run = jax.jit(jax.vmap(lambda wanted, x: when(wanted, act, x)))
    x = jnp.arange(3)
    assert run(jnp.array([False] * 3), x).tolist() == [0, 1, 2]
    jax.effects_barrier()
    assert not ran
    assert run(jnp.array([False, True, False]), x).tolist() == [0, 2, 2]
    jax.effects_barrier()
    assert ran


def test_seeds_draw_the_same_decisions():
    states = initial_state(signs(METHODS["accel"], seeds=3))
    u = jax.vmap(lambda s: shared_uniform(s, 0))(states)
    assert len(set(u.tolist())) == 1
    later = jax.vmap(lambda s: shared_uniform(replace(s, updates=s.updates + 1), 0))(states)
    assert later[0] != u[0]
