"""S5: layers of a linear memory, whose states of all steps are found at once instead of one after another.

Smith, Warrington and Linderman, *Simplified state space layers for sequence modeling*, 2023 (arXiv 2208.04933). That a
memory can be emptied within a sequence is from Lu et al., *Structured state space models for in-context reinforcement
learning*, 2023 (arXiv 2303.03982).

A complex number is a pair here, and a vector of n of them has 2n real entries: all real parts, then all imaginary ones.
So a student is made of real arrays only, and a product with a complex matrix is one product with a real one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.student.recurrence import emptied

SHORTEST, LONGEST = 0.001, 0.1  # the range of Δ at the start


class S5(eqx.Module):
    """Features of the right width, then layers one upon the other."""

    entry: Float[Array, "in H"]
    layers: tuple[Layer, ...]
    remembers: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, layers: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, layers + 1)
        self.entry = jax.nn.initializers.lecun_normal()(keys[0], (inputs, hidden))
        self.layers = tuple(Layer(hidden, key=k) for k in keys[1:])

    def zeros(self, slots: int) -> tuple[Float[Array, "P parts"], ...]:
        """The states of all layers at the start of an episode."""
        return tuple(layer.zeros(slots) for layer in self.layers)

    def step(
        self, states: tuple[Float[Array, "P parts"], ...], x: Float[Array, "P in"], start: Bool[Array, " P"]
    ) -> tuple[tuple[Float[Array, "P parts"], ...], Float[Array, "P H"]]:
        """One step of every slot; the states are zeroed where an episode starts."""
        features, after = x @ self.entry, []
        for layer, state in zip(self.layers, emptied(states, start), strict=True):
            stepped, features = layer.step(state, features)
            after.append(stepped)
        return tuple(after), features

    def unroll(self, x: Float[Array, "T P in"], start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
        """`step` over T steps from zero states."""
        features, age = x @ self.entry, ages(start)
        for layer in self.layers:
            features = layer.unroll(features, age)
        return features


class Layer(eqx.Module):
    """u + g ⊙ σ(g·W + b), where g = GELU(2 Re(C s) + D ⊙ v) and v is u normalised; the memory s goes by

        ds/dt = Λ s + B v,  Λ = −exp(decay) + i·frequency,

    v being held for a time Δ = exp(log_step): s' = Λ̄ s + (Λ̄ − 1)/Λ B v with Λ̄ = exp(Λ Δ).

    Λ, B and C start as those of the HiPPO matrix of 2n states, of whose conjugate pairs one each is kept.
    """

    scale: Float[Array, " H"]
    shift: Float[Array, " H"]
    decay: Float[Array, " n"]
    frequency: Float[Array, " n"]
    log_step: Float[Array, " n"]
    into: Float[Array, "H parts"]  # B
    out_of: Float[Array, "parts H"]  # real parts of 2 C, then −2 times its imaginary parts
    past: Float[Array, " H"]  # D
    gate: Float[Array, "H H"]
    gate_bias: Float[Array, " H"]

    def __init__(self, hidden: int, *, key: Key[Array, ""]):
        frequencies, *vectors = hippo(hidden)
        real, imaginary = (jnp.asarray(x, jnp.float32) for x in vectors)
        key_b, key_c, key_d, key_step, key_gate = jax.random.split(key, 5)
        lecun = jax.nn.initializers.lecun_normal()
        b = jax.random.normal(key_b, (hidden, hidden)) * hidden**-0.5
        c = jax.random.normal(key_c, (2, hidden, hidden)) * (2 * hidden) ** -0.5
        self.scale, self.shift = jnp.ones(hidden), jnp.zeros(hidden)
        self.decay = jnp.full(len(frequencies), np.log(0.5), jnp.float32)
        self.frequency = jnp.asarray(frequencies, jnp.float32)
        self.log_step = jax.random.uniform(key_step, frequencies.shape, minval=np.log(SHORTEST), maxval=np.log(LONGEST))
        self.into = b @ jnp.concatenate([real, -imaginary], axis=1)
        turned = (c[0] @ real - c[1] @ imaginary, c[0] @ imaginary + c[1] @ real)
        self.out_of = 2 * jnp.concatenate([turned[0].T, -turned[1].T])
        self.past = jax.random.normal(key_d, (hidden,))
        self.gate = lecun(key_gate, (hidden, hidden))
        self.gate_bias = jnp.zeros(hidden)

    def zeros(self, slots: int) -> Float[Array, "P parts"]:
        """An empty memory."""
        return jnp.zeros((slots, 2 * self.decay.shape[0]))

    def step(
        self, state: Float[Array, "P parts"], u: Float[Array, "P H"]
    ) -> tuple[Float[Array, "P parts"], Float[Array, "P H"]]:
        """One step of every slot."""
        keep, take = self.discrete()
        v = self.normalised(u)
        state = times(keep, state) + times(take, v @ self.into)
        return state, u + self.seen(state, v)

    def unroll(self, u: Float[Array, "T P H"], age: Int[Array, "T P"]) -> Float[Array, "T P H"]:
        """All steps from an empty memory; `age` counts the steps since the episode's first."""
        keep, take = self.discrete()
        v = self.normalised(u)
        return u + self.seen(recurrence(keep, times(take, v @ self.into), age), v)

    def discrete(self) -> tuple[Float[Array, " parts"], Float[Array, " parts"]]:
        """Λ̄ and (Λ̄ − 1)/Λ."""
        rate, step = -jnp.exp(self.decay), jnp.exp(self.log_step)
        size, angle = rate * step, self.frequency * step
        turn = jnp.exp(size) * jnp.sin(angle)
        keep = jnp.concatenate([jnp.exp(size) * jnp.cos(angle), turn])
        # Λ̄ − 1 without cancellation, where steps are short
        change = jnp.concatenate([jnp.expm1(size) * jnp.cos(angle) - 2 * jnp.sin(angle / 2) ** 2, turn])
        inverse = jnp.concatenate([rate, -self.frequency]) / jnp.tile(rate**2 + self.frequency**2, 2)
        return keep, times(inverse, change)

    def normalised(self, u: Float[Array, "*batch H"]) -> Float[Array, "*batch H"]:
        """Mean 0 and variance 1 over the features, then scaled and shifted."""
        centred = u - u.mean(axis=-1, keepdims=True)
        deviation = jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)
        return centred / deviation * self.scale + self.shift

    def seen(self, state: Float[Array, "*batch parts"], v: Float[Array, "*batch H"]) -> Float[Array, "*batch H"]:
        """What of the memory comes out."""
        g = jax.nn.gelu(state @ self.out_of + self.past * v)
        return g * jax.nn.sigmoid(g @ self.gate + self.gate_bias)


