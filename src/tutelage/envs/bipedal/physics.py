"""One step of the world, in Box2D's order: find contacts, solve velocities, move, settle positions, then impacts."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool

from tutelage.envs.bipedal import exact, impact, manifold
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
from tutelage.envs.bipedal.contacts import Contact, Feet, Footing, Memory, empty_memory, feel
from tutelage.envs.bipedal.exact import Drive, GripImpulse, JointImpulse, Problem, Solution, Velocities
from tutelage.envs.bipedal.ground import Look, first_cell
from tutelage.envs.bipedal.lanes import fence, if_used, index, known_lane, some
from tutelage.envs.bipedal.nearby import survey
from tutelage.envs.bipedal.position import FEW, Limits, Poses, settle, settle_some

TOLERANCE = 1e-3  # metres or radians a second
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


def step(world: World, action: Efforts, look: Look, tolerance: float) -> World:
    """The world 0.02 s later."""
    surveyed = survey(world.bodies[1:], look)
    footing = feel(world.bodies[1:], surveyed, look, world.memory, world.feet)
    asked = problem(world, action, footing)
    push = pushed(asked, exact.solve(asked, tolerance))
    end = moved(asked, push, tolerance)
    fallen = world.fallen | hull_touches(world.bodies[0], end[0], look)
    end, memory, feet = impact.strike(world.bodies, end, surveyed, look, push.memory, footing.feet, effort(tolerance))
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


def thoroughly(problem: Problem) -> Push:
    """What all iterations find."""
    return pushed(problem, exact.solve_all(problem))


def moved(problem: Problem, push: Push, tolerance: float) -> Bodies:
    """The bodies at the end of the step, their positions settled."""
    free = _set_free(problem, push)
    return _placed(free, settle(_poses(free), *_ties(problem), _still(tolerance)))


def moved_a_little(problem: Problem, push: Push, tolerance: float) -> tuple[Bodies, Bool[Array, "..."]]:
    """The same after a few iterations, and which walkers have not settled by then."""
    free = _set_free(problem, push)
    poses, unsettled = settle_some(_poses(free), *_ties(problem), _still(tolerance), FEW)
    return _placed(free, poses), unsettled


def moved_on(problem: Problem, bodies: Bodies, tolerance: float, times: int) -> tuple[Bodies, Bool[Array, "..."]]:
    """The bodies of those that have not, some iterations later, and which have not settled even then."""
    poses, unsettled = settle_some(_poses(bodies), *_ties(problem), _still(tolerance), times)
    return _placed(bodies, poses), unsettled


def _set_free(problem: Problem, push: Push) -> Bodies:
    """The bodies, each by itself, at the end of the step."""
    return tuple(impact.moved(b[:3], v, STEP) for b, v in zip(problem.bodies, push.velocities, strict=True))


def _poses(bodies: Bodies) -> Poses:
    return tuple(b[:3] for b in bodies)


def _placed(bodies: Bodies, poses: Poses) -> Bodies:
    return tuple(b._replace(x=p[0], y=p[1], angle=p[2]) for p, b in zip(poses, bodies, strict=True))


def _ties(problem: Problem) -> tuple[Contact, Limits]:
    return problem.contacts, tuple((d.at_lower, d.at_upper) for d in problem.drives)


def _still(tolerance: float) -> float:
    """Metres or radians: movements by no more count as none."""
    return 0.1 * tolerance


def effort(tolerance: float) -> impact.Effort:
    """How far impacts are followed."""
    return impact.ENOUGH if tolerance else impact.THOROUGH


def _drive(k: int, bodies: Bodies, action: Num) -> Drive:
    """What an action in [−1, 1] asks of joint k's motor, and whether the joint is at a limit."""
    joint = JOINTS[k]
    angle = bodies[joint.b].angle - bodies[joint.a].angle - joint.reference
    impulse = STEP * TORQUE * jnp.minimum(jnp.abs(action), 1.0)
    return Drive(joint.speed * jnp.sign(action), impulse, angle <= joint.lower, angle >= joint.upper)


def _stored(memory: Memory, pressed: GripImpulse) -> Memory:
    """The memory with the impulses of this step."""
    return memory._replace(normal=pressed.normal, tangent=pressed.tangent)


def hull_touches(start: Body, end: Body, look: Look) -> Bool[Array, "..."]:
    """Whether the hull touches at the step's start, or has come so close at its end that it would be stopped."""
    cell = first_cell(start.x - HULL_REACH, HULL_WINDOW) + index(HULL_WINDOW, start.x.ndim)
    cells = fence(look(cell))

    def touches(_: Bool[Array, "..."]) -> Bool[Array, "..."]:
        found = []
        for body, near in ((start, SKIN), (end, 0.75 * impact.TARGET)):
            shape = fence(hull_polygon(body.x, body.y, body.angle))
            edge = manifold.with_edge(shape, cells.x1, cells.y1, cells.x2, cells.y2)
            box = manifold.with_box(shape, cells.left, cells.right, cells.top, cells.bottom)
            found.append((edge.depth <= near) | (box.depth <= near))
        return some(found[0] | found[1])

    top = jnp.maximum(jnp.maximum(cells.y1, cells.y2), jnp.where(cells.left < cells.right, cells.top, -jnp.inf))
    reached = some(top >= jnp.minimum(start.y, end.y) - HULL_REACH - SKIN)
    return if_used(known_lane(reached), touches, jnp.zeros_like(reached))
