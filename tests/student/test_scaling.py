import jax
import jax.numpy as jnp
import numpy as np

from tutelage.env import Box
from tutelage.student import ppo as ppos
from tutelage.student.nets import Flatten, StudentConfig
from tutelage.student.scaling import Scale


def step_by_step(mean, var, count, rewards, starts):
    """The plain loop: one step's returns at a time."""
    returns, out = np.zeros(rewards.shape[1]), []
    for reward, start in zip(rewards, starts, strict=True):
        returns = np.where(start, 0.0, 0.99 * returns) + reward
        n, apart = len(returns), returns.mean() - mean
        total = var * count + returns.var() * n + apart**2 * count * n / (count + n)
        mean, count = mean + apart * n / (count + n), count + n
        var = total / count
        out.append(np.clip(reward / np.sqrt(var + 1e-8), -10, 10))
    return (mean, var, count), np.array(out)


def test_two_rollouts_equal_a_loop_over_their_steps():
    rng = np.random.default_rng(0)
    scale, plain = Scale.new(), (0.0, 1.0, 1e-4)
    for size in (0.3, 40.0):
        rewards = (rng.normal(size=(50, 6)) * size + 1).astype(np.float32)
        starts = rng.random((50, 6)) < 0.1
        starts[0] = True
        scale, got = scale.observe(jnp.asarray(rewards), jnp.asarray(starts))
        plain, want = step_by_step(*plain, rewards.astype(float), starts)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose([scale.mean, scale.std**2, scale.count], plain, rtol=1e-4)


def test_huge_rewards_are_clipped():
    reward = jnp.ones((5, 4)).at[-1, 0].set(1e6)
    _, got = Scale.new().observe(reward, jnp.ones((5, 4), bool))
    assert float(jnp.abs(got).max()) <= 10.0


def test_actor_and_critic_share_nothing_when_separate():
    config = StudentConfig(memory=False, hidden=8, separate=True)
    student = config.build(Flatten(3), Box(2), key=jax.random.key(0))
    obs, start = jnp.ones((4, 5, 3)), jnp.zeros((4, 5), bool)

    def value(student):
        return student.evaluate(obs, start)[1].sum()

    grads = jax.grad(value)(student)
    assert all(not g.any() for g in jax.tree.leaves(grads.actor))
    assert all(g.any() for g in jax.tree.leaves(grads.critic))
    policy, _ = student.evaluate(obs, start)
    assert policy.mean.shape == (4, 5, 2)
    np.testing.assert_array_equal(policy.log_std, np.zeros((4, 5, 2)))


def test_the_scale_is_part_of_the_learner_only_where_returns_are_normalised():
    student = StudentConfig(memory=False, hidden=8, separate=True).build(Flatten(3), Box(2), key=jax.random.key(0))
    assert ppos.PPO().begin(jax.random.key(0), student).scale is None
    assert isinstance(ppos.PPO(normalise_returns=True).begin(jax.random.key(0), student).scale, Scale)
