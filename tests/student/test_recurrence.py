"""GRU, S5 and transformer against slow references in NumPy; every memory's unrolled gradients against stepwise ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import erf

import tutelage as tut
from toys import tiny_maze
from tutelage.student.gru import GRU
from tutelage.student.s5 import S5, Layer, ages, hippo, recurrence
from tutelage.student.transformer import HEADS, Transformer

STEPS, SLOTS, INPUTS, HIDDEN, WINDOW = 11, 3, 5, 8, 4
MEMORIES = {
    "gru": lambda key: GRU(INPUTS, HIDDEN, key=key),
    "s5": lambda key: S5(INPUTS, HIDDEN, 2, key=key),
    "transformer": lambda key: Transformer(INPUTS, HIDDEN, 2, WINDOW, key=key),
}


@pytest.fixture(scope="module", params=MEMORIES)
def make(request):
    return MEMORIES[request.param]


@pytest.fixture(scope="module")
def problem():
    x = jax.random.normal(jax.random.key(1), (STEPS, SLOTS, INPUTS))
    start = jax.random.bernoulli(jax.random.key(2), 0.2, (STEPS, SLOTS))
    weight = jax.random.normal(jax.random.key(3), (STEPS, SLOTS, HIDDEN))
    assert start[1:].any()
    return x, start, weight


def shaken(module, key):
    """With weights of which none is zero or alike."""
    leaves, structure = jax.tree.flatten(module)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([x + 0.3 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys, strict=True)])


def step_by_step(memory, x, start):
    """The plain reference: one `step` after another, differentiated by JAX."""

    def one(state, inputs):
        return memory.step(state, *inputs)

    return jax.lax.scan(one, memory.zeros(SLOTS), (x, start))[1]


def test_unrolled_values_and_gradients_of_several_seeds_equal_the_step_by_step_ones_of_each(make, problem):
    x, start, weight = problem

    def judged(play):
        return jax.value_and_grad(lambda m, x: (play(m, x, start) * weight).sum(), argnums=(0, 1))

    memories = [shaken(make(key), key) for key in jax.random.split(jax.random.key(0), 2)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *memories)
    together = jax.jit(jax.vmap(judged(lambda m, x, start: m.unroll(x, start)), (0, None)))(stacked, x)
    one_by_one = jax.jit(judged(step_by_step))
    for n, memory in enumerate(memories):
        for a, b in zip(jax.tree.leaves(one_by_one(memory, x)), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(a, b[n], rtol=2e-5, atol=2e-5)


def test_memory_is_empty_where_an_episode_starts(make, problem):
    memory, (x, *_) = shaken(make(jax.random.key(0)), jax.random.key(9)), problem
    full = jax.tree.map(lambda s: s + 1, memory.zeros(SLOTS))
    _, fresh = memory.step(memory.zeros(SLOTS), x[0], jnp.ones(SLOTS, bool))
    _, after = memory.step(full, x[0], jnp.array([True, False, True]))
    np.testing.assert_array_equal(after[jnp.array([0, 2])], fresh[jnp.array([0, 2])])
    assert not np.allclose(after[1], fresh[1], atol=1e-3)


def test_a_step_of_the_gru_is_the_textbook_cell(problem):
    gru, (x, *_) = shaken(GRU(INPUTS, HIDDEN, key=jax.random.key(0)), jax.random.key(9)), problem
    h = np.random.default_rng(0).normal(size=(SLOTS, HIDDEN))
    a = np.asarray(x[0], float) @ np.asarray(gru.weight_x, float) + np.asarray(gru.bias_x)
    q = h @ np.asarray(gru.weight_h, float)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    r, u = sigmoid(a[:, :HIDDEN] + q[:, :HIDDEN]), sigmoid(a[:, HIDDEN : 2 * HIDDEN] + q[:, HIDDEN : 2 * HIDDEN])
    n = np.tanh(a[:, 2 * HIDDEN :] + r * (q[:, 2 * HIDDEN :] + np.asarray(gru.bias_h)))
    _, got = gru.step(jnp.asarray(h, jnp.float32), x[0], jnp.zeros(SLOTS, bool))
    np.testing.assert_allclose(got, (1 - u) * n + u * h, atol=2e-6)


def test_a_layer_of_s5_solves_its_differential_equation():
    """In complex double precision, with the matrix exponential in place of formulas for holding an input."""
    layer = shaken(Layer(HIDDEN, key=jax.random.key(0)), jax.random.key(9))
    n = HIDDEN // 2
    u = np.random.default_rng(0).normal(size=(STEPS, HIDDEN))
    v = (u - u.mean(1, keepdims=True)) / np.sqrt(u.var(1, keepdims=True) + 1e-6) * layer.scale + layer.shift
    values = -np.exp(np.asarray(layer.decay, float)) + 1j * np.asarray(layer.frequency, float)
    into = np.asarray(layer.into, float)
    out = np.asarray(layer.out_of, float)
    pairs = [expm(np.array([[z, 1], [0, 0]]) * dt) for z, dt in zip(values, np.exp(layer.log_step), strict=True)]
    keep, take = np.array([p[0, 0] for p in pairs]), np.array([p[0, 1] for p in pairs])
    state, outputs = np.zeros(n, complex), []
    for t in range(STEPS):
        state = keep * state + take * (v[t] @ (into[:, :n] + 1j * into[:, n:]))
        y = 2 * (state @ ((out[:n] - 1j * out[n:]) / 2)).real + np.asarray(layer.past) * v[t]
        g = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
        assert np.allclose(g, 0.5 * y * (1 + erf(y / np.sqrt(2))), atol=1e-3), "GELU, but for its tanh"
        outputs.append(u[t] + g / (1 + np.exp(-(g @ np.asarray(layer.gate, float) + np.asarray(layer.gate_bias)))))
    start = jnp.zeros((STEPS, 1), bool)
    got = layer.unroll(jnp.asarray(u, jnp.float32)[:, None], ages(start))[:, 0]
    np.testing.assert_allclose(got, np.array(outputs), rtol=1e-4, atol=1e-4)


def test_s5_starts_as_the_normal_part_of_hippo():
    frequencies, real, imaginary = hippo(HIDDEN)
    vectors = np.concatenate([real + 1j * imaginary, real - 1j * imaginary], axis=1)
    values = np.concatenate([-0.5 + 1j * frequencies, -0.5 - 1j * frequencies])
    p = np.sqrt(np.arange(HIDDEN) + 0.5)
    legs = (vectors * values) @ vectors.conj().T - np.outer(p, p)
    n, k = np.indices((HIDDEN, HIDDEN))
    written = np.where(n > k, -np.sqrt((2 * n + 1) * (2 * k + 1)), np.where(n == k, -(n + 1), 0))
    np.testing.assert_allclose(legs, written, atol=1e-12)


def test_a_linear_recurrence_within_episodes():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-0.8, 0.8, 6), rng.normal(size=(37, 2, 6))
    start = rng.random((37, 2)) < 0.1
    state, expected = np.zeros((2, 3), complex), []
    for t in range(37):
        state = np.where(start[t][:, None], 0, state) * (a[:3] + 1j * a[3:]) + b[t, :, :3] + 1j * b[t, :, 3:]
        expected.append(np.concatenate([state.real, state.imag], axis=-1))
    got = recurrence(jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32), ages(jnp.asarray(start)))
    np.testing.assert_allclose(got, np.array(expected), atol=2e-5)


def test_a_transformer_looks_back_on_the_latest_steps_of_its_episode(problem):
    """In double precision, a step, a slot and a head at a time."""
    x, start, _ = problem
    model = shaken(MEMORIES["transformer"](jax.random.key(0)), jax.random.key(9))
    plain = jax.tree.map(lambda leaf: np.asarray(leaf, float), model)
    normalised = lambda v, n: (v - v.mean()) / np.sqrt(v.var() + 1e-6) * n.scale + n.shift  # noqa: E731
    gelu = lambda v: 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))  # noqa: E731

    def look_back(heads, t, first):
        """Each head's mean of values, where `heads[s]` are the queries, keys and values of step s."""
        found = []
        for h in range(HEADS):
            query, width = heads[t][0][h], HIDDEN // HEADS
            logits = [query @ heads[s][1][h] / width**0.5 - (t - s) / 4 ** (h + 1) for s in range(first, t + 1)]
            weights = np.exp(logits) / np.exp(logits).sum()
            found.append(sum(w * heads[s][2][h] for w, s in zip(weights, range(first, t + 1), strict=True)))
        return np.concatenate(found)

    expected = np.zeros((STEPS, SLOTS, HIDDEN))
    for p in range(SLOTS):
        features = list(np.asarray(x[:, p], float) @ plain.entry)
        begins = [max([s for s in range(t + 1) if start[s, p]], default=0) for t in range(STEPS)]
        for layer in plain.layers:
            heads = [(normalised(f, layer.norm) @ layer.into).reshape(3, HEADS, -1) for f in features]
            for t in range(STEPS):
                features[t] = features[t] + look_back(heads, t, max(begins[t], t - WINDOW + 1)) @ layer.out
                wide = gelu(normalised(features[t], layer.norm_wide) @ layer.wide + layer.wide_bias)
                features[t] = features[t] + wide @ layer.narrow
        expected[:, p] = [normalised(f, plain.norm) for f in features]
    np.testing.assert_allclose(eqx.filter_jit(model.unroll)(x, start), expected, atol=2e-4)


