"""The student's network: encoder, memory, actor and critic in one pytree of arrays."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from tutelage.env import Box, Discrete, Obs
from tutelage.student.controller import Controller
from tutelage.student.distributions import Distribution, distribution, width
from tutelage.student.gru import GRU
from tutelage.student.lstm import LSTM
from tutelage.student.recurrence import Core
from tutelage.student.s5 import S5
from tutelage.student.transformer import HEADS, Transformer

Cell = Literal["lstm", "gru", "s5", "transformer"]
Products = Literal["default", "float32"]
Activation = Literal["tanh", "relu"]
CriticStart = Literal["orthogonal", "uniform", "none"]


@runtime_checkable
class Student(Protocol):
    """What a rollout and PPO ask of a network. `P` slots side by side, `T` steps one after another."""

    @property
    def recurrent(self) -> bool: ...

    def memory(self, slots: int) -> PyTree:
        """The memory of `slots` students that have seen nothing yet."""
        ...

    def ready(self) -> Student:
        """This student with everything computed that does not depend on what it sees, for loops that act many times."""
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


class Affine(eqx.Module):
    """x·W + b, both U(±1/√fan in): PyTorch's default."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __init__(self, inputs: int, outputs: int, *, key: Key[Array, ""]) -> None:
        key_weight, key_bias = jax.random.split(key)
        bound = inputs**-0.5
        self.weight = jax.random.uniform(key_weight, (inputs, outputs), minval=-bound, maxval=bound)
        self.bias = jax.random.uniform(key_bias, (outputs,), minval=-bound, maxval=bound)

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return x @ self.weight + self.bias


class Head(eqx.Module):
    """One hidden layer: tanh, or ReLU from weights √2 times as large."""

    hidden: Linear
    output: Linear
    activation: Activation = eqx.field(static=True)

    def __init__(
        self, inputs: int, hidden: int, outputs: int, *, gain: float, activation: Activation, key: Key[Array, ""]
    ):
        key_hidden, key_output = jax.random.split(key)
        self.hidden = Linear(inputs, hidden, gain=2.0 if activation == "relu" else 2**0.5, key=key_hidden)
        self.output = Linear(hidden, outputs, gain=gain, key=key_output)
        self.activation = activation

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        active = jax.nn.relu if self.activation == "relu" else jnp.tanh
        return self.output(active(self.hidden(x)))


class Dense(eqx.Module):
    """The memoryless stand-in for an LSTM: one tanh layer."""

    layer: Linear
    remembers: ClassVar[bool] = False

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


class Straight(eqx.Module):
    """Nothing between encoder and heads."""

    remembers: ClassVar[bool] = False

    def zeros(self, slots: int) -> tuple[()]:
        """No memory."""
        return ()

    def step(self, memory: tuple[()], x: Float[Array, "P in"], start: Bool[Array, " P"]):
        """The features as they are."""
        return memory, x

    def unroll(self, x: Float[Array, "T P in"], start: Bool[Array, "T P"]) -> Float[Array, "T P in"]:
        """The features as they are."""
        return x


class ActorCritic(eqx.Module):
    """Encoder → memory (or a dense layer, or nothing) → actor head and critic head."""

    encoder: Any
    core: Core
    actor: Head | Linear
    critic: Head | Linear | Affine
    log_std: Float[Array, " n"] | None
    actions: Discrete | Box = eqx.field(static=True)
    products: Products = eqx.field(static=True, default="default")

    @property
    def recurrent(self) -> bool:
        """Whether an action depends on more than the present observation."""
        return self.core.remembers

    def memory(self, slots: int) -> PyTree:
        """The memory of `slots` students that have seen nothing yet."""
        return self.core.zeros(slots)

    def ready(self) -> ActorCritic:
        """This student with its encoder made ready, if that can be."""
        with _precision(self.products):
            return replace(self, encoder=_ready(self.encoder))

    def act(
        self, memory: PyTree, obs: Obs, start: Bool[Array, " P"]
    ) -> tuple[PyTree, Distribution, Float[Array, " P"]]:
        """One step of every slot."""
        with _precision(self.products):
            memory, x = self.core.step(memory, jax.vmap(self.encoder)(obs), start)
            return memory, *self._heads(x)

    def evaluate(self, obs: Obs, start: Bool[Array, "T P"]) -> tuple[Distribution, Float[Array, "T P"]]:
        """A whole sequence from an empty memory."""
        with _precision(self.products):
            return self._heads(self.features(obs, start))

    def features(self, obs: Obs, start: Bool[Array, "T P"]) -> Float[Array, "T P H"]:
        """What the heads are given, of a whole sequence from an empty memory."""
        with _precision(self.products):
            return self.core.unroll(jax.vmap(jax.vmap(self.encoder))(obs), start)

    def _heads(self, x: Float[Array, "*batch H"]) -> tuple[Distribution, Float[Array, "*batch"]]:
        return distribution(self.actions, self.actor(x), self.log_std), self.critic(x)[..., 0]


