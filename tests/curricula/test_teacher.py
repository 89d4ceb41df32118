"""Learned teachers: what they see, what they are paid, what they learn; and methods that cannot run somewhere."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from scipy import stats

import taught
import tutelage as tut
from curricula.test_step_design import Points
from toys import jumper
from tutelage.curricula.drafting import BoxDesigning
from tutelage.env import TeacherObs
from tutelage.envs.grid import TeacherEye
from tutelage.envs.lava import LavaDesign
from tutelage.envs.maze import MazeDesign
from tutelage.errors import UserError
from tutelage.runs import presets
from tutelage.student.nets import ActorCritic, TwoTowers

SMALL = MazeDesign(4, 3, "fixed", 3).designing()


def test_the_eye_is_a_convolution_of_the_map_the_clock_and_z():
    eye = TeacherEye((6, 5), steps=7, z=2, filters=4, features=3, key=random.key(0))
    assert eye.size == 4 * 3 * 4 + 3 + 2
    eye = eqx.tree_at(lambda e: e.bias, eye, random.normal(random.key(1), (4,)))
    image = random.randint(random.key(2), (6, 5, 3), 0, 11).astype(jnp.uint8)
    z = jnp.array([0.25, 0.5])
    kernel = np.asarray(eye.kernel).reshape(3, 3, 3, 4)
    seen = jax.lax.conv_general_dilated(
        np.asarray(image, np.float32)[None] / 10, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    expected = [np.maximum(np.asarray(seen) + np.asarray(eye.bias), 0).ravel(), eye.clock[6] + eye.clock_bias, z]
    assert np.allclose(eye(TeacherObs(image, jnp.int32(6), z)), np.concatenate(expected), atol=1e-5)


def test_teachers_of_the_presets_are_those_of_the_reference():
    """128 filters on 15×15 tiles, 10 numbers for the step, 50 random ones; an LSTM of 256 or nothing; heads of 32."""
    for name, recurrent in (("paired", True), ("minimax", False), ("repaired", False)):
        config = tut.preset("maze", name)
        room = config.classroom()
        state = jax.eval_shape(lambda key, room=room, m=config.method: m.init(room, key), random.key(0))
        teacher = state.own.teacher.student
        assert isinstance(teacher, ActorCritic)
        assert teacher.encoder.size == 128 * 13 * 13 + 10 + 50 == 21_692
        assert teacher.encoder.clock.shape == (25 + 3, 10)
        assert teacher.recurrent == recurrent
        assert teacher.actor.hidden.weight.shape == (256 if recurrent else 21_692, 32)
        assert teacher.actor.output.weight.shape == (32, 169)


@pytest.mark.parametrize("memory", [False, True])
def test_what_a_teacher_did_has_the_probability_it_says(memory):
    """Before it learns, so that PPO's ratio starts at 1."""
    teacher = tut.Teacher(tut.StudentConfig(memory=memory, hidden=8 * memory, head=4), z=2)
    learner = teacher.new(random.key(0), SMALL, 6)
    learner = eqx.tree_at(lambda x: x.student.actor.output.weight, learner, replace_fn=lambda w: 3000 * w)
    r = jax.jit(lambda key: teacher.make(key, learner, SMALL, 6).rollout)(random.key(1))
    policy, value = learner.student.evaluate(r.obs, r.start)
    assert r.action.shape == (5, 6)
    assert np.allclose(policy.log_prob(r.action), r.log_prob, atol=1e-5)
    assert np.allclose(value, r.value, atol=1e-5)
    assert np.ptp(np.asarray(r.log_prob)) > 0.1
    assert r.start[0].all()
    assert not r.start[1:].any()


def test_a_teacher_of_parameters_has_the_density_of_what_it_drew():
    """And not of what the procedure squashed it to."""
    teacher = tut.Teacher(tut.StudentConfig(memory=False, hidden=8, separate=True), z=2)
    procedure = BoxDesigning(Points())
    learner = teacher.new(random.key(0), procedure, 6)
    assert isinstance(learner.student, TwoTowers)
    work = teacher.make(random.key(1), learner, procedure, 6)
    policy, _ = learner.student.evaluate(work.rollout.obs, work.rollout.start)
    density = stats.norm(np.asarray(policy.mean)[..., 0], 1.0).logpdf(np.asarray(work.rollout.action)[..., 0])
    assert np.allclose(work.rollout.log_prob, density, atol=1e-5)
    low, high = np.array(Points().low), np.array(Points().high)
    share = (np.asarray(work.levels.vector) - low) / (high - low)
    assert np.allclose(2 * share - 1, np.tanh(np.asarray(work.rollout.action)[..., 0]).T, atol=1e-5)


