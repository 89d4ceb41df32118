"""ReMiDi: buffers one after another, each for what can be told from the levels of those before."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, Square, signs
from taught import one_seed
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.remidi import overlap
from tutelage.student.rollout import rollout

K = 16
METHOD = tut.ReMiDi(BufferConfig(capacity=K, min_fill=0.3, replay_rate=0.7), buffers=2, cycles_each=5)


@dataclass(frozen=True)
class Walk:
    """A walk on a line, whose mark is only seen within a step of the level's x (in tenths); it never ends early."""

    actions = tut.Discrete(2)
    max_steps = 6

    def reset(self, key, level):
        state = (level, jnp.int32(0), jnp.int32(0))
        return state, self.look(state)

    def look(self, state):
        level, at, _ = state
        near = jnp.abs(at - jnp.round(10 * level[0]).astype(jnp.int32)) <= 1
        return {"at": at, "mark": jnp.where(near, jnp.round(10 * level[1]).astype(jnp.int32), 0)}

    def step(self, key, state, action):
        level, at, t = state
        state = (level, at + 2 * action - 1, t + 1)
        return state, tut.Timestep(self.look(state), jnp.float32(0), t + 1 >= self.max_steps, jnp.bool_(False))

    def solved(self, episode_return):
        return episode_return > 0


@dataclass(frozen=True)
class Blindfold:
    """Left of x = 0 nothing is seen, and a guess pays by the sign of y; on the right all is seen, and pays less."""

    actions = tut.Discrete(2)
    max_steps = 2

    def reset(self, key, level):
        return (level, jnp.int32(0)), jnp.where(level[0] > 0, level, 0.0)

    def step(self, key, state, action):
        level, t = state
        right = action == (level[1] > 0)
        pay = jnp.where(level[0] > 0, 0.1, 1.0)
        after = jnp.where(level[0] > 0, level, 0.0)
        return (level, t + 1), tut.Timestep(
            after, jnp.where(right, pay, 0.0), t + 1 >= self.max_steps, jnp.bool_(False)
        )

    def solved(self, episode_return):
        return episode_return > 0


def test_overlap_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    env, many, slots = Walk(), 5, 6
    levels = jnp.asarray(rng.integers(-3, 4, (many + slots, 2)) / 10, jnp.float32)
    student = one_seed(signs(tut.DR(), env=tut.OwnDomain("walk", env, Square()))).learner.student
    queue = many + jnp.arange(slots)[:, None]
    r = jax.jit(lambda key: rollout(key, env, student, levels, queue, 15)[0])(jax.random.key(1))
    there = jnp.arange(many) != 2
    found = np.asarray(jax.jit(lambda r: overlap(env, levels[:many], there, r))(r))
    expected = np.zeros(found.shape, bool)
    for p in range(slots):
        for e in (e for e in range(many) if e != 2):
            at, alike = 0, True
            for t in range(15):
                if r.start[t, p]:
                    at, alike = 0, True
                mark, x = np.round(10 * np.asarray(levels[e]))[[1, 0]]
                seen = int(mark) if abs(at - x) <= 1 else 0
                alike &= seen == int(r.obs["mark"][t, p]) and at == int(r.obs["at"][t, p])
                expected[t, p] |= alike
                at += 2 * int(r.action[t, p]) - 1
    np.testing.assert_array_equal(found, expected)
    assert 0.1 < found.mean() < 0.9


def test_regret_that_cannot_fall_keeps_one_buffer_busy_and_not_the_next():
    """Robust PLR goes on with guesses for ever; the second buffer has none, for all blindfolds are alike."""
    env = tut.OwnDomain("blindfold", Blindfold(), Square())
    shares = {}
    for name, method in (("remidi", METHOD), ("robust-plr", tut.RobustPLR(METHOD.buffer))):
        course = Course(signs(method, env=env, seeds=2, slots=16), 1, 30)
        buffer = course.states[-1].buffer
        filled = np.arange(K) < np.asarray(buffer.filled)[:, None]
        shares[name] = (np.asarray(buffer.level)[..., 0] < 0)[filled].mean()
        assert filled.sum(axis=1).min() > 4
    assert shares["robust-plr"] > 0.6
    assert shares["remidi"] == 0.0
    last = course.states[-1]
    assert last.updates.tolist() == [30, 30]


def test_buffers_are_put_aside_whole_and_the_last_one_stays():
    course = Course(signs(METHOD, seeds=2), 12)
    first = next(i for i, s in enumerate(course.states) if int(s.own.number[0]))
    before, after, last = course.states[first - 1], course.states[first], course.states[-1]
    assert np.asarray(last.own.number).tolist() == [1, 1]
    assert int(after.own.there[0].sum()) >= int(before.buffer.filled[0])
    kept = np.asarray(last.own.levels)[0, 0][np.asarray(last.own.there)[0, 0]]
    assert len(kept) == int(last.own.there[0].sum()) > 0
    early = {x["id"] for x in course.admitted()}
    assert len(early) == int(last.buffer.next_id[0]), "ids go on"


@pytest.mark.parametrize("settings", [dict(buffers=1), dict(cycles_each=0)])
def test_settings_that_cannot_be_are_refused(settings):
    with pytest.raises(ValueError, match="must be at least"):
        tut.ReMiDi(**settings)
