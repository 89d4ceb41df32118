"""A transformer over the latest steps of an episode: each layer looks back on what it knew at each of them.

Vaswani et al., *Attention is all you need*, 2017 (arXiv 1706.03762). Layers normalise before they act and pass features
on unchanged at the start, as Parisotto et al., *Stabilizing transformers for reinforcement learning*, 2020 (arXiv
1910.06764), found that learning by rewards needs; here their last products start at zero. How long ago a step was is
told by a penalty that grows with it, as in Press et al., *Train short, test long*, 2022 (arXiv 2108.12409).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.student.recurrence import emptied

HEADS = 4
WIDER = 2  # times as many hidden units as features


class Seen(NamedTuple):
    """What a layer remembers of the latest steps, the newest last, and which of them there were in this episode."""

    keys: Float[Array, "P window H"]
    values: Float[Array, "P window H"]
    there: Float[Array, "P window"]


class Transformer(eqx.Module):
    """Features of the right width, then layers one upon the other, then a normalisation."""

    entry: Float[Array, "in H"]
    layers: tuple[Layer, ...]
    norm: Norm
    window: int = eqx.field(static=True)
    remembers: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, layers: int, window: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, layers + 1)
        self.entry = jax.nn.initializers.lecun_normal()(keys[0], (inputs, hidden))
        self.layers = tuple(Layer(hidden, key=k) for k in keys[1:])
        self.norm = Norm(hidden)
        self.window = window

    def zeros(self, slots: int) -> tuple[Seen, ...]:
        """Nothing seen: the memories of all layers at the start of an episode."""
        nothing = jnp.zeros((slots, self.window, self.entry.shape[1]))
        return tuple(Seen(nothing, nothing, nothing[..., 0]) for _ in self.layers)

    def step(
        self, memories: tuple[Seen, ...], x: Float[Array, "P in"], start: Bool[Array, " P"]
    ) -> tuple[tuple[Seen, ...], Float[Array, "P H"]]:
        """One step of every slot; the memories are emptied where an episode starts."""
        features, after = x @ self.entry, []
        for layer, seen in zip(self.layers, emptied(memories, start), strict=True):
            now, features = layer.step(seen, features)
            after.append(now)
        return tuple(after), self.norm(features)

    def unroll(self, x: Float[Array, "T P in"], start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
        """`step` over T steps from empty memories."""
        features = jnp.swapaxes(x @ self.entry, 0, 1)
        ago = jnp.arange(len(x))[:, None] - jnp.arange(len(x))  # [T, T]
        episode = jnp.cumsum(start, axis=0).T  # [P, T]
        looked_at = (ago >= 0) & (ago < self.window) & (episode[:, :, None] == episode[:, None, :])
        for layer in self.layers:
            features = layer(features, looked_at, ago)
        return jnp.swapaxes(self.norm(features), 0, 1)


class Layer(eqx.Module):
    """x + A(norm(x))·W_o, then x + GELU(norm(x)·W_1 + b_1)·W_2, where A is attention: of each head h

        Σ_s softmax_s(q_t·k_s / √d − 4⁻ʰ (t − s)) v_s,  h = 1, …, 4,

    over the steps s that step t looks back on, itself among them.
    """

    norm: Norm
    into: Float[Array, "H three"]  # queries, keys and values
    out: Float[Array, "H H"]
    norm_wide: Norm
    wide: Float[Array, "H wide"]
    wide_bias: Float[Array, " wide"]
    narrow: Float[Array, "wide H"]

    def __init__(self, hidden: int, *, key: Key[Array, ""]):
        lecun = jax.nn.initializers.lecun_normal()
        key_into, key_wide = jax.random.split(key)
        self.norm, self.norm_wide = Norm(hidden), Norm(hidden)
        self.into = lecun(key_into, (hidden, 3 * hidden))
        self.out = jnp.zeros((hidden, hidden))
        self.wide = lecun(key_wide, (hidden, WIDER * hidden))
        self.wide_bias = jnp.zeros(WIDER * hidden)
        self.narrow = jnp.zeros((WIDER * hidden, hidden))

    def step(self, seen: Seen, x: Float[Array, "P H"]) -> tuple[Seen, Float[Array, "P H"]]:
        """One step of every slot: the oldest step is forgotten for it."""
        query, *new = jnp.split(self.norm(x) @ self.into, 3, axis=-1)
        one = jnp.ones_like(seen.there[:, 0])
        parts = zip(seen, (*new, one), strict=True)
        seen = Seen(*(jnp.concatenate([old[:, 1:], part[:, None]], axis=1) for old, part in parts))
        ago = jnp.arange(seen.there.shape[1])[::-1]
        found = attention(query[:, None], seen.keys, seen.values, seen.there[:, None] > 0, ago[None])
        return seen, self._rest(x, found[:, 0])

    def __call__(
        self, x: Float[Array, "P T H"], looked_at: Bool[Array, "P T T"], ago: Int[Array, "T T"]
    ) -> Float[Array, "P T H"]:
        """All steps at once."""
        query, keys, values = jnp.split(self.norm(x) @ self.into, 3, axis=-1)
        return self._rest(x, attention(query, keys, values, looked_at, ago))

    def _rest(self, x: Float[Array, "*batch H"], found: Float[Array, "*batch H"]) -> Float[Array, "*batch H"]:
        x = x + found @ self.out
        return x + jax.nn.gelu(self.norm_wide(x) @ self.wide + self.wide_bias) @ self.narrow


class Norm(eqx.Module):
    """Mean 0 and variance 1 over the features, then scaled and shifted."""

    scale: Float[Array, " H"]
    shift: Float[Array, " H"]

    def __init__(self, hidden: int):
        self.scale, self.shift = jnp.ones(hidden), jnp.zeros(hidden)

    def __call__(self, x: Float[Array, "*batch H"]) -> Float[Array, "*batch H"]:
        return jax.nn.standardize(x, axis=-1, epsilon=1e-6) * self.scale + self.shift


def attention(
    query: Float[Array, "P T H"],
    keys: Float[Array, "P S H"],
    values: Float[Array, "P S H"],
    looked_at: Bool[Array, "P T S"],
    ago: Int[Array, "T S"],
) -> Float[Array, "P T H"]:
    """What every head finds, `ago` being how many steps before t the step s was."""
    of_head = [part.reshape(*part.shape[:2], HEADS, -1) for part in (query, keys, values)]
    penalty = -(4.0 ** -jnp.arange(1, HEADS + 1))[:, None, None] * ago
    found = jax.nn.dot_product_attention(*of_head, bias=penalty[None], mask=looked_at[:, None])
    return found.reshape(query.shape)