@pytest.fixture(scope="module")
def designer():
    learn = jax.jit(lambda key, learner, r, gain: taught.EAGER.learn(key, learner, r, gain)[0])
    return taught.EAGER.new(random.key(0), SMALL, 32), learn


def planted(levels) -> jax.Array:
    """A gain for few walls and a start in the first row: what a single step decides, and what several do."""
    return (levels.agent < 3).astype(jnp.float32) - levels.walls.sum(axis=(1, 2)) / 3


def test_a_teacher_learns_what_it_is_paid_for(designer):
    learner, learn = designer
    make = jax.jit(lambda key, learner: taught.EAGER.make(key, learner, SMALL, 32))
    gains = []
    for key in random.split(random.key(1), 60):
        work = make(key, learner)
        gains.append(float(planted(work.levels).mean()))
        learner = learn(key, learner, work.rollout, planted(work.levels))
    assert np.mean(gains[-5:]) > np.mean(gains[:5]) + 0.6, gains


def test_only_the_last_step_is_paid(designer):
    """With γ = λ = 1 every step's target is the gain itself, whatever rewards the rollout held before."""
    learner, learn = designer
    r = taught.EAGER.make(random.key(1), learner, SMALL, 32).rollout
    gain = random.normal(random.key(2), (32,))
    other = replace(r, reward=jnp.ones_like(r.reward))
    assert taught.same(learn(random.key(3), learner, r, gain), learn(random.key(3), learner, other, gain))


def test_gains_are_divided_by_their_running_deviation():
    teacher = tut.Teacher(taught.TEACHER.network, tut.PPO(epochs=1, normalise_returns=True), z=3)
    learner = teacher.new(random.key(0), SMALL, 8)
    r = teacher.make(random.key(1), learner, SMALL, 8).rollout
    plain = replace(teacher, ppo=tut.PPO(epochs=1))
    seen = []
    for n in range(3):
        gain = 5 + 3 * random.normal(random.key(n), (8,))
        seen.append(np.asarray(gain, np.float64))
        by_scale, _ = teacher.learn(random.key(9), learner, r, gain)
        divided = jnp.asarray(gain / np.concatenate(seen).std(), jnp.float32)  # no mean is subtracted
        by_hand, _ = plain.learn(random.key(9), replace(learner, scale=None), r, divided)
        assert by_scale.scale is not None
        for a, b in zip(*map(jax.tree.leaves, (by_scale.student, by_hand.student)), strict=True):
            assert np.allclose(a, b, atol=2e-5)
        learner = by_scale


def test_methods_are_refused_where_levels_cannot_be_made_step_by_step():
    for method, name, kind in (
        (tut.PAIRED(), "paired", "StepDesign or BoxDesign"),
        (tut.Minimax(), "minimax", "StepDesign or BoxDesign"),
        (tut.REPAIRED(), "repaired", "StepDesign or BoxDesign"),
        (tut.LearnedEditor(), "learned-editor", "StepEdit"),
    ):
        with pytest.raises(UserError) as refusal:
            jumper(method=method).classroom()
        said = str(refusal.value)
        assert f"{name} cannot run on jumper: it needs a design space of the kind {kind}." in said
        assert "jumper can be trained with dr, plr, robust-plr, accel, no-editor" in said
        assert f"{name} runs on maze, lava" in said


def test_a_preset_that_cannot_be_is_refused_the_same_way(monkeypatch):
    class NeedsPoints(tut.DR):
        needs = Points

    monkeypatch.setitem(presets.METHODS, "pointed", NeedsPoints)
    with pytest.raises(UserError, match=r"pointed cannot run on maze.*Points.*trained with dr.*runs on no env"):
        tut.preset("maze", "pointed")
    with pytest.raises(UserError, match="Unknown method 'moon' for maze; known: dr"):
        tut.preset("maze", "moon")


def test_minibatches_of_the_teacher_must_come_out_even():
    method = tut.Minimax(taught.BUFFER, teacher=replace(taught.TEACHER, ppo=tut.PPO(minibatches=7)))
    with pytest.raises(UserError, match=r"ppo.minibatches = 7 does not divide 10×8 steps"):
        taught.tiny(method).classroom()


def test_a_teacher_needs_no_random_numbers_but_not_fewer():
    assert tut.Teacher(taught.TEACHER.network, z=0).new(random.key(0), LavaDesign().designing(), 4)
    with pytest.raises(ValueError, match="must not be negative"):
        tut.Teacher(z=-1)
