"""An LSTM whose unrolled backward pass does only what is sequential inside its loop.

Differentiating a scan adds the weight gradient up step by step, a large matrix product each time, and stores every
gate. Here the forward loop stores the states alone, from which all gates follow at once; the backward loop propagates
dL/dz alone, and the weight gradient is one product over all steps after it.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from tutelage.student.recurrence import before_each, emptied, loop_unroll, matmul_precision


class Carry(NamedTuple):
    """Hidden and cell state."""

    h: Float[Array, "P H"]
    c: Float[Array, "P H"]


class LSTM(eqx.Module):
    """z = x·Wx + bx + h·Wh + bh, split into i, f, g, o; c' = σ(f)c + σ(i)tanh(g); h' = σ(o)tanh(c').

    Each weight matrix starts orthogonal as a whole, both biases at zero.
    """

    weight_x: Float[Array, "in gates"]
    weight_h: Float[Array, "H gates"]
    bias_x: Float[Array, " gates"]
    bias_h: Float[Array, " gates"]
    remembers: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, *, key: Key[Array, ""]):
        orthogonal = jax.nn.initializers.orthogonal()
        key_x, key_h = jax.random.split(key)
        self.weight_x = orthogonal(key_x, (inputs, 4 * hidden))
        self.weight_h = orthogonal(key_h, (hidden, 4 * hidden))
        self.bias_x = jnp.zeros(4 * hidden)
        self.bias_h = jnp.zeros(4 * hidden)

    @property
    def size(self) -> int:
        """The length of the hidden state."""
        return self.weight_h.shape[0]

    def zeros(self, slots: int) -> Carry:
        """The state at the start of an episode."""
        return Carry(jnp.zeros((slots, self.size)), jnp.zeros((slots, self.size)))

    def step(
        self, carry: Carry, x: Float[Array, "P in"], start: Bool[Array, " P"]
    ) -> tuple[Carry, Float[Array, "P H"]]:
        """One step of every slot; the state is zeroed where an episode starts."""
        carry = emptied(carry, start)
        z = x @ self.weight_x + carry.h @ self.weight_h + (self.bias_x + self.bias_h)
        after = _cell(z, carry.c)
        return after, after.h

    def unroll(self, x: Float[Array, "T P in"], start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
        """`step` over T steps from a zero state."""
        z = x @ self.weight_x + (self.bias_x + self.bias_h)
        return _unroll(matmul_precision(), self.weight_h, z, start)


class _Gates(NamedTuple):
    """The gates after their nonlinearities."""

    i: Array
    f: Array
    g: Array
    o: Array


def _gates(z: Float[Array, "*batch gates"]) -> _Gates:
    i, f, g, o = jnp.split(z, 4, axis=-1)
    return _Gates(jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o))


def _cell(z: Float[Array, "P gates"], c: Float[Array, "P H"]) -> Carry:
    i, f, g, o = _gates(z)
    c = f * c + i * g
    return Carry(o * jnp.tanh(c), c)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _unroll(
    precision: str | None, weight_h: Array, z: Float[Array, "T P gates"], start: Bool[Array, "T P"]
) -> Float[Array, "T P H"]:
    return _unroll_forward(precision, weight_h, z, start)[0]


def _unroll_forward(precision: str | None, weight_h: Array, z: Array, start: Array):
    def step(carry: Carry, inputs):
        z, start = inputs
        before = emptied(carry, start)
        after = _cell(z + jnp.matmul(before.h, weight_h, precision=precision), before.c)
        return after, after

    slots, hidden = z.shape[1], weight_h.shape[0]
    zeros = jnp.zeros((slots, hidden), z.dtype)
    _, states = lax.scan(step, Carry(zeros, zeros), (z, start), unroll=loop_unroll())
    return states.h, (weight_h, z, start, states)


def _unroll_backward(precision: str | None, residuals, dh_out: Float[Array, "T P H"]):
    """Backward through c' = f·c + i·g, h' = o·tanh(c'), with everything the states tell computed for all steps at once.

    With q = dL/dc': dz = (q·a_i, q·a_f, q·a_g, dh·a_o), where a_x collects the factors of each gate.
    """
    weight_h, z, start, states = residuals
    before = jax.tree.map(lambda s: before_each(s, start), states)
    i, f, g, o = _gates(z + jnp.matmul(before.h, weight_h, precision=precision))
    tanh_c = jnp.tanh(states.c)
    factors = jnp.concatenate([g * i * (1 - i), before.c * f * (1 - f), i * (1 - g**2), tanh_c * o * (1 - o)], axis=-1)
    to_c = o * (1 - tanh_c**2)
    keep = jnp.where(start[..., None], 0.0, f)

    def step(carry: Carry, inputs):
        dh_out, start, factors, to_c, keep = inputs
        dh = carry.h + dh_out
        dc = carry.c + dh * to_c
        dz = jnp.concatenate([dc, dc, dc, dh], axis=-1) * factors
        dh_before = jnp.where(start[:, None], 0.0, jnp.matmul(dz, weight_h.T, precision=precision))
        return Carry(dh_before, dc * keep), dz

    zeros = jnp.zeros_like(dh_out[0])
    inputs = (dh_out, start, factors, to_c, keep)
    _, dz = lax.scan(step, Carry(zeros, zeros), inputs, reverse=True, unroll=loop_unroll())
    return jnp.einsum("tph,tpg->hg", before.h, dz, precision=precision), dz, None


_unroll.defvjp(_unroll_forward, _unroll_backward)
