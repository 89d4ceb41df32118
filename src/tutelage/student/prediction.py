"""A model that learns to predict what a student sees next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Key, PyTree

from tutelage.env import Box, Discrete, Obs
from tutelage.student.distributions import as_vectors, width
from tutelage.student.lstm import LSTM
from tutelage.student.nets import Flatten, Linear, vectors
from tutelage.student.rollout import Rollout

WEIGHT_DECAY, MAX_GRAD_NORM = 1e-5, 0.5


class Model(eqx.Module):
    """Predicts the next observation, as one vector, from all that was seen and done in an episode."""

    memory: LSTM
    output: Linear

    def __init__(self, observed: int, acted: int, hidden: int, *, key: Key[Array, ""]):
        key_memory, key_output = jax.random.split(key)
        self.memory = LSTM(observed + acted, hidden, key=key_memory)
        self.output = Linear(hidden, observed, gain=1.0, key=key_output)

    def __call__(
        self, seen: Float[Array, "T P n"], done: Float[Array, "T P m"], start: Bool[Array, "T P"]
    ) -> Float[Array, "T P n"]:
        return self.output(self.memory.unroll(jnp.concatenate([seen, done], axis=-1), start))


class Predictor(eqx.Module):
    """A model and its optimiser's state."""

    model: PyTree  # a `Model`
    optimiser: PyTree


@dataclass(frozen=True)
class Prediction:
    """How observations are predicted."""

    error: Literal["l1", "l2"] = "l1"
    """How a wrong prediction is measured: by its absolute value, or by its square."""
    scale: float = 1.0
    """What observations are divided by before they are predicted; 0: each number by its deviation in the rollout."""
    units: int = 128
    """Units of the model's LSTM."""
    learning_rate: float = 1e-4
    """Step size of the model's optimiser, AdamW."""
    steps: int = 4
    """Steps of it in a rollout, each on as many slots. TRACED's authors take one an episode."""

    def __post_init__(self):
        if self.scale < 0:
            raise ValueError(f"`scale` must not be negative, as {self.scale} is.")
        if min(self.units, self.steps) < 1 or self.learning_rate <= 0:
            raise ValueError("`units` and `steps` must be at least 1, and `learning_rate` positive.")

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """AdamW behind a clip of the global gradient norm."""
        adam = optax.adamw(self.learning_rate, weight_decay=WEIGHT_DECAY)
        return optax.chain(optax.clip_by_global_norm(MAX_GRAD_NORM), adam)

    def new(self, key: Key[Array, ""], obs: Obs, actions: Discrete | Box) -> Predictor:
        """A model that has seen nothing, for observations shaped like this one."""
        model: PyTree = Model(Flatten.of(obs).size, width(actions), self.units, key=key)
        return Predictor(model, self.optimiser.init(model))

    def learn(self, predictor: Predictor, r: Rollout, actions: Discrete | Box) -> tuple[Predictor, Float[Array, "T P"]]:
        """The model after a rollout, and its error in predicting what follows each step, before it learned from it.

        It learns from whole episodes. Nothing follows the last step of an episode, where the error is 0.
        """
        ends = r.done.at[-1].set(True)
        whole = jnp.flip(jnp.cumsum(jnp.flip(r.done, 0), axis=0), 0) > 0

        def learn(predictor: Predictor, part: tuple[Array, ...]) -> tuple[Predictor, Float[Array, "T P"]]:
            seen, done, start, ends, whole = part
            counts = whole & ~ends

            def loss(model: PyTree) -> tuple[Float[Array, ""], Float[Array, "T P"]]:
                apart = model(seen, done, start) - jnp.roll(seen, -1, axis=0)
                error = (jnp.abs(apart) if self.error == "l1" else apart**2).mean(axis=-1)
                return jnp.where(counts, error, 0.0).sum() / jnp.maximum(counts.sum(), 1), jnp.where(ends, 0.0, error)

            (_, error), gradient = jax.value_and_grad(loss, has_aux=True)(predictor.model)
            change, optimiser = self.optimiser.update(gradient, predictor.optimiser, predictor.model)
            return Predictor(optax.apply_updates(predictor.model, change), optimiser), error

        parts = lambda x: jnp.moveaxis(x.reshape(x.shape[0], self.steps, -1, *x.shape[2:]), 1, 0)  # noqa: E731
        given = (self.scaled(r.obs), as_vectors(r.action, actions), r.start, ends, whole)
        predictor, error = lax.scan(learn, predictor, jax.tree.map(parts, given))
        return predictor, jnp.moveaxis(error, 0, 1).reshape(r.reward.shape)

    def scaled(self, obs: Obs) -> Float[Array, "T P n"]:
        """Observations as the model sees and predicts them."""
        x = vectors(obs)
        if self.scale:
            return x / self.scale
        deviation = x.std(axis=(0, 1))
        return (x - x.mean(axis=(0, 1))) / jnp.where(deviation > 0, deviation, 1.0)