class Tower(eqx.Module):
    """Two hidden tanh layers and a linear one."""

    layers: tuple[Linear, Linear, Linear]

    def __init__(self, inputs: int, hidden: int, outputs: int, *, gain: float, key: Key[Array, ""]):
        keys = jax.random.split(key, 3)
        self.layers = (
            Linear(inputs, hidden, gain=2**0.5, key=keys[0]),
            Linear(hidden, hidden, gain=2**0.5, key=keys[1]),
            Linear(hidden, outputs, gain=gain, key=keys[2]),
        )

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        first, second, last = self.layers
        return last(jnp.tanh(second(jnp.tanh(first(x)))))


class TwoTowers(eqx.Module):
    """An actor and a critic that share nothing, without memory: the usual student of continuous control."""

    encoder: Any
    actor: Tower
    critic: Tower
    log_std: Float[Array, " n"] | None
    actions: Discrete | Box = eqx.field(static=True)
    products: Products = eqx.field(static=True, default="default")

    recurrent = False
    """An action depends on the present observation alone."""

    def memory(self, slots: int) -> tuple[()]:
        """No memory."""
        return ()

    def ready(self) -> TwoTowers:
        """This student with its encoder made ready, if that can be."""
        with _precision(self.products):
            return replace(self, encoder=_ready(self.encoder))

    def act(
        self, memory: tuple[()], obs: Obs, start: Bool[Array, " P"]
    ) -> tuple[tuple[()], Distribution, Float[Array, " P"]]:
        """One step of every slot."""
        with _precision(self.products):
            return memory, *self._towers(jax.vmap(self.encoder)(obs))

    def evaluate(self, obs: Obs, start: Bool[Array, "T P"]) -> tuple[Distribution, Float[Array, "T P"]]:
        """All steps at once."""
        with _precision(self.products):
            return self._towers(jax.vmap(jax.vmap(self.encoder))(obs))

    def _towers(self, x: Float[Array, "*batch in"]) -> tuple[Distribution, Float[Array, "*batch"]]:
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


def vectors(obs: Obs) -> Float[Array, "T P size"]:
    """Observations `[T, P, …]` as vectors, by `Flatten`."""
    return jax.vmap(jax.vmap(lambda one: Flatten.of(one)(one)))(obs)


