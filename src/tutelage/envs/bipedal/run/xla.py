"""A step of many walkers as XLA compiles it, for CPUs and for GPUs on which no kernels of our own run."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.envs.bipedal.physics.ground import Ground
from tutelage.envs.bipedal.physics.machine import computed_on
from tutelage.envs.bipedal.run import solving
from tutelage.envs.bipedal.run.machines import OnCPU, OnGPU
from tutelage.envs.bipedal.run.moment import After, Moment, packed, unpacked
from tutelage.envs.bipedal.run.stages import Way, step, table

ON_CPU = Way(solving.by_kinds, portions=(3, 57))  # after three, most walkers have settled
ON_GPU = Way(solving.all_in_one_kernel)


def step_by_xla(tolerance: float, moment: Moment, action: Float[Array, "n 4"], tiles: Float[Array, "n 200 8"]) -> After:
    """The step of n walkers, who lie on the last axis of everything meanwhile."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    look = Ground(tiles, jnp.arange(action.shape[1]))
    on_gpu = jax.default_backend() == "gpu"
    with computed_on(OnGPU() if on_gpu else OnCPU()):
        stages = table(tolerance, ON_GPU if on_gpu else ON_CPU)
        world, seen = step(unpacked(moment), (action[0], action[1], action[2], action[3]), look, stages)
    after = After(packed(world), seen.fallen, seen.rays)
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), after)