@lru_cache
def hippo(size: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "size n"], Float[np.ndarray, "size n"]]:
    """The positive frequencies of the normal part of the HiPPO-LegS matrix, and its eigenvectors as two real parts.

        A_nk = −√(2n + 1)√(2k + 1) for n > k,  −(n + 1) for n = k,  0 for n < k

    The normal part is A + p pᵀ with p_n = √(n + ½): −½ on the diagonal, and antisymmetric elsewhere. So all eigenvalues
    are −½ ± i·frequency.
    """
    root = np.sqrt(np.arange(size) + 0.5)
    antisymmetric = np.triu(np.outer(root, root), 1) - np.tril(np.outer(root, root), -1)
    frequencies, vectors = np.linalg.eigh(-1j * antisymmetric)
    positive = np.asarray(vectors[:, size // 2 :])
    return frequencies[size // 2 :], np.real(positive), np.imag(positive)


def times(a: Float[Array, " parts"], s: Float[Array, "*batch parts"]) -> Float[Array, "*batch parts"]:
    """The product of complex vectors, entry by entry."""
    (a_re, a_im), (s_re, s_im) = jnp.split(a, 2), jnp.split(s, 2, axis=-1)
    return jnp.concatenate([a_re * s_re - a_im * s_im, a_re * s_im + a_im * s_re], axis=-1)


def conjugate(s: Float[Array, "*batch parts"]) -> Float[Array, "*batch parts"]:
    """Imaginary parts negated."""
    real, imaginary = jnp.split(s, 2, axis=-1)
    return jnp.concatenate([real, -imaginary], axis=-1)


def ages(start: Bool[Array, "T P"]) -> Int[Array, "T P"]:
    """Steps since the first of the episode that each step belongs to; the first of all begins one."""
    step = jnp.arange(start.shape[0], dtype=jnp.int32)[:, None]
    return step - lax.cummax(jnp.where(start, step, 0), axis=0)


@jax.custom_vjp
def recurrence(
    a: Float[Array, " parts"], b: Float[Array, "T P parts"], age: Int[Array, "T P"]
) -> Float[Array, "T P parts"]:
    """s_t = a ⊙ s_{t−1} + b_t from s = 0 at each episode's start, for all steps, in as many passes as T has digits."""
    return _doubled(a, b, age, reverse=False)


def _doubled(a: Array, b: Array, age: Array, *, reverse: bool) -> Array:
    """After pass k, s_t holds what the latest 2ᵏ steps contribute: s_t += a^(2ᵏ) s_{t−2ᵏ}, within the episode.

    In reverse, from the steps after it.
    """
    steps = b.shape[0]

    def double(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        power, s = carry
        far = jnp.asarray(1, jnp.int32) << k
        if reverse:
            other, reached = _shifted(s, far), _shifted(age, far) >= far
        else:
            other, reached = _shifted(s, -far), age >= far
        return times(power, power), s + jnp.where(reached[..., None], times(power, other), 0.0)

    return lax.fori_loop(0, (steps - 1).bit_length(), double, (a, b))[1]


def _shifted(x: Array, by: Array) -> Array:
    """Entry t is x[t + by]; zero beyond the ends."""
    nothing = jnp.zeros_like(x)
    return lax.dynamic_slice_in_dim(jnp.concatenate([nothing, x, nothing]), x.shape[0] + by, x.shape[0])


def _recurrence_forward(a: Array, b: Array, age: Array):
    states = recurrence(a, b, age)
    return states, (a, age, states)


def _recurrence_backward(residuals, ds: Float[Array, "T P parts"]):
    """dL/db_t = ds_t + ā ⊙ dL/db_{t+1} within the episode; dL/da = Σ s̄_{t−1} ⊙ dL/db_t."""
    a, age, states = residuals
    db = _doubled(conjugate(a), ds, age, reverse=True)
    before = jnp.where((age > 0)[..., None], _shifted(states, jnp.asarray(-1, jnp.int32)), 0.0)
    (s_re, s_im), (d_re, d_im) = jnp.split(before, 2, axis=-1), jnp.split(db, 2, axis=-1)
    return jnp.concatenate([s_re * d_re + s_im * d_im, s_re * d_im - s_im * d_re], axis=-1).sum((0, 1)), db, None


recurrence.defvjp(_recurrence_forward, _recurrence_backward)