@dataclass(frozen=True)
class StudentConfig:
    """The student's network."""

    memory: bool = True
    """A memory between encoder and heads; without it one dense layer, much faster on a CPU."""
    cell: Cell = "lstm"
    """What remembers: an LSTM, a GRU, or S5 or a transformer, whose steps follow one another only when acting and not
    when learning."""
    layers: int = 2
    """Layers of S5 or of the transformer, one upon the other; the other memories have one."""
    window: int = 128
    """Steps that the transformer looks back on, the present one among them."""
    hidden: int = 256
    """Units of the memory or of the dense layer; 0 for no layer at all, which goes with no memory."""
    head: int = 32
    """Units of the hidden layer of the actor head and of the critic head; 0 for none."""
    activation: Activation = "tanh"
    """What the heads' hidden layers do: tanh, or ReLU."""
    separate: bool = False
    """Actor and critic share nothing: two tanh layers of `hidden` units each, without memory."""
    critic: CriticStart = "orthogonal"
    """How the critic's head starts: orthogonal as the actor's, or uniform in ±1/√inputs, PyTorch's default. With none
    there is but a separate actor, as POET has it: two tanh layers and a tanh of the action, without noise."""
    products: Products = "default"
    """Precision of matrix products: the device's default, on recent GPUs TF32, or full float32."""

    def __post_init__(self):
        if self.hidden < 0 or self.head < 0 or min(self.layers, self.window) < 1:
            raise ValueError("`hidden` and `head` must not be negative, `layers` and `window` at least 1.")
        if self.cell == "s5" and self.hidden % 2:
            raise ValueError(f"`hidden` must be even for S5, whose states come in pairs, not {self.hidden}.")
        if self.cell == "transformer" and self.hidden % HEADS:
            raise ValueError(f"`hidden` must be a multiple of {HEADS}, the transformer's heads, not {self.hidden}.")
        if self.hidden == 0 and (self.memory or self.separate):
            raise ValueError("`hidden` = 0 goes neither with `memory` nor with `separate`.")
        if self.separate and self.memory:
            raise ValueError("`separate` does not go with `memory`: two towers have none.")
        if self.critic == "uniform" and (self.separate or self.head):
            raise ValueError("`critic` = uniform is for a critic of one layer: `head` = 0, and not `separate`.")
        if self.critic == "none" and not self.separate:
            raise ValueError("`critic` = none is an actor alone: it goes with `separate`, and not with `memory`.")

    def build(
        self, encoder: Any, actions: Discrete | Box, *, key: Key[Array, ""]
    ) -> ActorCritic | TwoTowers | Controller:
        """A fresh student behind the given encoder."""
        if self.critic == "none":
            return Controller(encoder, self.hidden, actions, key=key)
        if self.separate:
            return self._two_towers(encoder, actions, key)
        keys = jax.random.split(key, 3)
        inputs = self.hidden or encoder.size
        return ActorCritic(
            encoder=encoder,
            core=self._core(encoder.size, key=keys[0]),
            actor=self._head(inputs, width(actions), gain=0.01, key=keys[1]),
            critic=self._critic(inputs, key=keys[2]),
            log_std=_initial_log_std(actions),
            actions=actions,
            products=self.products,
        )

    def _two_towers(self, encoder: Any, actions: Discrete | Box, key: Key[Array, ""]) -> TwoTowers:
        key_actor, key_critic = jax.random.split(key)
        return TwoTowers(
            encoder=encoder,
            actor=Tower(encoder.size, self.hidden, width(actions), gain=1.0, key=key_actor),
            critic=Tower(encoder.size, self.hidden, 1, gain=2**0.5, key=key_critic),
            log_std=_initial_log_std(actions),
            actions=actions,
            products=self.products,
        )

    def _core(self, inputs: int, *, key: Key[Array, ""]) -> Core:
        if self.hidden == 0:
            return Straight()
        if not self.memory:
            return Dense(inputs, self.hidden, key=key)
        if self.cell == "s5":
            return S5(inputs, self.hidden, self.layers, key=key)
        if self.cell == "transformer":
            return Transformer(inputs, self.hidden, self.layers, self.window, key=key)
        return (GRU if self.cell == "gru" else LSTM)(inputs, self.hidden, key=key)

    def _critic(self, inputs: int, *, key: Key[Array, ""]) -> Head | Linear | Affine:
        if self.critic == "uniform":
            return Affine(inputs, 1, key=key)
        return self._head(inputs, 1, gain=1.0, key=key)

    def _head(self, inputs: int, outputs: int, *, gain: float, key: Key[Array, ""]) -> Head | Linear:
        if self.head == 0:
            return Linear(inputs, outputs, gain=gain, key=key)
        return Head(inputs, self.head, outputs, gain=gain, activation=self.activation, key=key)


def _precision(products: Products) -> AbstractContextManager[None]:
    return nullcontext() if products == "default" else jax.default_matmul_precision(products)


def _ready(encoder: Any) -> Any:
    return encoder.ready() if hasattr(encoder, "ready") else encoder


def _initial_log_std(actions: Discrete | Box) -> Float[Array, " n"] | None:
    return jnp.zeros(actions.size) if isinstance(actions, Box) else None
