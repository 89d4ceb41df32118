"""Students that only act, and many students side by side: what evolution strategies train."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from tutelage.env import Action, Box, Discrete, Obs
from tutelage.student.distributions import Certain, width

SPREAD = 0.1  # standard deviation of a new controller's numbers


class TanhLayer(eqx.Module):
    """tanh(x·W + b), with every number N(0, 0.1²) at first.

    The product is written as a sum: where every slot has weights of its own, it is read once and nothing is transposed.
    """

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __init__(self, inputs: int, outputs: int, *, key: Key[Array, ""]) -> None:
        key_weight, key_bias = jax.random.split(key)
        self.weight = SPREAD * jax.random.normal(key_weight, (inputs, outputs))
        self.bias = SPREAD * jax.random.normal(key_bias, (outputs,))

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return jnp.tanh(jnp.sum(jnp.expand_dims(x, -1) * self.weight, axis=-2) + self.bias)


class Controller(eqx.Module):
    """An actor alone: tanh layers up to the action, which has no noise. POET's network.

    A box is filled by the last tanh; of discrete actions the one of largest output is taken.
    """

    encoder: Any
    layers: tuple[TanhLayer, ...]
    actions: Discrete | Box = eqx.field(static=True)

    recurrent = False
    """An action depends on the present observation alone."""

    def __init__(self, encoder: Any, hidden: int, actions: Discrete | Box, *, key: Key[Array, ""]) -> None:
        sizes = (encoder.size, hidden, hidden, width(actions))
        keys = jax.random.split(key, len(sizes) - 1)
        self.encoder, self.actions = encoder, actions
        self.layers = tuple(TanhLayer(*ends, key=k) for *ends, k in zip(sizes, sizes[1:], keys, strict=False))

    def memory(self, slots: int) -> tuple[()]:
        """No memory."""
        return ()

    def ready(self) -> Controller:
        """This student with its encoder made ready, if that can be."""
        if not hasattr(self.encoder, "ready"):
            return self
        return eqx.tree_at(lambda student: student.encoder, self, self.encoder.ready())

    def act(
        self, memory: tuple[()], obs: Obs, start: Bool[Array, " P"]
    ) -> tuple[tuple[()], Certain, Float[Array, " P"]]:
        """One step of every slot. There is no critic: all values are 0."""
        return memory, Certain(self._action(jax.vmap(self.encoder)(obs))), jnp.zeros(start.shape)

    def evaluate(self, obs: Obs, start: Bool[Array, "T P"]) -> tuple[Certain, Float[Array, "T P"]]:
        """All steps at once."""
        return Certain(self._action(jax.vmap(jax.vmap(self.encoder))(obs))), jnp.zeros(start.shape)

    def _action(self, x: Float[Array, "*batch in"]) -> Action:
        for layer in self.layers:
            x = layer(x)
        if isinstance(self.actions, Discrete):
            return jnp.argmax(x, axis=-1).astype(jnp.int32)
        low, high = self.actions.low, self.actions.high
        return (low + high) / 2 + (high - low) / 2 * x


class Crowd(eqx.Module):
    """A student of its own in every slot; the leaves of `members` have the slots on their last axis."""

    members: PyTree

    @staticmethod
    def of(students: PyTree) -> Crowd:
        """From students that are stacked."""
        return Crowd(jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), students))

    @property
    def recurrent(self) -> bool:
        """As its members."""
        return self.members.recurrent

    def memory(self, slots: int) -> PyTree:
        """Nobody has seen anything yet."""
        return self.members.memory(slots)

    def ready(self) -> Crowd:
        """Everybody ready."""
        return Crowd(jax.vmap(lambda student: student.ready(), in_axes=-1, out_axes=-1)(self.members))

    def act(self, memory: PyTree, obs: Obs, start: Bool[Array, " P"]) -> tuple[PyTree, Any, Float[Array, " P"]]:
        """One step of every slot, each by its own student."""

        def one(student: Any, *seen: PyTree) -> PyTree:
            return _first(student.act(*_alone(seen)))

        return jax.vmap(one, in_axes=(-1, 0, 0, 0))(self.members, memory, obs, start)

    def evaluate(self, obs: Obs, start: Bool[Array, "T P"]) -> tuple[Any, Float[Array, "T P"]]:
        """A whole sequence, each slot by its own student."""

        def one(student: Any, *seen: PyTree) -> PyTree:
            return jax.tree.map(lambda x: x[:, 0], student.evaluate(*jax.tree.map(lambda x: x[:, None], seen)))

        return jax.vmap(one, in_axes=(-1, 1, 1), out_axes=1)(self.members, obs, start)


class Population(eqx.Module):
    """Specialists of one seed, stacked: of N places the first `count` are taken."""

    members: PyTree
    count: Int[Array, ""]


def _alone(values: PyTree) -> PyTree:
    """Values of one slot as those of a rollout of one slot."""
    return jax.tree.map(lambda x: x[None], values)


def _first(values: PyTree) -> PyTree:
    return jax.tree.map(lambda x: x[0], values)
