"""Eyes in a maze: the student's, one small convolution and the direction it faces; the teacher's, on the whole map."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Float, Key

from tutelage.env import TeacherObs
from tutelage.envs.maze.env import MazeObs

KERNEL = 3


class MazeEncoder(eqx.Module):
    """Concatenates relu(conv(image / 10)), 16 filters of 3×3 without padding, and an embedding of the direction.

    The convolution is one matrix product over all patches: vmapped over seeds, whose filters differ, that stays a
    batched matrix product where a convolution operator becomes a slow grouped one.
    """

    kernel: Float[Array, "patch filters"]
    bias: Float[Array, " filters"]
    compass: Float[Array, "4 features"]
    compass_bias: Float[Array, " features"]
    size: int = eqx.field(static=True)

    def __init__(self, *, view: int, filters: int = 16, features: int = 5, key: Key[Array, ""]) -> None:
        """Xavier-uniform filters, U(±√(6 / (fan in + fan out))), without bias; the embedding is U(±1/√4) throughout."""
        key_kernel, key_compass, key_bias = random.split(key, 3)
        self.kernel = xavier_kernel(key_kernel, filters)
        self.bias = jnp.zeros(filters)
        self.compass = random.uniform(key_compass, (4, features), minval=-0.5, maxval=0.5)
        self.compass_bias = random.uniform(key_bias, (features,), minval=-0.5, maxval=0.5)
        self.size = (view - KERNEL + 1) ** 2 * filters + features

    def __call__(self, obs: MazeObs) -> Float[Array, " size"]:
        seen = jax.nn.relu(patches(obs.image / 10.0) @ self.kernel + self.bias)
        # A masked sum: four numbers are not worth a matrix product of their own.
        facing = jnp.sum(jax.nn.one_hot(obs.direction, 4)[:, None] * self.compass, axis=0) + self.compass_bias
        return jnp.concatenate([seen.reshape(-1), facing])


class TeacherEye(eqx.Module):
    """Concatenates relu(conv(map / 10)), 128 filters of 3×3 without padding, an embedding of the step, and z as it is.

    The map of h×w tiles, border included, gives 128·(h − 2)·(w − 2) features.
    """

    kernel: Float[Array, "patch filters"]
    bias: Float[Array, " filters"]
    clock: Float[Array, "times features"]
    clock_bias: Float[Array, " features"]
    size: int = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, int],
        steps: int,
        z: int,
        *,
        filters: int = 128,
        features: int = 10,
        key: Key[Array, ""],
    ) -> None:
        """Filters as the student's; the embedding is U(±1/√n) throughout, with n = steps + 1 the times there are."""
        key_kernel, key_clock, key_bias = random.split(key, 3)
        bound = (steps + 1) ** -0.5
        self.kernel = xavier_kernel(key_kernel, filters)
        self.bias = jnp.zeros(filters)
        self.clock = random.uniform(key_clock, (steps + 1, features), minval=-bound, maxval=bound)
        self.clock_bias = random.uniform(key_bias, (features,), minval=-bound, maxval=bound)
        self.size = (shape[0] - KERNEL + 1) * (shape[1] - KERNEL + 1) * filters + features + z

    def __call__(self, obs: TeacherObs) -> Float[Array, " size"]:
        seen = jax.nn.relu(patches(obs.map / 10.0) @ self.kernel + self.bias)
        time = jax.nn.one_hot(obs.step, self.clock.shape[0]) @ self.clock + self.clock_bias
        return jnp.concatenate([seen.reshape(-1), time, obs.z])


def xavier_kernel(key: Key[Array, ""], filters: int, channels: int = 3) -> Float[Array, "patch filters"]:
    """U(±√(6 / (fan in + fan out))) for a convolution of 3×3."""
    patch = KERNEL * KERNEL * channels
    bound = (6 / (patch + KERNEL * KERNEL * filters)) ** 0.5
    return random.uniform(key, (patch, filters), minval=-bound, maxval=bound)


def patches(image: Float[Array, "height width channels"]) -> Float[Array, "rows columns patch"]:
    """Every 3×3 patch of the image, flattened in the order row, column, channel of the kernel."""
    rows, columns = (n - KERNEL + 1 for n in image.shape[:2])
    shifted = [image[i : i + rows, j : j + columns] for i in range(KERNEL) for j in range(KERNEL)]
    return jnp.concatenate(shifted, axis=-1)
