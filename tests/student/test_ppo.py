from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.env import Discrete
from tutelage.student import ppo as ppos
from tutelage.student.distributions import Categorical
from tutelage.student.nets import Flatten, StudentConfig
from tutelage.student.ppo import PPO, Batch
from tutelage.student.rollout import Rollout


class TwoNumbers(eqx.Module):
    """A student of two parameters: P(action 1) = σ(a) everywhere, value v everywhere."""

    a: jax.Array
    v: jax.Array
    recurrent = True

    def memory(self, slots):
        return ()

    def ready(self):
        return self

    def act(self, memory, obs, start):
        raise NotImplementedError

    def evaluate(self, obs, start):
        logits = jnp.stack([jnp.zeros_like(obs), jnp.broadcast_to(self.a, obs.shape)], axis=-1)
        return Categorical(logits), jnp.broadcast_to(self.v, obs.shape)


# P(1) = 0.8 now; the two actions taken were 1 and 0, recorded with probabilities 0.5 and 0.2.
STUDENT = TwoNumbers(jnp.log(4.0), jnp.array(0.5))
BATCH = Batch(
    obs=jnp.zeros((2, 1)),
    action=jnp.array([[1], [0]]),
    start=jnp.zeros((2, 1), bool),
    log_prob=jnp.log(jnp.array([[0.5], [0.2]])),
    value=jnp.array([[0.0], [0.4]]),
    advantage=jnp.array([[2.0], [-1.0]]),
    target=jnp.array([[1.0], [0.0]]),
)


def test_loss_equals_the_value_derived_by_hand():
    # Ratios 0.8/0.5 = 1.6 and 0.2/0.2 = 1. min(1.6·2, 1.2·2) = 2.4; 1·−1 = −1. −mean = −0.7.
    # Values: V = 0.5; clipped 0 + 0.2 = 0.2 and 0.4 + 0.1 = 0.5.
    #   max((0.5−1)², (0.2−1)²) = 0.64 and max(0.25, 0.25) = 0.25: ½·mean = 0.2225.
    # Entropy of (0.2, 0.8).
    entropy = -(0.2 * np.log(0.2) + 0.8 * np.log(0.8))
    total, parts = ppos.loss(STUDENT, BATCH, PPO(value_coef=0.5, entropy_coef=0.1))
    assert float(parts["policy_loss"]) == pytest.approx(-0.7, abs=1e-6)
    assert float(parts["value_loss"]) == pytest.approx(0.2225, abs=1e-6)
    assert float(parts["entropy"]) == pytest.approx(entropy, abs=1e-6)
    assert float(total) == pytest.approx(-0.7 + 0.5 * 0.2225 - 0.1 * entropy, abs=1e-6)
    assert float(parts["clip_fraction"]) == pytest.approx(0.5)
    assert float(parts["kl"]) == pytest.approx((0.6 - np.log(1.6)) / 2, abs=1e-6)


def test_without_value_clipping_the_value_loss_is_hubers():
    far = eqx.tree_at(lambda s: s.v, STUDENT, jnp.array(3.0))
    _, parts = ppos.loss(far, BATCH, PPO(clip_value=False))
    assert float(parts["value_loss"]) == pytest.approx(np.mean([2.0 - 0.5, 3.0 - 0.5]), abs=1e-6)


def test_gradient_is_cut_off_outside_the_trust_region():
    # The first action's ratio is past 1.2 with a positive advantage: only the second may pull on the policy.
    grads = jax.grad(lambda s: ppos.loss(s, BATCH, PPO(value_coef=0.0))[0])(STUDENT)
    # d/da of −½·(ratio₂·−1), ratio₂ = (1−σ(a))/0.2, σ' = 0.16.
    assert float(grads.a) == pytest.approx(0.5 * -0.16 / 0.2, abs=1e-6)


def test_advantages_are_normalised_over_the_rollout_with_the_unbiased_deviation():
    advantage = jnp.array([[1.0, 2.0], [3.0, 6.0]])
    zeros, no = jnp.zeros((2, 2)), jnp.zeros((2, 2), bool)
    rollout = Rollout(zeros, zeros, zeros, zeros, None, zeros, no, no, no, jnp.zeros((2, 2), jnp.int32))
    made = ppos.make_batch(rollout, advantage, advantage, PPO())
    assert np.allclose(made.advantage, (np.asarray(advantage) - 3.0) / (np.std([1, 2, 3, 6], ddof=1) + 1e-5), atol=1e-6)
    assert np.array_equal(made.target, advantage)


