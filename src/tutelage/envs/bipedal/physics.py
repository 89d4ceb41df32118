"""One step of the world, in Box2D's order: find contacts, solve velocities, move, settle positions, then impacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool

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
from tutelage.envs.bipedal.contacts import Contact, Feet, Footing, Memory, empty_memory, feel
from tutelage.envs.bipedal.exact import Drive, GripImpulse, JointImpulse, Problem, Solution, Velocities
from tutelage.envs.bipedal.ground import Look, first_cell
from tutelage.envs.bipedal.lanes import any_of, fence, if_used, index, known_lane, some, where
from tutelage.envs.bipedal.nearby import survey
from tutelage.envs.bipedal.position import FEW, Limits, Poses, settle, settle_some
from tutelage.envs.bipedal.scarce import where_scarce

Solver = Literal["prompt", "reduced", "exact"]
Efforts = tuple[Num, Num, Num, Num]  # of the four motors, −1 … 1

HULL_REACH = 1.2  # metres, of the hull around its centre of mass
HULL_WINDOW = 8  # cells
SAME = 1e-3  # metres or radians a second by which velocities may differ and count as equal


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
    push = pushed(asked, SOLVERS[solver](asked))
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


def is_first(joints: Sequence[JointImpulse]) -> Bool[Array, "..."]:
    """Whether an episode begins, so that the exact solver is needed (see `_solve`)."""
    return joints[0].x != 0


def first_pushed(problem: Problem, push: Push) -> Push:
    """For kernels: what the exact solver finds as an episode begins."""
    return agreed(literally(problem), push)


def literally(problem: Problem) -> Push:
    """What the exact solver finds."""
    return pushed(problem, exact.solve(problem))


def agreed(literal: Push, found: Push) -> Push:
    """What the exact solver found; if the reduced one found the same, all of a joint's impulses are its motor's."""
    return literal._replace(joints=_agreed_joints(literal.velocities, literal.joints, found.velocities))


def moved(problem: Problem, push: Push, solver: Solver) -> Bodies:
    """The bodies at the end of the step, their positions settled."""
    free = _set_free(problem, push)
    return _placed(free, settle(_poses(free), *_ties(problem), _still(solver)))


def moved_a_little(problem: Problem, push: Push, solver: Solver) -> tuple[Bodies, Bool[Array, "..."]]:
    """The same after a few iterations, and which walkers have not settled by then."""
    free = _set_free(problem, push)
    poses, unsettled = settle_some(_poses(free), *_ties(problem), _still(solver), FEW)
    return _placed(free, poses), unsettled


def moved_on(problem: Problem, bodies: Bodies, solver: Solver, times: int) -> tuple[Bodies, Bool[Array, "..."]]:
    """The bodies of those that have not, some iterations later, and which have not settled even then."""
    poses, unsettled = settle_some(_poses(bodies), *_ties(problem), _still(solver), times)
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


def _still(solver: Solver) -> float:
    """The movement at which all counts as in place."""
    return 0.0 if solver == "exact" else 1e-4


def effort(solver: Solver) -> impact.Effort:
    """How far impacts are followed."""
    return impact.THOROUGH if solver == "exact" else impact.ENOUGH


def _solve(problem: Problem) -> Solution:
    """The reduced solver, but as an episode begins the exact one.

    The first step starts with the walker in pieces, and what Box2D makes of it is far from what it would be after more
    iterations. The next may have more than one solution, and which one Box2D finds depends on the impulses that it
    begins with. As all episodes begin alike, errors would not cancel: walkers without a sense of balance, such as
    gymnasium's heuristic, fall or walk as it turns out. So the exact solver goes on until the reduced one finds the
    same. That it is to go on is known by the impulses in the joints' points, which only the exact solver leaves behind.
    """
    found = reduced.solve(problem)
    return where_scarce(is_first(problem.joints), _literal, (problem, found[0]), found, share=16)


def _literal(given: tuple[Problem, Velocities]) -> Solution:
    """What the exact solver makes of a problem for which the reduced one found these velocities."""
    problem, found = given
    velocities, joints, pressed = exact.solve(problem)
    return velocities, _agreed_joints(velocities, joints, found), pressed


SOLVERS = {"prompt": exact.solve_promptly, "reduced": _solve, "exact": exact.solve}


def _agreed_joints(
    velocities: Velocities, joints: tuple[JointImpulse, ...], found: Velocities
) -> tuple[JointImpulse, ...]:
    """The exact solver's impulses; those of the joints' points and limits only where it found other velocities."""
    pairs = [(u, v) for old, new in zip(found, velocities, strict=True) for u, v in zip(old, new, strict=True)]
    differs = any_of([jnp.abs(u - v) > SAME for u, v in pairs])
    none = jnp.zeros_like(joints[0].x)
    turning = tuple(JointImpulse(none, none, j.motor + j.limit, none) for j in joints)
    return where(differs, joints, turning)


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
