"""One step of the world, in Box2D's order: find contacts, solve velocities, move, settle positions, then impacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal import exact, impact, manifold, reduced
from tutelage.envs.bipedal.body import (
    GRAVITY,
    INVERSE_MASS,
    JOINTS,
    SKIN,
    STEP,
    TORQUE,
    Bodies,
    Body,
    Num,
    hull_polygon,
)
from tutelage.envs.bipedal.contacts import (
    AXIS,
    SLOTS,
    Contact,
    Feet,
    Memory,
    deepest,
    depths,
    empty_memory,
    latched,
    meet,
    recall,
    survey,
)
from tutelage.envs.bipedal.exact import Drive, JointImpulse, Velocities
from tutelage.envs.bipedal.ground import Look, first_cell
from tutelage.envs.bipedal.lanes import fence, in_kernel, index, join, some, some_lane, split, where
from tutelage.envs.bipedal.position import settle
from tutelage.envs.bipedal.scarce import where_scarce

Solver = Literal["reduced", "exact"]

HULL_REACH = 1.2  # metres, of the hull around its centre of mass
HULL_WINDOW = 8  # cells


class World(NamedTuple):
    """The walker and what it remembers from one step to the next."""

    bodies: Bodies
    joints: tuple[JointImpulse, ...]
    memory: Memory
    feet: Feet  # set when a contact begins, cleared when any of it ends
    fallen: Bool[Array, "..."]  # the hull has touched something


def at_rest(bodies: Bodies) -> World:
    """A world in which nothing has touched yet."""
    like = bodies[0].x
    none, no = jnp.zeros_like(like), jnp.zeros_like(like, bool)
    return World(bodies, (JointImpulse(none, none, none, none),) * 4, empty_memory(like), (no, no), no)


def step(world: World, action: tuple[Num, Num, Num, Num], look: Look, solver: Solver, push: Num | float = 0.0) -> World:
    """The world 0.02 s later. `push` is a force in N on the hull, to the right."""
    start = world.bodies
    cell, cells = survey(start[1:], look)
    contacts = meet(deepest(depths(start[1:], cells), cell), start[1:], look)
    memory = recall(contacts, world.memory)
    feet = latched(world.feet, world.memory, memory)
    drives = tuple(_drive(k, start, action[k]) for k in range(4))
    velocities = tuple((b.vx, b.vy + STEP * GRAVITY, b.spin) for b in start)
    velocities = ((start[0].vx + STEP * INVERSE_MASS[0] * push, *velocities[0][1:]), *velocities[1:])
    solve = exact.solve if solver == "exact" else _solve
    velocities, joints, pressed = solve(start, velocities, drives, world.joints, contacts, memory)
    memory = _stored(memory, pressed)
    free = tuple(impact.moved(b[:3], v, STEP) for b, v in zip(start, velocities, strict=True))
    limits = tuple((d.at_lower, d.at_upper) for d in drives)
    poses = settle(tuple(b[:3] for b in free), split(contacts, SLOTS), limits, 0.0 if solver == "exact" else 1e-4)
    end: Bodies = tuple(b._replace(x=p[0], y=p[1], angle=p[2]) for p, b in zip(poses, free, strict=True))
    fallen = world.fallen | _hull_touches(start[0], end[0], look)
    effort = impact.THOROUGH if solver == "exact" else impact.ENOUGH
    end, memory, feet = impact.strike(start, end, cell, cells, look, memory, feet, effort)
    return World(end, joints, memory, feet, fallen)


def _solve(bodies: Bodies, velocities: Velocities, drives: Sequence[Drive], joints, contacts: Contact, memory: Memory):
    """The reduced solver, but for the first step of an episode the exact one.

    That step starts with the walker in pieces, and what Box2D makes of it is far from what it would be after more
    iterations; walkers without a sense of balance, such as gymnasium's heuristic, fall or walk as it turns out. It is
    known by the impulses in the joints' points, which only the exact solver leaves behind.
    """
    first = joints[0].x != 0
    given = (bodies, velocities, drives, joints, contacts, memory)
    fast = reduced.solve(*given)
    if in_kernel():
        return where(first, _literal(jnp.where(some_lane(first), exact.ITERATIONS, 0), *given), fast)
    return where_scarce(first, lambda given: _literal(jnp.int32(exact.ITERATIONS), *given), given, fast)


def _literal(
    iterations: Int[Array, ""],
    bodies: Bodies,
    velocities: Velocities,
    drives: Sequence[Drive],
    joints: tuple[JointImpulse, ...],
    contacts: Contact,
    memory: Memory,
) -> PyTree:
    """What the exact solver makes of it, with all of a joint's impulses counted as its motor's."""
    velocities, joints, pressed = exact.solve(bodies, velocities, drives, joints, contacts, memory, iterations)
    none = jnp.zeros_like(joints[0].x)
    return velocities, tuple(JointImpulse(none, none, j.motor + j.limit, none) for j in joints), pressed


def _drive(k: int, bodies: Bodies, action: Num) -> Drive:
    """What an action in [−1, 1] asks of joint k's motor, and whether the joint is at a limit."""
    joint = JOINTS[k]
    angle = bodies[joint.b].angle - bodies[joint.a].angle - joint.reference
    impulse = STEP * TORQUE * jnp.minimum(jnp.abs(action), 1.0)
    return Drive(joint.speed * jnp.sign(action), impulse, angle <= joint.lower, angle >= joint.upper)


def _stored(memory: Memory, pressed: PyTree) -> Memory:
    """The memory with the impulses of this step."""
    impulse = join(pressed, AXIS)
    return memory._replace(normal=impulse.normal, tangent=impulse.tangent)


def _hull_touches(start: Body, end: Body, look: Look) -> Bool[Array, "..."]:
    """Whether the hull touches at the step's start, or has come so close at its end that it would be stopped."""
    cell = first_cell(start.x - HULL_REACH, HULL_WINDOW) + index(HULL_WINDOW, start.x.ndim)
    cells = fence(look(cell))
    touches = []
    for body, near in ((start, SKIN), (end, 0.75 * impact.TARGET)):
        shape = fence(hull_polygon(body.x, body.y, body.angle))
        edge = manifold.with_edge(shape, cells.x1, cells.y1, cells.x2, cells.y2)
        box = manifold.with_box(shape, cells.left, cells.right, cells.top, cells.bottom)
        touches.append((edge.depth <= near) | (box.depth <= near))
    return some(touches[0] | touches[1])
