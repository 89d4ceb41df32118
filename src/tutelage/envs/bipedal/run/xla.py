"""A step of many walkers as XLA compiles it, for CPUs and for GPUs on which no kernels of our own run; and of one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.envs.bipedal.physics.ground import Ground
from tutelage.envs.bipedal.physics.machine import Machine, computed_on
from tutelage.envs.bipedal.run import solving
from tutelage.envs.bipedal.run.machines import ByItself, OnCPU, OnGPU
from tutelage.envs.bipedal.run.moment import After, Moment, packed, unpacked
from tutelage.envs.bipedal.run.stages import Way, step, table

ON_CPU = Way(solving.by_kinds, portions=(3, 57))  # after three, most walkers have settled
ON_GPU = Way(solving.all_in_one_kernel)


def step_by_xla(tolerance: float, moment: Moment, action: Float[Array, "n 4"], tiles: Float[Array, "n 200 8"]) -> After:
    """The step of n walkers."""
    on_gpu = jax.default_backend() == "gpu"
    machine, way = (OnGPU(), ON_GPU) if on_gpu else (OnCPU(), ON_CPU)
    return _step(machine, way, tolerance, moment, action, tiles)


def step_by_itself(
    tolerance: float, moment: Moment, action: Float[Array, "1 4"], tiles: Float[Array, "1 200 8"]
) -> After:
    """The step of one walker for a translator; its numbers are those of a CPU without shortcuts of its own."""
    return _step(ByItself(), ON_CPU, tolerance, moment, action, tiles)


def _step(machine: Machine, way: Way, tolerance: float, moment: Moment, action: Array, tiles: Array) -> After:
    """The walkers lie on the last axis of everything meanwhile."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    look = Ground(tiles, jnp.arange(action.shape[1]))
    with computed_on(machine):
        efforts = (action[0], action[1], action[2], action[3])
        world, seen = step(unpacked(moment), efforts, look, table(tolerance, way))
    after = After(packed(world), seen.fallen, seen.rays)
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), after)