def test_advantages_can_be_normalised_in_each_minibatch_instead():
    ppo = PPO(normalise="minibatch")
    far = eqx.tree_at(lambda b: b.advantage, BATCH, 7.0 + 3.0 * BATCH.advantage)
    known = np.asarray(far.advantage)
    assert np.array_equal(ppos.make_batch(rollout_of(far), far.advantage, far.target, ppo).advantage, known)
    by_hand = eqx.tree_at(lambda b: b.advantage, far, jnp.asarray((known - known.mean()) / (known.std() + 1e-8)))
    assert float(ppos.loss(STUDENT, far, ppo)[0]) == pytest.approx(
        float(ppos.loss(STUDENT, by_hand, PPO())[0]), abs=1e-6
    )


def rollout_of(batch: Batch) -> Rollout:
    none, no = jnp.zeros_like(batch.value), jnp.zeros(batch.value.shape, bool)
    return Rollout(none, none, batch.log_prob, batch.value, None, none, no, no, no, jnp.zeros(no.shape, jnp.int32))


@pytest.fixture(scope="module")
def dense():
    return StudentConfig(memory=False, hidden=8, head=4).build(Flatten(3), Discrete(2), key=jax.random.key(0))


def random_batch(student, steps=6, slots=4):
    keys = jax.random.split(jax.random.key(3), 5)
    obs = jax.random.normal(keys[0], (steps, slots, 3))
    start = jnp.zeros((steps, slots), bool)
    policy, value = student.evaluate(obs, start)
    action = policy.sample(jax.random.gumbel(keys[1], (steps, slots, 2)))
    advantage, target = (jax.random.normal(k, (steps, slots)) for k in keys[2:4])
    return Batch(obs, action, start, policy.log_prob(action), value, advantage, target)


def test_one_epoch_of_one_minibatch_is_one_clipped_adam_step(dense):
    ppo = PPO(epochs=1, learning_rate=1e-2, max_grad_norm=0.1)
    batch = random_batch(dense)
    learner, metrics = ppos.update(jax.random.key(0), ppo.begin(jax.random.key(0), dense), batch, ppo)
    grads = jax.grad(lambda s: ppos.loss(s, batch, ppo)[0])(dense)
    norm = np.sqrt(sum(float((g**2).sum()) for g in jax.tree.leaves(grads)))
    assert norm > 0.1, "the batch must make the clip matter"
    assert float(metrics["grad_norm"]) == pytest.approx(norm, rel=1e-5)
    for old, new, g in zip(*map(jax.tree.leaves, (dense, learner.student, grads)), strict=True):
        small = np.asarray(g) * 0.1 / norm
        # Adam's first step: m̂ = g, √v̂ = |g| of the scaled-down gradient.
        assert np.allclose(new, np.asarray(old) - 1e-2 * small / (np.abs(small) + 1e-5), atol=1e-6)


def test_the_step_size_falls_in_a_straight_line_to_nothing(dense):
    """Update u is made with α·(1 − u/decay): in the end, and after it, nothing is learnt any more."""
    ppo, constant = (PPO(epochs=2, minibatches=2, learning_rate=1e-2, decay=n) for n in (4, 0))
    batch = random_batch(dense)
    learner, sizes = ppo.begin(jax.random.key(0), dense), []
    for u in range(6):
        sizes.append(float(ppo.step_size(learner.optimiser[1][0].count)))
        before = learner.student
        learner, _ = ppos.update(jax.random.key(u), learner, batch, ppo)
        moved = any(
            not np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (before, learner.student)), strict=True)
        )
        assert moved == (u < 4)
    assert np.allclose(sizes, 1e-2 * np.array([1.0, 0.75, 0.5, 0.25, 0.0, 0.0]))
    first, plain = (
        ppos.update(jax.random.key(0), p.begin(jax.random.key(0), dense), batch, p)[0].student for p in (ppo, constant)
    )
    for a, b in zip(*map(jax.tree.leaves, (first, plain)), strict=True):
        assert np.allclose(a, b, atol=1e-7), "the first update is made with the whole step size"


