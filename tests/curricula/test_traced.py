"""TRACED: regret, what is hard to predict, and credit for what made other levels easier."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, Square, signs
from taught import one_seed
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.scores import Marks
from tutelage.student.prediction import Model

K = 24
METHOD = tut.TRACED(BufferConfig(capacity=K, min_fill=0.3, replay_rate=0.7), edits=2, model=tut.Prediction(units=8))


@dataclass(frozen=True)
class Flicker:
    """Nothing pays. Right of x = 0 what is seen next is drawn at random, elsewhere it is always the same."""

    actions = tut.Discrete(2)
    max_steps = 8

    def reset(self, key, level):
        return (level, jnp.int32(0)), jnp.zeros(4)

    def step(self, key, state, action):
        level, t = state
        seen = jnp.where(level[0] > 0, jax.random.normal(key, (4,)), 0.0)
        return (level, t + 1), tut.Timestep(seen, jnp.float32(0), t + 1 >= self.max_steps, jnp.bool_(False))

    def solved(self, episode_return):
        return episode_return > 0


def flat(scores, finished) -> Marks:
    """Marks as a replay gives them to the buffer."""
    score = jnp.array(scores)[:, None]
    return jax.tree.map(jnp.ravel, Marks(score, score, jnp.array(finished)[:, None]))


@pytest.fixture(scope="module")
def state():
    return one_seed(signs(METHOD))


def test_levels_that_cannot_be_predicted_are_kept():
    env = tut.OwnDomain("flicker", Flicker(), Square())
    method = replace(METHOD, prediction=10.0, co_learnability=0.0, model=tut.Prediction(units=8, learning_rate=1e-2))
    course = Course(signs(method, env=env, steps=16), 1, 40)
    levels = np.asarray(course.states[-1].buffer.level)[0]
    assert (levels[:, 0] > 0).mean() > 0.9
    assert course.mean(1, "traced/error") > 0.05


def test_errors_are_those_of_the_model_before_it_learns():
    """One step of the optimiser a rollout, beside a plain loop over steps."""
    rng = np.random.default_rng(0)
    prediction = tut.Prediction("l2", scale=2.0, units=5, steps=1)
    config = signs(replace(METHOD, model=prediction))
    room, s = config.classroom(), one_seed(config)
    trial = jax.jit(lambda s: config.method.play(room, s, jnp.asarray(levels), "explore")[1])
    levels = rng.uniform(-1, 1, (config.slots, 2)).astype(np.float32)
    r = trial(s).rollout
    _, error = jax.jit(lambda p, r: prediction.learn(p, r, room.env.actions))(s.own.predictor, r)
    m: Model = s.own.predictor.model
    wx, wh, b = (np.asarray(x, np.float64) for x in (m.memory.weight_x, m.memory.weight_h, m.memory.bias_x))
    out, bias = np.asarray(m.output.weight, np.float64), np.asarray(m.output.bias, np.float64)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    seen, start, done = np.asarray(r.obs, np.float64) / 2, np.asarray(r.start), np.asarray(r.done)
    expected = np.zeros(error.shape)
    for p in range(config.slots):
        h = c = np.zeros(5)
        for t in range(config.steps):
            if start[t, p]:
                h = c = np.zeros(5)
            x = np.concatenate([seen[t, p], np.eye(4)[int(r.action[t, p])]])
            i, f, g, o = np.split(x @ wx + h @ wh + b, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            if not done[t, p] and t + 1 < config.steps:
                expected[t, p] = ((h @ out + bias - seen[t + 1, p]) ** 2).mean()
    assert expected.any()
    np.testing.assert_allclose(error, expected, atol=1e-5)


def test_difficulty_is_the_score_and_the_mean_error_of_every_episode(state):
    """An episode of two steps has one prediction, so that ATPL is the mean over episodes of their first errors."""
    config = signs(METHOD)
    room = config.classroom()
    levels = room.design.sample(jax.random.key(5))[None] + jnp.linspace(0, 0.1, 16).reshape(8, 2)
    after, trial = jax.jit(lambda s: METHOD.play(room, s, levels, "explore"))(state)
    plain = tut.ACCEL(METHOD.buffer)
    regret = jax.jit(lambda s: plain.play(room, replace(s, own=()), levels, "explore"))(state)[1].marks.score
    error = jax.jit(lambda p, r: METHOD.model.learn(p, r, room.env.actions))(state.own.predictor, trial.rollout)[1]
    np.testing.assert_allclose(trial.marks.score[:, 0] - regret[:, 0], np.asarray(error)[0::2].mean(0), atol=1e-5)
    weights = (x.own.predictor.model.output.weight for x in (state, after))
    assert not jnp.array_equal(*weights)


def test_the_last_levels_get_the_credit_for_what_became_easier(state):
    """Planted: slots 1 and 2 were taught before; now 2 and 5 are replayed, and 4 holds another level than then."""
    method = replace(METHOD, co_learnability=0.5)
    score = jnp.arange(K) / 10.0
    ids = jnp.arange(K, dtype=jnp.int32)
    taught = jnp.zeros(K, bool).at[jnp.array([1, 2, 4])].set(True)
    own = replace(state.own, difficulty=score + 1, id=ids, taught=taught)
    buffer = replace(state.buffer, score=score, id=ids.at[4].set(99), filled=jnp.int32(K))
    marks = flat([0.7, 9.0, 0.1], [True, False, True])
    after = method.renew(replace(state, own=own, buffer=buffer), jnp.array([2, 3, 5]), marks)
    easier = ((0.2 + 1 - 0.7) + (0.5 + 1 - 0.1)) / 2
    expected = np.arange(K) / 10.0
    expected[2], expected[5] = 0.7, 0.1
    expected[[1, 2]] += 0.5 * easier
    np.testing.assert_allclose(after.buffer.score, expected, atol=1e-6)
    assert np.flatnonzero(after.own.taught).tolist() == [2, 5]
    np.testing.assert_allclose(after.own.difficulty[jnp.array([2, 4, 5, 6])], [0.7, 0.4, 0.1, 1.6], atol=1e-6)
    again = method.renew(after, jnp.array([1]), flat([1.0], [True]))
    assert float(again.buffer.score[1]) == pytest.approx(1.0), "a level that is played again loses its credit"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (dict(prediction=-1.0), "must not be negative"),
        (dict(admission="first", score_over="last"), "must be score"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        tut.TRACED(**settings)


@pytest.mark.parametrize("settings", [dict(scale=-1.0), dict(units=0), dict(steps=0), dict(learning_rate=0.0)])
def test_models_that_cannot_be_are_refused(settings):
    with pytest.raises(ValueError, match="must"):
        tut.Prediction(**settings)


def test_slots_must_be_divisible_among_the_steps():
    with pytest.raises(tut.UserError, match=r"--method.model.steps = 3 does not divide --slots = 8"):
        signs(replace(METHOD, model=tut.Prediction(steps=3))).classroom()
