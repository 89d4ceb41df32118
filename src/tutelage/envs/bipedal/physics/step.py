"""The stages of a step of the world: what each does, as Box2D does it.

Find contacts, solve velocities, move, settle positions, look around, then impacts. Their order, and what each reads and
writes, is the table in `run.stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage.envs.bipedal.physics import contacts, impact, lidar, manifold, nearby
from tutelage.envs.bipedal.physics.body import (
    GRAVITY,
    JOINTS,
    SECONDS,
    SKIN,
    TORQUE,
    Bodies,
    Body,
    Num,
    hull_origin,
    hull_polygon,
)
from tutelage.envs.bipedal.physics.contacts import Contact, Feet, Footing, Memory, empty_memory
from tutelage.envs.bipedal.physics.ground import Look, first_cell
from tutelage.envs.bipedal.physics.impact import Aimed, Flight
from tutelage.envs.bipedal.physics.machine import fence, if_any
from tutelage.envs.bipedal.physics.nearby import Surveyed
from tutelage.envs.bipedal.physics.position import Limits, Poses, settle, settle_some
from tutelage.envs.bipedal.physics.tools import index, some
from tutelage.envs.bipedal.physics.velocity import Drive, JointImpulse, Problem, Solution, Velocities

TOLERANCE = 1e-3  # metres or radians a second, of the velocity solver
HULL_REACH = 1.2  # metres, of the hull around its centre of mass
HULL_WINDOW = 8  # cells

Efforts = tuple[Num, Num, Num, Num]  # of the four motors, −1 … 1


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


class Seen(NamedTuple):
    """What there is to be seen at a step's end."""

    fallen: Bool[Array, "..."]  # the hull touches something
    rays: Float[Array, "16 ..."]


def survey(world: World, look: Look) -> Surveyed:
    """The ground around the legs."""
    return nearby.cells_around(world.bodies[1:], look)


def feel(world: World, surveyed: Surveyed, look: Look) -> Footing:
    """What the legs touch."""
    return contacts.footing_of(world.bodies[1:], surveyed, look, world.memory, world.feet)


def problem(world: World, action: Efforts, footing: Footing) -> Problem:
    """What the velocity solver is given."""
    start = world.bodies
    drives = tuple(_drive(k, start, action[k]) for k in range(4))
    velocities = tuple((b.vx, b.vy + SECONDS * GRAVITY, b.spin) for b in start)
    return Problem(start, velocities, drives, world.joints, footing.contacts, footing.memory)


def pushed(problem: Problem, solution: Solution) -> Push:
    """A solution, its impulses on the contacts remembered."""
    velocities, joints, pressed = solution
    return Push(velocities, joints, problem.memory._replace(normal=pressed.normal, tangent=pressed.tangent))


def move(push: Push, problem: Problem, footing: Footing, *, tolerance: float, portions: Sequence[int]) -> Flight:
    """Where the bodies are at the end of the step, their positions settled, if nothing is struck on the way."""
    free = _set_free(problem, push)
    end = _set_down(free, settle(_poses_of(free), *_ties(problem), _still(tolerance), portions))
    return impact.take_off(problem.bodies, end, push.memory, footing.feet)


def move_a_little(push: Push, problem: Problem, footing: Footing, *, tolerance: float, times: int) -> Flight:
    """`move`, with no more iterations over positions than this."""
    free = _set_free(problem, push)
    poses, unsettled = settle_some(_poses_of(free), *_ties(problem), _still(tolerance), times)
    flight = impact.take_off(problem.bodies, _set_down(free, poses), push.memory, footing.feet)
    return flight._replace(unsettled=unsettled)


def settle_on(problem: Problem, flight: Flight, *, tolerance: float, times: int) -> Flight:
    """The positions of those who have not settled by then, some iterations later."""
    poses, unsettled = settle_some(_poses_of(flight.end), *_ties(problem), _still(tolerance), times)
    return flight._replace(end=_set_down(flight.end, poses), unsettled=unsettled)


def see(world: World, flight: Flight, look: Look) -> Seen:
    """Whether the hull touches, and the lidar."""
    hull = flight.end[0]
    fallen = hull_touches(world.bodies[0], hull, look)
    return Seen(fallen, fence(lidar.scan(*hull_origin(hull), look)))


def touch(flight: Flight, aimed: Aimed, surveyed: Surveyed, look: Look) -> Footing:
    """What the struck legs touch where they meet the ground."""
    return contacts.footing_of(aimed.met, surveyed, look, flight.memory, flight.feet, at_impact=True)


def _set_free(problem: Problem, push: Push) -> Bodies:
    """The bodies, each by itself, at the end of the step."""
    return tuple(impact.moved(b[:3], v, SECONDS) for b, v in zip(problem.bodies, push.velocities, strict=True))


def _poses_of(bodies: Bodies) -> Poses:
    return tuple(b[:3] for b in bodies)


def _set_down(bodies: Bodies, poses: Poses) -> Bodies:
    return tuple(b._replace(x=p[0], y=p[1], angle=p[2]) for p, b in zip(poses, bodies, strict=True))


def _ties(problem: Problem) -> tuple[Contact, Limits]:
    return problem.contacts, tuple((d.at_lower, d.at_upper) for d in problem.drives)


def _still(tolerance: float) -> float:
    """Metres or radians: movements by no more count as none."""
    return 0.1 * tolerance


def _drive(k: int, bodies: Bodies, action: Num) -> Drive:
    """What an action in [−1, 1] asks of joint k's motor, and whether the joint is at a limit."""
    joint = JOINTS[k]
    angle = bodies[joint.b].angle - bodies[joint.a].angle - joint.reference
    impulse = SECONDS * TORQUE * jnp.minimum(jnp.abs(action), 1.0)
    return Drive(joint.speed * jnp.sign(action), impulse, angle <= joint.lower, angle >= joint.upper)


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
    return if_any(reached, touches, jnp.zeros_like(reached))
