"""A GRU whose unrolled backward pass does only what is sequential inside its loop, as the LSTM's.

The forward loop stores the states alone. Backward, all gates follow from them at once, each gate's derivative is dL/dh'
times a factor that needs no loop, and the weight gradient is one product over all steps.
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


class GRU(eqx.Module):
    """a = x·Wx + bx and q = h·Wh, split into r, u, n each; h' = u h + (1 − u) ñ with

        r = σ(a_r + q_r),  u = σ(a_u + q_u),  ñ = tanh(a_n + r (q_n + b_h))

    Each weight matrix starts orthogonal as a whole, both biases at zero.
    """

    weight_x: Float[Array, "in gates"]
    weight_h: Float[Array, "H gates"]
    bias_x: Float[Array, " gates"]
    bias_h: Float[Array, " H"]
    remembers: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, *, key: Key[Array, ""]):
        orthogonal = jax.nn.initializers.orthogonal()
        key_x, key_h = jax.random.split(key)
        self.weight_x = orthogonal(key_x, (inputs, 3 * hidden))
        self.weight_h = orthogonal(key_h, (hidden, 3 * hidden))
        self.bias_x = jnp.zeros(3 * hidden)
        self.bias_h = jnp.zeros(hidden)

    def zeros(self, slots: int) -> Float[Array, "P H"]:
        """The state at the start of an episode."""
        return jnp.zeros((slots, self.weight_h.shape[0]))

    def step(
        self, h: Float[Array, "P H"], x: Float[Array, "P in"], start: Bool[Array, " P"]
    ) -> tuple[Float[Array, "P H"], Float[Array, "P H"]]:
        """One step of every slot; the state is zeroed where an episode starts."""
        h = emptied(h, start)
        after = _after(_gates(x @ self.weight_x + self.bias_x, h @ self.weight_h, self.bias_h), h)
        return after, after

    def unroll(self, x: Float[Array, "T P in"], start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
        """`step` over T steps from a zero state."""
        a = x @ self.weight_x + self.bias_x
        return _unroll(matmul_precision(), self.weight_h, self.bias_h, a, start)


class _Gates(NamedTuple):
    """The gates after their nonlinearities, and what the reset gate lets through, q_n + b_h."""

    r: Array
    u: Array
    n: Array
    through: Array


def _gates(a: Float[Array, "*batch gates"], q: Float[Array, "*batch gates"], bias_h: Float[Array, " H"]) -> _Gates:
    (a_r, a_u, a_n), (q_r, q_u, q_n) = (jnp.split(x, 3, axis=-1) for x in (a, q))
    r, through = jax.nn.sigmoid(a_r + q_r), q_n + bias_h
    return _Gates(r, jax.nn.sigmoid(a_u + q_u), jnp.tanh(a_n + r * through), through)


def _after(gates: _Gates, h: Float[Array, "P H"]) -> Float[Array, "P H"]:
    return gates.n + gates.u * (h - gates.n)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _unroll(
    precision: str | None, weight_h: Array, bias_h: Array, a: Float[Array, "T P gates"], start: Bool[Array, "T P"]
) -> Float[Array, "T P H"]:
    return _unroll_forward(precision, weight_h, bias_h, a, start)[0]


def _unroll_forward(precision: str | None, weight_h: Array, bias_h: Array, a: Array, start: Array):
    def step(h: Array, inputs):
        a, start = inputs
        h = emptied(h, start)
        after = _after(_gates(a, jnp.matmul(h, weight_h, precision=precision), bias_h), h)
        return after, after

    zeros = jnp.zeros((a.shape[1], weight_h.shape[0]), a.dtype)
    _, states = lax.scan(step, zeros, (a, start), unroll=loop_unroll())
    return states, (weight_h, bias_h, a, start, states)


def _unroll_backward(precision: str | None, residuals, dh_out: Float[Array, "T P H"]):
    """Backward through h' = u h + (1 − u) ñ: with q = dL/dh', the derivative of each gate is q times a known factor.

    dq_r = da_r, dq_u = da_u, dq_n = r · da_n; da_n = q (1 − u)(1 − ñ²), da_r = da_n (q_n + b_h) r (1 − r),
    da_u = q (h − ñ) u (1 − u).
    """
    weight_h, bias_h, a, start, states = residuals
    before = before_each(states, start)
    r, u, n, through = _gates(a, jnp.matmul(before, weight_h, precision=precision), bias_h)
    to_n = (1 - u) * (1 - n**2)
    to_gates = jnp.concatenate([to_n * through * r * (1 - r), (before - n) * u * (1 - u)], axis=-1)
    factors = jnp.concatenate([to_gates, to_n * r], axis=-1)
    keep = jnp.where(start[..., None], 0.0, u)

    def step(dh: Array, inputs):
        dh_out, start, factors, keep = inputs
        dh = dh + dh_out
        dq = jnp.concatenate([dh, dh, dh], axis=-1) * factors
        through_gates = emptied(jnp.matmul(dq, weight_h.T, precision=precision), start)
        return through_gates + dh * keep, (dh, dq)

    inputs = (dh_out, start, factors, keep)
    _, (dh, dq) = lax.scan(step, jnp.zeros_like(dh_out[0]), inputs, reverse=True, unroll=loop_unroll())
    dq_n = dq[..., -dh.shape[-1] :]
    da = jnp.concatenate([dq[..., : -dh.shape[-1]], dh * to_n], axis=-1)
    return jnp.einsum("tph,tpg->hg", before, dq, precision=precision), dq_n.sum((0, 1)), da, None


_unroll.defvjp(_unroll_forward, _unroll_backward)
