import jax
import jax.numpy as jnp
import pytest

from tutelage.student.lstm import LSTM

STEPS, SLOTS, INPUTS, HIDDEN = 12, 3, 5, 8


@pytest.fixture(scope="module")
def problem():
    lstm = LSTM(INPUTS, HIDDEN, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (STEPS, SLOTS, INPUTS))
    start = jax.random.bernoulli(jax.random.key(2), 0.2, (STEPS, SLOTS))
    weight = jax.random.normal(jax.random.key(3), (STEPS, SLOTS, HIDDEN))
    return lstm, x, start, weight


def step_by_step(lstm, x, start):
    """The plain reference: one `step` after another, differentiated by JAX."""
    carry, out = lstm.zeros(SLOTS), []
    for t in range(STEPS):
        carry, h = lstm.step(carry, x[t], start[t])
        out.append(h)
    return jnp.stack(out)


def test_one_step_is_the_textbook_cell(problem):
    lstm, x, _, _ = problem
    carry = lstm.zeros(SLOTS)._replace(h=jnp.full((SLOTS, HIDDEN), 0.3), c=jnp.full((SLOTS, HIDDEN), -0.4))
    after, h = lstm.step(carry, x[0], jnp.zeros(SLOTS, bool))
    z = x[0] @ lstm.weight_x + carry.h @ lstm.weight_h + lstm.bias_x + lstm.bias_h
    i, f, g, o = (z[:, n * HIDDEN : (n + 1) * HIDDEN] for n in range(4))
    sigmoid = lambda v: 1 / (1 + jnp.exp(-v))  # noqa: E731
    c = sigmoid(f) * carry.c + sigmoid(i) * jnp.tanh(g)
    assert jnp.allclose(after.c, c, atol=1e-6)
    assert jnp.allclose(h, sigmoid(o) * jnp.tanh(c), atol=1e-6)


def test_memory_is_empty_where_an_episode_starts(problem):
    lstm, x, _, _ = problem
    full = lstm.zeros(SLOTS)._replace(h=jnp.ones((SLOTS, HIDDEN)), c=jnp.ones((SLOTS, HIDDEN)))
    start = jnp.array([True, False, True])
    _, fresh = lstm.step(lstm.zeros(SLOTS), x[0], start)
    _, h = lstm.step(full, x[0], start)
    assert jnp.array_equal(h[0], fresh[0])
    assert jnp.array_equal(h[2], fresh[2])
    assert not jnp.allclose(h[1], fresh[1])


def test_unrolled_value_and_gradients_equal_the_step_by_step_ones(problem):
    lstm, x, start, weight = problem

    def plain(lstm, x):
        return (step_by_step(lstm, x, start) * weight).sum()

    def fast(lstm, x):
        return (lstm.unroll(x, start) * weight).sum()

    expected = jax.value_and_grad(plain, argnums=(0, 1))(lstm, x)
    got = jax.jit(jax.value_and_grad(fast, argnums=(0, 1)))(lstm, x)
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(got), strict=True):
        assert jnp.allclose(a, b, atol=2e-6)


def test_gradients_are_the_same_for_many_seeds_at_once(problem):
    _, x, start, weight = problem
    lstms = jax.vmap(lambda k: LSTM(INPUTS, HIDDEN, key=k))(jax.random.split(jax.random.key(7), 3))

    def loss(lstm):
        return (lstm.unroll(x, start) * weight).sum()

    together = jax.vmap(jax.grad(loss))(lstms)
    alone = jax.grad(loss)(jax.tree.map(lambda p: p[1], lstms))
    for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
        assert jnp.allclose(a, b[1], atol=2e-6)


def test_initial_weights_are_orthogonal_and_biases_zero():
    lstm = LSTM(INPUTS, HIDDEN, key=jax.random.key(0))
    assert jnp.allclose(lstm.weight_x @ lstm.weight_x.T, jnp.eye(INPUTS), atol=1e-5)
    assert jnp.allclose(lstm.weight_h @ lstm.weight_h.T, jnp.eye(HIDDEN), atol=1e-5)
    assert not lstm.bias_x.any()
    assert not lstm.bias_h.any()
