"""The student's eye in a maze: one small convolution, and the direction it faces."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Float, Key

from tutelage.envs.grid import KERNEL, patches, xavier_kernel
from tutelage.envs.maze.env import MazeObs

Compass = Literal["shown", "constant"]


class MazeEncoder(eqx.Module):
    """Concatenates relu(conv(image / 10)), 16 filters of 3×3 without padding, and an embedding of the direction.

    The convolution is one matrix product over all patches: vmapped over seeds, whose filters differ, that stays a
    batched matrix product where a convolution operator becomes a slow grouped one.

    Under a `constant` compass the embedding is that of all four directions at once, whichever it is.
    """

    kernel: Float[Array, "patch filters"]
    bias: Float[Array, " filters"]
    compass: Float[Array, "4 features"]
    compass_bias: Float[Array, " features"]
    size: int = eqx.field(static=True)
    constant: bool = eqx.field(static=True)

    def __init__(
        self, *, view: int, compass: Compass = "shown", filters: int = 16, features: int = 5, key: Key[Array, ""]
    ) -> None:
        """Xavier-uniform filters, U(±√(6 / (fan in + fan out))), without bias; the embedding is U(±1/√4) throughout."""
        key_kernel, key_compass, key_bias = random.split(key, 3)
        self.kernel = xavier_kernel(key_kernel, filters)
        self.bias = jnp.zeros(filters)
        self.compass = random.uniform(key_compass, (4, features), minval=-0.5, maxval=0.5)
        self.compass_bias = random.uniform(key_bias, (features,), minval=-0.5, maxval=0.5)
        self.size = (view - KERNEL + 1) ** 2 * filters + features
        self.constant = compass == "constant"

    def __call__(self, obs: MazeObs) -> Float[Array, " size"]:
        seen = jax.nn.relu(patches(obs.image / 10.0) @ self.kernel + self.bias)
        # A masked sum: four numbers are not worth a matrix product of their own.
        direction = jnp.ones(4) if self.constant else jax.nn.one_hot(obs.direction, 4)
        facing = jnp.sum(direction[:, None] * self.compass, axis=0) + self.compass_bias
        return jnp.concatenate([seen.reshape(-1), facing])
