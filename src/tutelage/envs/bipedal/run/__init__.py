"""How walkers are run fast: many at once, by XLA or as GPU kernels of our own.

`stages` is the table of what a step consists of, and in which order. `xla` carries it out by XLA, `kernels` as some
kernels a step and `rollout` as one kernel for a whole rollout. These two are imported when a GPU first asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
from jaxtyping import Array, Float

from tutelage.envs.bipedal.physics.machine import machine
from tutelage.envs.bipedal.run.machines import ByItself
from tutelage.envs.bipedal.run.moment import After, Moment, as_one_batch
from tutelage.envs.bipedal.run.xla import step_by_itself, step_by_xla
from tutelage.gpu import kernels_run_here

Step = Callable[[Moment, Float[Array, "*n 4"], Float[Array, "*n 200 8"]], After]


def advance(tolerance: float) -> Step:
    """The step of one walker. Under `vmap` all of them are one batch; on a GPU, that is a few kernels."""
    if isinstance(machine(), ByItself):
        return one_step(step_by_itself, tolerance)
    if not kernels_run_here():
        return one_step(step_by_xla, tolerance)
    from tutelage.envs.bipedal.run.kernels import step_by_kernels

    return one_step(step_by_kernels, tolerance)


@lru_cache
def one_step(run: Callable[..., After], tolerance: float) -> Step:
    """The step of one walker, of which many are what `run` makes of them."""
    alone = step_by_itself if run is step_by_itself else step_by_xla
    return as_one_batch(_traced_once(run, tolerance), alone=_traced_once(alone, tolerance))


@lru_cache
def _traced_once(run: Callable[..., After], tolerance: float) -> Step:
    """The step, traced once for each number of walkers: it is long, and a method has several rollouts of it."""
    return jax.jit(partial(run, tolerance))


def played(*given: Any) -> Any:
    """`rollout.played_at_once`, where kernels run; else None."""
    if not kernels_run_here():
        return None
    from tutelage.envs.bipedal.run import rollout

    return rollout.played_at_once(*given)
