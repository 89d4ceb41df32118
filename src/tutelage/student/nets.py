"""The student's network: encoder, memory, actor and critic in one pytree of arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from tutelage.env import Box, Discrete, Obs
from tutelage.student.distributions import Distribution, distribution, width
from tutelage.student.lstm import LSTM


@runtime_checkable
class Student(Protocol):
    """What a rollout and PPO ask of a network. `P` slots side by side, `T` steps one after another."""

    @property
    def recurrent(self) -> bool: ...

    def memory(self, slots: int) -> PyTree:
        """The memory of `slots` students that have seen nothing yet."""
        ...

    def act(
        self, memory: PyTree, obs: Obs, start: Bool[Array, " P"]
    ) -> tuple[PyTree, Distribution, Float[Array, " P"]]:
        """One step: the memory after it, the distribution over actions, the value. `start` marks new episodes."""
        ...

    def evaluate(self, obs: Obs, start: Bool[Array, "T P"]) -> tuple[Distribution, Float[Array, "T P"]]:
        """A whole sequence from an empty memory."""
        ...


class Linear(eqx.Module):
    """x·W + b with an orthogonal W and a zero b."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __init__(self, inputs: int, outputs: int, *, gain: float, key: Key[Array, ""]):
        self.weight = jax.nn.initializers.orthogonal(gain)(key, (inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return x @ self.weight + self.bias


class Head(eqx.Module):
    """One hidden tanh layer."""

    hidden: Linear
    output: Linear

    def __init__(self, inputs: int, hidden: int, outputs: int, *, gain: float, key: Key[Array, ""]):
        key_hidden, key_output = jax.random.split(key)
        self.hidden = Linear(inputs, hidden, gain=2**0.5, key=key_hidden)
        self.output = Linear(hidden, outputs, gain=gain, key=key_output)

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return self.output(jnp.tanh(self.hidden(x)))


class Dense(eqx.Module):
    """The memoryless stand-in for an LSTM: one tanh layer."""

    layer: Linear

    def __init__(self, inputs: int, hidden: int, *, key: Key[Array, ""]):
        self.layer = Linear(inputs, hidden, gain=2**0.5, key=key)

    def zeros(self, slots: int) -> tuple[()]:
        """No memory."""
        return ()

    def step(self, memory: tuple[()], x: Float[Array, "P in"], start: Bool[Array, " P"]):
        """The layer, slot by slot."""
        return memory, jnp.tanh(self.layer(x))

    def unroll(self, x: Float[Array, "T P in"], start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
        """The layer, step by step."""
        return jnp.tanh(self.layer(x))


class ActorCritic(eqx.Module):
    """Encoder → LSTM (or a dense layer) → actor head and critic head."""

    encoder: Any
    core: LSTM | Dense
    actor: Head | Linear
    critic: Head | Linear
    log_std: Float[Array, " n"] | None
    actions: Discrete | Box = eqx.field(static=True)

    @property
    def recurrent(self) -> bool:
        """Whether an action depends on more than the present observation."""
        return isinstance(self.core, LSTM)

    def memory(self, slots: int) -> PyTree:
        """The memory of `slots` students that have seen nothing yet."""
        return self.core.zeros(slots)

    def act(
        self, memory: PyTree, obs: Obs, start: Bool[Array, " P"]
    ) -> tuple[PyTree, Distribution, Float[Array, " P"]]:
        """One step of every slot."""
        memory, x = self.core.step(memory, jax.vmap(self.encoder)(obs), start)
        return memory, *self._heads(x)

    def evaluate(self, obs: Obs, start: Bool[Array, "T P"]) -> tuple[Distribution, Float[Array, "T P"]]:
        """A whole sequence from an empty memory."""
        features = jax.vmap(jax.vmap(self.encoder))(obs)
        return self._heads(self.core.unroll(features, start))

    def _heads(self, x: Float[Array, "*batch H"]) -> tuple[Distribution, Float[Array, "*batch"]]:
        return distribution(self.actions, self.actor(x), self.log_std), self.critic(x)[..., 0]


class Flatten(eqx.Module):
    """The plainest encoder: every number of the observation, as it is."""

    size: int = eqx.field(static=True)

    @staticmethod
    def of(obs: Obs) -> Flatten:
        """For observations shaped like this one."""
        return Flatten(sum(math.prod(x.shape) for x in jax.tree.leaves(obs)))

    def __call__(self, obs: Obs) -> Float[Array, " size"]:
        return jnp.concatenate([jnp.ravel(x).astype(jnp.float32) for x in jax.tree.leaves(obs)])


@dataclass(frozen=True)
class StudentConfig:
    """The student's network."""

    memory: bool = True
    """An LSTM between encoder and heads; without it one dense layer (`--student.no-memory`), much faster on a CPU."""
    hidden: int = 256
    """Units of the LSTM or of the dense layer."""
    head: int = 32
    """Units of the hidden layer of the actor head and of the critic head; 0 for none."""

    def __post_init__(self):
        if self.hidden < 1 or self.head < 0:
            raise ValueError("student.hidden must be at least 1 and student.head not negative.")

    def build(self, encoder: Any, actions: Discrete | Box, *, key: Key[Array, ""]) -> ActorCritic:
        """A fresh student behind the given encoder."""
        keys = jax.random.split(key, 3)
        core = LSTM if self.memory else Dense
        return ActorCritic(
            encoder=encoder,
            core=core(encoder.size, self.hidden, key=keys[0]),
            actor=self._head(width(actions), gain=0.01, key=keys[1]),
            critic=self._head(1, gain=1.0, key=keys[2]),
            log_std=jnp.zeros(actions.size) if isinstance(actions, Box) else None,
            actions=actions,
        )

    def _head(self, outputs: int, *, gain: float, key: Key[Array, ""]) -> Head | Linear:
        if self.head == 0:
            return Linear(self.hidden, outputs, gain=gain, key=key)
        return Head(self.hidden, self.head, outputs, gain=gain, key=key)
