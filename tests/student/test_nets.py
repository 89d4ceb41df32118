"""What a student's options change, and that they change nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from scipy.stats import kstest

from tutelage.env import Box, Discrete
from tutelage.student import ppo as ppos
from tutelage.student.nets import Flatten, StudentConfig
from tutelage.student.ppo import PPO, Batch

STEPS, SLOTS, SEEN = 6, 4, 5


def products(config: StudentConfig, actions) -> list[str]:
    """The precision of every matrix product of a step, and of a loss with its gradient."""
    student = config.build(Flatten(SEEN), actions, key=random.key(0))
    x, ones = jnp.zeros((STEPS, SLOTS, SEEN)), jnp.ones((STEPS, SLOTS))
    action = jnp.zeros((STEPS, SLOTS, actions.size)) if isinstance(actions, Box) else jnp.zeros((STEPS, SLOTS), int)
    batch = Batch(x, action, ones > 0, ones, ones, ones, ones)
    step = jax.make_jaxpr(lambda s: s.act(s.memory(SLOTS), x[0], ones[0] > 0)[2])(student)
    learn = jax.make_jaxpr(jax.grad(lambda s: ppos.loss(s, batch, PPO())[0]))(student)
    return [str(e.params["precision"]) for jaxpr in (step, learn) for e in equations(jaxpr.jaxpr)]


def equations(jaxpr):
    """The matrix products of a program and of all programs within it."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
            if hasattr(inner, "jaxpr") or hasattr(inner, "eqns"):
                yield from equations(getattr(inner, "jaxpr", inner))


@pytest.mark.parametrize(
    ("actions", "settings"),
    [
        (Discrete(3), {}),
        (Discrete(3), {"cell": "gru"}),
        (Discrete(3), {"cell": "s5"}),
        (Discrete(3), {"memory": False}),
        (Box(2), {"memory": False, "separate": True}),
    ],
    ids=["memory", "gru", "s5", "dense", "separate"],
)
def test_full_products_are_all_full(actions, settings):
    """In acting, in the loss, and in its gradient through time."""
    plain = products(StudentConfig(hidden=8, **settings), actions)
    full = products(StudentConfig(hidden=8, products="float32", **settings), actions)
    assert len(full) == len(plain) > 8
    assert set(plain) == {"None"}
    assert all("HIGHEST" in precision for precision in full)


def test_full_products_are_the_same_numbers_on_a_cpu():
    """Which knows no other precision; and the networks begin alike."""
    student, full = (
        StudentConfig(hidden=8, products=p).build(Flatten(SEEN), Discrete(3), key=random.key(0))
        for p in ("default", "float32")
    )
    x = random.normal(random.key(1), (STEPS, SLOTS, SEEN))
    start = jnp.zeros((STEPS, SLOTS), bool)
    assert jax.tree.all(jax.tree.map(jnp.array_equal, jax.tree.leaves(student), jax.tree.leaves(full)))
    np.testing.assert_array_equal(student.evaluate(x, start)[1], full.evaluate(x, start)[1])


def test_a_critic_that_starts_as_pytorchs_do():
    """Weight and bias uniform in ±1/√256, all else as it was."""

    def heads(critic):
        config = StudentConfig(hidden=256, head=0, critic=critic)
        return jax.vmap(lambda key: config.build(Flatten(SEEN), Discrete(3), key=key))(random.split(random.key(0), 40))

    usual, other = heads("orthogonal"), heads("uniform")
    numbers = np.concatenate([np.ravel(other.critic.weight), np.ravel(other.critic.bias)])
    assert kstest(numbers * 16, "uniform", args=(-1, 2)).pvalue > 1e-3
    np.testing.assert_allclose(np.linalg.norm(usual.critic.weight, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(usual.actor.weight, other.actor.weight)
    np.testing.assert_array_equal(usual.core.weight_h, other.core.weight_h)


def test_such_a_critic_has_one_layer():
    with pytest.raises(ValueError, match="of one layer"):
        StudentConfig(critic="uniform")
