"""The world as an environment's state holds it, the step of one environment, and how steps become one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, PyTree

from tutelage.envs.bipedal.physics.body import Body
from tutelage.envs.bipedal.physics.contacts import Memory
from tutelage.envs.bipedal.physics.step import World
from tutelage.envs.bipedal.physics.velocity import JointImpulse


class Moment(NamedTuple):
    """A `World` on axes: bodies and joints lie on them."""

    bodies: Body  # fields [5]
    joints: JointImpulse  # fields [4]
    memory: Memory  # leaves [8]
    feet: Bool[Array, "*n 2"]


class After(NamedTuple):
    """What a step comes to."""

    moment: Moment
    fallen: Bool[Array, "*n"]
    rays: Float[Array, "*n 16"]


def packed(world: World) -> Moment:
    """The world of one environment on axes."""
    bodies = Body(*(jnp.stack(field) for field in zip(*world.bodies, strict=True)))
    joints = JointImpulse(*(jnp.stack(field) for field in zip(*world.joints, strict=True)))
    return Moment(bodies, joints, world.memory, jnp.stack(world.feet))


def unpacked(moment: Moment) -> World:
    """The world again; whether its walker has fallen is asked anew each step."""
    bodies = tuple(Body(*(field[k] for field in moment.bodies)) for k in range(5))
    joints = tuple(JointImpulse(*(field[k] for field in moment.joints)) for k in range(4))
    feet = (moment.feet[0], moment.feet[1])
    return World(bodies, joints, moment.memory, feet, jnp.zeros_like(feet[0]))  # type: ignore[arg-type]


def as_one_batch(run: Callable[..., PyTree], *, alone: Callable[..., PyTree], axes: int = 0) -> Callable[..., PyTree]:
    """A function of values with one leading axis, for values with `axes` of them; `vmap` adds another.

    However deep `vmap`s are nested, `run` is called once, with all there is on one axis. Without any, that is `alone`.
    """

    @custom_vmap
    def batch(*given: Any) -> PyTree:
        shape = jax.tree.leaves(given)[-1].shape[:axes]
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), given)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), (run if axes else alone)(*flat))

    @batch.def_vmap
    def more(size: int, batched: Any, *given: Any) -> tuple[PyTree, Any]:
        def wide(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

        wider = as_one_batch(run, alone=alone, axes=axes + 1)
        out = wider(*jax.tree.map(wide, given, tuple(batched)))
        return out, jax.tree.map(lambda _: True, out)

    return batch