@pytest.mark.parametrize("memory", [False, True])
def test_policy_gradients_of_slots_are_those_of_each_slot_by_itself(memory):
    """As the gradient of PPO's own loss of a batch of one slot, where the student is still the one that played."""
    student = StudentConfig(memory=memory, hidden=8, head=4).build(Flatten(3), Discrete(2), key=jax.random.key(0))
    batch = random_batch(student)
    r = eqx.tree_at(lambda r: (r.obs, r.action), rollout_of(batch), (batch.obs, batch.action))
    found = ppos.policy_gradient_norm(student, r, batch.advantage)
    normal = ppos.make_batch(r, batch.advantage, batch.target, PPO()).advantage
    for p in range(4):
        alone = jax.tree.map(lambda x, p=p: x[:, p : p + 1], eqx.tree_at(lambda b: b.advantage, batch, normal))
        grads = jax.grad(lambda s, alone=alone: ppos.loss(s, alone, PPO(value_coef=0.0))[0])(student)
        norm = sum(float((g**2).sum()) for g in jax.tree.leaves(grads))
        assert float(found[p]) == pytest.approx(norm, rel=1e-4)


def test_minibatches_visit_every_step_once(dense):
    # Where the step size vanishes, the mean over minibatches of the loss's parts is that of the whole batch.
    batch = random_batch(dense)
    ppo = PPO(epochs=1, minibatches=4, learning_rate=1e-12)
    _, split = ppos.update(jax.random.key(0), ppo.begin(jax.random.key(0), dense), batch, ppo)
    _, whole = ppos.loss(dense, batch, ppo)
    for name in ("policy_loss", "value_loss", "entropy"):
        assert float(split[name]) == pytest.approx(float(whole[name]), abs=1e-5)


def test_uneven_minibatches_are_refused(dense):
    with pytest.raises(ValueError, match="does not divide"):
        ppos.check_minibatches(PPO(minibatches=5), dense, 6, 4)
    recurrent = StudentConfig(hidden=8, head=4).build(Flatten(3), Discrete(2), key=jax.random.key(0))
    with pytest.raises(ValueError, match="4 slots"):
        ppos.check_minibatches(PPO(minibatches=3), recurrent, 6, 4)


def test_the_maze_student_has_the_papers_number_of_parameters():
    from tutelage.runs.presets import preset

    student = jax.eval_shape(preset("maze", "accel").classroom().new_student, jax.random.key(0))
    assert sum(x.size for x in jax.tree.leaves(student)) == 433_953


@pytest.mark.parametrize("normalise", ["rollout", "minibatch"])
def test_of_steps_that_do_not_count_nothing_is_learned(dense, normalise):
    """The same loss and gradient as from a batch that never had them; a student without memory."""
    ppo = PPO(normalise=normalise, entropy_coef=0.1)
    batch = random_batch(dense)
    counts = jnp.arange(6)[:, None] < jnp.array([[4, 4, 4, 4]])
    few = jax.tree.map(lambda x: x[:4], batch)
    losses = []
    for b, given in ((batch, counts), (few, None)):
        made = ppos.make_batch(rollout_of(b), b.advantage, b.target, ppo, given)
        chosen = replace(b, advantage=made.advantage, counts=given)
        losses.append(jax.value_and_grad(lambda s, chosen=chosen: ppos.loss(s, chosen, ppo)[0])(dense))
    for a, b in zip(*map(jax.tree.leaves, losses), strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_another_student_is_imitated_by_the_divergence_from_its_policy():
    """Its probabilities are 0.6 and 0.4 where the student's are 0.2 and 0.8."""
    other = Categorical(jnp.broadcast_to(jnp.log(jnp.array([0.6, 0.4])), (2, 1, 2)))
    ppo = PPO(imitation_coef=0.5)
    more = ppos.loss(STUDENT, replace(BATCH, imitated=other), ppo)[0] - ppos.loss(STUDENT, BATCH, ppo)[0]
    assert float(more) == pytest.approx(0.5 * (0.6 * np.log(0.6 / 0.2) + 0.4 * np.log(0.4 / 0.8)), abs=1e-6)