def test_a_transformer_begins_as_one_that_remembers_nothing(problem):
    x, start, _ = problem
    model = Transformer(INPUTS, HIDDEN, 2, WINDOW, key=jax.random.key(0))
    unroll = eqx.filter_jit(model.unroll)
    np.testing.assert_array_equal(unroll(x, start), unroll(x, jnp.ones_like(start)))


def test_heads_share_the_features_of_a_transformer():
    with pytest.raises(ValueError, match="must be a multiple of 4, the transformer's heads, not 6"):
        tut.StudentConfig(cell="transformer", hidden=6)


def test_weights_of_the_gru_start_orthogonal_and_biases_zero():
    gru = GRU(INPUTS, HIDDEN, key=jax.random.key(0))
    for weight in (gru.weight_x, gru.weight_h):
        np.testing.assert_allclose(weight @ weight.T, np.eye(len(weight)), atol=1e-5)
    assert not gru.bias_x.any()
    assert not gru.bias_h.any()


def test_s5_has_states_in_pairs():
    with pytest.raises(ValueError, match="must be even for S5"):
        tut.StudentConfig(cell="s5", hidden=7)


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["gru", "s5", "transformer"])
def test_students_with_other_memories_train(cell, tmp_path):
    run = tut.train(tiny_maze(student=tut.StudentConfig(cell=cell, hidden=16, head=8)), tmp_path / "run")
    assert run.metrics()[-1]["updates"] == 6
    assert len(tut.Run(run.path).evaluate("small", episodes=2)) == 6
