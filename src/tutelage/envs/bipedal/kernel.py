"""A step of many walkers as one GPU kernel, and who uses it.

Compiled by XLA, a step is some hundred small kernels that wait for one another; at the few hundred environments of a
training run that is all it does. Here the same functions are one kernel: each program holds a few environments, side by
side on the last axis of all its values, and keeps everything between reading and writing a `Moment` to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float, Int

from tutelage.envs.bipedal import ground, lidar, physics
from tutelage.envs.bipedal.body import Body, hull_origin
from tutelage.envs.bipedal.contacts import AXIS, Memory
from tutelage.envs.bipedal.exact import JointImpulse
from tutelage.envs.bipedal.ground import Cells
from tutelage.envs.bipedal.lanes import index, unfenced
from tutelage.envs.bipedal.physics import Solver, World
from tutelage.envs.bipedal.terrain import Terrain

MANY = 16_384  # environments from which on a program takes a whole warp of them
RAYS = 16  # of which ten are meant


class Moment(NamedTuple):
    """A `World` as an environment's state holds it: bodies and joints lie on axes."""

    bodies: Body  # fields [5]
    joints: JointImpulse  # fields [4]
    memory: Memory  # leaves [8]
    feet: Bool[Array, "*n 2"]


class After(NamedTuple):
    """What a step comes to."""

    moment: Moment
    fallen: Bool[Array, "*n"]
    rays: Float[Array, "*n 16"]


Advance = Callable[[Moment, Float[Array, "*n 4"], Terrain], After]


def advance(solver: Solver) -> Advance:
    """The step of one environment. Under `vmap` on a GPU, all of them are one kernel."""
    return _nested(solver, 0) if jax.default_backend() == "gpu" else partial(alone, solver)


def alone(solver: Solver, moment: Moment, action: Float[Array, "4"], terrain: Terrain) -> After:
    """The step as XLA compiles it."""
    look = partial(ground.look, terrain)
    world = physics.step(unpacked(moment), (action[0], action[1], action[2], action[3]), look, solver)
    return After(packed(world), world.fallen, lidar.scan(*hull_origin(world.bodies[0]), look))


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
    return World(bodies, joints, moment.memory, feet, jnp.zeros((), bool))  # type: ignore[arg-type]


@lru_cache
def _nested(solver: Solver, axes: int) -> Advance:
    """`advance` for values with `axes` leading axes, which knows what to do when another one comes."""

    @custom_vmap
    def step(moment: Moment, action: Array, terrain: Terrain) -> After:
        if axes == 0:
            return alone(solver, moment, action, terrain)
        shape = action.shape[:axes]
        given = jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), (moment, action, terrain))
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), fused(solver, *given))

    @step.def_vmap
    def more(size: int, batched: Any, *given: Any) -> tuple[After, Any]:
        def wide(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

        after = _nested(solver, axes + 1)(*jax.tree.map(wide, given, tuple(batched)))
        return after, jax.tree.map(lambda _: True, after)

    return step


def fused(
    solver: Solver,
    moment: Moment,
    action: Float[Array, "n 4"],
    terrain: Terrain,
    *,
    lanes: int | None = None,
    interpret: bool = False,
) -> After:
    """The step of n environments as one kernel, `lanes` of them a program."""
    n = action.shape[0]
    lanes = lanes or (32 if n >= MANY else 8)
    given, tree = jax.tree.flatten((moment, action, terrain))
    fallen, rays = jax.ShapeDtypeStruct((n,), jnp.bool_), jax.ShapeDtypeStruct((n, RAYS), jnp.float32)
    results, after_tree = jax.tree.flatten((moment, fallen, rays))

    def program(*refs: Any) -> None:
        # Lanes beyond the last environment do that one's work once more.
        lane = jnp.minimum(pl.program_id(0) * lanes + jnp.arange(lanes), n - 1)
        moment, action, terrain = jax.tree.unflatten(tree, refs[: len(given)])
        look = partial(_look, terrain, lane)
        with unfenced():
            efforts = (action[lane, 0], action[lane, 1], action[lane, 2], action[lane, 3])
            world = physics.step(_read(moment, lane), efforts, look, solver)
            rays = lidar.scan(*hull_origin(world.bodies[0]), look)
        _write(After(*jax.tree.unflatten(after_tree, refs[len(given) :])), lane, world, rays)

    whole = partial(pl.BlockSpec, memory_space=pl.ANY)
    out = pl.pallas_call(
        program,
        grid=(pl.cdiv(n, lanes),),
        in_specs=[whole() for _ in given],
        out_specs=[whole() for _ in results],
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in results],
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
        name="walkers",
    )(*given)
    return After(*jax.tree.unflatten(after_tree, out))


def _read(moment: Any, lane: Int[Array, " lanes"]) -> World:
    """The world of a program's environments, from references to all of them."""
    bodies = tuple(Body(*(field[lane, k] for field in moment.bodies)) for k in range(5))
    joints = tuple(JointImpulse(*(field[lane, k] for field in moment.joints)) for k in range(4))
    memory = jax.tree.map(lambda ref: ref[_rows(AXIS, lane)], moment.memory)
    feet = (moment.feet[lane, 0], moment.feet[lane, 1])
    return World(bodies, joints, memory, feet, jnp.zeros(lane.shape, bool))  # type: ignore[arg-type]


def _write(after: Any, lane: Int[Array, " lanes"], world: World, rays: Float[Array, "16 lanes"]) -> None:
    for k in range(5):
        for ref, value in zip(after.moment.bodies, world.bodies[k], strict=True):
            ref[lane, k] = value
    for k in range(4):
        for ref, value in zip(after.moment.joints, world.joints[k], strict=True):
            ref[lane, k] = value
    for ref, value in zip(jax.tree.leaves(after.moment.memory), jax.tree.leaves(world.memory), strict=True):
        ref[_rows(AXIS, lane)] = value
    for k in range(2):
        after.moment.feet[lane, k] = world.feet[k]
    after.fallen[lane] = world.fallen
    after.rays[_rows(RAYS, lane)] = rays


def _rows(n: int, lane: Int[Array, " lanes"]) -> tuple[Int[Array, "n lanes"], Int[Array, "n lanes"]]:
    """Where the n entries of each environment are: the axis comes first here, the environments last."""
    shape = (n, *lane.shape)
    return jnp.broadcast_to(lane, shape), jnp.broadcast_to(index(n, 1), shape)


def _look(terrain: Any, lane: Int[Array, " lanes"], cell: Int[Array, "..."]) -> Cells:
    """`ground.look`, from references to the terrains of all environments."""
    at = jnp.broadcast_to(lane, cell.shape)

    def side(k: int) -> Array:
        return terrain.box[at, cell, jnp.full(cell.shape, k)]

    number = terrain.box_id[at, cell]
    return Cells(
        x1=terrain.x[at, cell],
        y1=terrain.y[at, cell],
        x2=terrain.x[at, cell + 1],
        y2=terrain.y[at, cell + 1],
        left=side(0),
        right=side(1),
        top=side(2),
        bottom=side(3),
        box=number,
        box_again=(number == terrain.box_id[at, jnp.maximum(cell - 1, 0)]) & (cell > 0),
    )
