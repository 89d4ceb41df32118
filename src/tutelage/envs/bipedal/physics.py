"""One step of the world, in Box2D's order: find contacts, solve velocities, move, settle positions, then impacts."""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal import exact, impact, manifold, reduced
from tutelage.envs.bipedal.body import (
    GRAVITY,
    JOINTS,
    SKIN,
    STEP,
    TORQUE,
    Bodies,
    Body,
    Num,
    hull_polygon,
)
from tutelage.envs.bipedal.contacts import AXIS, Feet, Footing, Memory, empty_memory, feel, survey
from tutelage.envs.bipedal.exact import Drive, JointImpulse, Problem, Solution, Velocities
from tutelage.envs.bipedal.ground import Look, first_cell
from tutelage.envs.bipedal.lanes import fence, index, join, some, where
from tutelage.envs.bipedal.position import settle
from tutelage.envs.bipedal.scarce import where_scarce

Solver = Literal["reduced", "exact"]
Efforts = tuple[Num, Num, Num, Num]  # of the four motors, −1 … 1

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


class Push(NamedTuple):
    """What the velocity solver has found."""

    velocities: Velocities
    joints: tuple[JointImpulse, ...]
    memory: Memory


def step(world: World, action: Efforts, look: Look, solver: Solver) -> World:
    """The world 0.02 s later."""
    surveyed = survey(world.bodies[1:], look)
    footing = feel(world.bodies[1:], surveyed, look, world.memory, world.feet)
    asked = problem(world, action, footing)
    push = pushed(asked, exact.solve(asked) if solver == "exact" else _solve(asked))
    end = moved(asked, push, solver)
    fallen = world.fallen | hull_touches(world.bodies[0], end[0], look)
    end, memory, feet = impact.strike(world.bodies, end, surveyed, look, push.memory, footing.feet, effort(solver))
    return World(end, push.joints, memory, feet, fallen)


def problem(world: World, action: Efforts, footing: Footing) -> Problem:
    """What the velocity solver is given."""
    start = world.bodies
    drives = tuple(_drive(k, start, action[k]) for k in range(4))
    velocities = tuple((b.vx, b.vy + STEP * GRAVITY, b.spin) for b in start)
    return Problem(start, velocities, drives, world.joints, footing.contacts, footing.memory)


def pushed(problem: Problem, solution: Solution) -> Push:
    """A solution, its impulses on the contacts remembered."""
    velocities, joints, pressed = solution
    return Push(velocities, joints, _stored(problem.memory, pressed))


def first_pushed(problem: Problem, push: Push) -> Push:
    """For kernels: in the first step of an episode what the exact solver finds (see `_solve`), else `push`."""
    first = problem.joints[0].x != 0
    iterations = exact.ITERATIONS * jnp.max(first.astype(jnp.int32))  # none if it is nobody's first
    return where(first, pushed(problem, _literal(problem, iterations)), push)


def moved(problem: Problem, push: Push, solver: Solver) -> Bodies:
    """The bodies at the end of the step, their positions settled."""
    free = tuple(impact.moved(b[:3], v, STEP) for b, v in zip(problem.bodies, push.velocities, strict=True))
    limits = tuple((d.at_lower, d.at_upper) for d in problem.drives)
    poses = settle(tuple(b[:3] for b in free), problem.contacts, limits, 0.0 if solver == "exact" else 1e-4)
    return tuple(b._replace(x=p[0], y=p[1], angle=p[2]) for p, b in zip(poses, free, strict=True))


def effort(solver: Solver) -> impact.Effort:
    """How far impacts are followed."""
    return impact.THOROUGH if solver == "exact" else impact.ENOUGH


def _solve(problem: Problem) -> Solution:
    """The reduced solver, but for the first step of an episode the exact one.

    That step starts with the walker in pieces, and what Box2D makes of it is far from what it would be after more
    iterations; walkers without a sense of balance, such as gymnasium's heuristic, fall or walk as it turns out. It is
    known by the impulses in the joints' points, which only the exact solver leaves behind.
    """
    first = problem.joints[0].x != 0
    return where_scarce(first, _literal, problem, reduced.solve(problem), share=16)


def _literal(problem: Problem, iterations: Int[Array, ""] | int = exact.ITERATIONS) -> Solution:
    """What the exact solver makes of it, with all of a joint's impulses counted as its motor's."""
    velocities, joints, pressed = exact.solve(problem, iterations)
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


def hull_touches(start: Body, end: Body, look: Look) -> Bool[Array, "..."]:
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
