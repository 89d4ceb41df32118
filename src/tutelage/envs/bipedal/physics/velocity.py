"""Box2D's own velocity solver: sequential impulses over the joints and the contacts, 180 times.

Joints have a motor, a limit and a point that keeps the two anchors together; contacts have friction and two normal
impulses, solved as a block. Impulses are accumulated and start from those of the step before.

After a while, which contacts and limits push no longer changes, an iteration is a linear map, and what is left of its
changes shrinks by the same share each time. So a walker's iterations end after a round in which six of them change by
no more than a tolerance how fast it moves, in metres or radians a second, and how hard it presses on the ground, in
newton seconds; what the rest of the 180 would still change at that rate is added. Ten rounds are of six iterations, the
others of 24; three are made in any case, and at a tolerance of 0 all. (How hard is watched because two legs can share a
load in many ways: how they do settles after velocities have.) Which walkers go through them together, on CPUs and on
GPUs, is said in `run.solving`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.physics.body import (
    FRICTION,
    INVERSE_INERTIA,
    INVERSE_MASS,
    JOINTS,
    LEGS,
    SOLVING_ORDER,
    Bodies,
    Joint,
    Num,
    cos_sin,
    turn,
)
from tutelage.envs.bipedal.physics.contacts import AXIS, SLOTS, Contact, Memory
from tutelage.envs.bipedal.physics.machine import InUse, fence, if_any, machine
from tutelage.envs.bipedal.physics.tools import largest, where

ITERATIONS = 180
EARLY, SHORT = 10, 6  # rounds, and iterations in each; to look after a round what still changes takes time
LONG = 24  # iterations in a later round, as few walkers' end there
ROUNDS = EARLY + (ITERATIONS - EARLY * SHORT) // LONG
SURE = 3  # rounds that are made in any case
SHRINKING = math.log(1e-3), math.log(0.99)  # the most and the least that changes may shrink from round to round

Velocity = tuple[Num, ...]  # vx, vy, spin
Velocities = tuple[Velocity, ...]


class JointImpulse(NamedTuple):
    """What a joint's point, motor and limit have exerted, accumulated over a step."""

    x: Num
    y: Num
    motor: Num
    limit: Num


class Drive(NamedTuple):
    """What a joint's motor is told, and which of the joint's limits it has reached."""

    speed: Num
    impulse: Num  # the most the motor can exert in a step
    at_lower: Bool[Array, "..."]
    at_upper: Bool[Array, "..."]


class Hinge(NamedTuple):
    """A joint's lever arms and the symmetric matrix of point x, point y and angle."""

    ax: Num
    ay: Num
    bx: Num
    by: Num
    k11: Num
    k12: Num
    k13: Num
    k22: Num
    k23: Num
    k33: float


class Lock(NamedTuple):
    """A joint as the iterations use it: lever arms, and what follows from its matrix K."""

    ax: Num
    ay: Num
    bx: Num
    by: Num
    xx: Num  # the inverse of the point's part of K
    xy: Num
    yy: Num
    gx: Num  # the point's impulse that makes up for one unit of turning
    gy: Num
    stiffness: Num  # the last entry of the inverse of K: an angle that is locked, as the point is

    @classmethod
    def of(cls, k: Hinge) -> Lock:
        """What the iterations use of a hinge."""
        det = 1 / (k.k11 * k.k22 - k.k12 * k.k12)
        xx, xy, yy = det * k.k22, -det * k.k12, det * k.k11
        gx, gy = xx * k.k13 + xy * k.k23, xy * k.k13 + yy * k.k23
        return cls(*k[:4], xx, xy, yy, gx, gy, 1 / (k.k33 - k.k13 * gx - k.k23 * gy))


class Grip(NamedTuple):
    """A contact as the velocity solver uses it."""

    on: tuple[Bool[Array, "..."], ...]  # of two points, which are solved as a block, or the first alone
    body: Array
    nx: Num
    ny: Num
    lever: tuple[Num, ...]  # arm × normal
    grasp: tuple[Num, ...]  # arm × tangent
    inverse_det: Num
    normal_mass: tuple[Num, ...]  # zeros for points that are off
    tangent_mass: tuple[Num, ...]
    inverse_mass: Num
    inverse_inertia: Num

    @property
    def block(self) -> tuple[Num, Num, Num]:
        """The symmetric matrix of both points' normal impulses: k11, k12, k22."""
        (a, b), m, i = self.lever, self.inverse_mass, self.inverse_inertia
        return m + i * a * a, m + i * a * b, m + i * b * b


class GripImpulse(NamedTuple):
    """What a contact's two points have exerted."""

    normal: tuple[Num, ...]
    tangent: tuple[Num, ...]


class Problem(NamedTuple):
    """What a velocity solver is given: the world as the step begins."""

    bodies: Bodies
    velocities: Velocities  # with what gravity has added
    drives: tuple[Drive, ...]
    joints: tuple[JointImpulse, ...]  # of the last step
    contacts: Contact
    memory: Memory  # of those contacts


Solution = tuple[Velocities, tuple[JointImpulse, ...], GripImpulse]
"""Velocities after the step's impulses, and those impulses: the joints', and the contacts', `[8, …]`."""


Gripping = Callable[["Grip", tuple[Velocity, "GripImpulse"]], tuple[Velocity, "GripImpulse"]]


class Course(NamedTuple):
    """What changes from iteration to iteration."""

    velocities: Velocities
    joints: tuple[JointImpulse, ...]
    held: PyTree  # the contacts' impulses, as `split` makes them


class Task(NamedTuple):
    """What does not."""

    hinges: tuple[Any, ...]  # each a `Hinge`, or a `Lock` when it is ready
    drives: tuple[Drive, ...]
    grips: PyTree  # as `split` makes them
    used: InUse
    turned: Any  # contacts whose only point, the second, is taken for the first


def solve(problem: Problem, tolerance: float) -> Solution:
    """Velocities and impulses after the iterations, which may end at the tolerance."""
    if tolerance == 0:
        return solve_all(problem)
    task, course = prepared(problem)
    return solution(task, rounds(partial(iterate, task), at_first(course), Span(0, ROUNDS, tolerance)).course)


def solve_all(problem: Problem) -> Solution:
    """After all of Box2D's 180 iterations."""
    task, course = prepared(problem)
    return solution(task, lax.fori_loop(0, ITERATIONS, lambda _, course: iterate(task, course), course))


def _speeds(course: Course) -> tuple[Num, ...]:
    """The hull's velocity and how fast the legs turn, from which the rest follows where anchors are together."""
    return (*course.velocities[0], *(spin for _, _, spin in course.velocities[1:]))


def _pressing(course: Course) -> list[Array]:
    """The contacts' normal impulses; where contacts lie on an axis, that comes first."""
    held = jax.tree.leaves(course.held, is_leaf=lambda part: isinstance(part, GripImpulse))
    return [impulse for part in held for impulse in part.normal]


def _change(course: Course, before: Course) -> Num:
    """The largest of what is watched, in metres or radians a second, or newton seconds."""
    moved, pressed = (
        [jnp.abs(new - old) for new, old in zip(watched(course), watched(before), strict=True)]
        for watched in (_speeds, _pressing)
    )
    return largest([*moved, *(p if p.ndim == moved[0].ndim else jnp.max(p, axis=0) for p in pressed)])


class Span(NamedTuple):
    """Which rounds may be made, and by how much one must change what is watched for the next to be."""

    first: int
    last: int
    tolerance: float


class Rounds(NamedTuple):
    """Where rounds of iterations have come to."""

    course: Course
    change: Num  # by six iterations, as they were in the last round
    going: Bool[Array, "..."]


def length(k: Int[Array, ""] | int) -> Int[Array, ""]:
    """How many iterations round k is."""
    return jnp.where(k < EARLY, jnp.int32(SHORT), jnp.int32(LONG))


def at_first(course: Course) -> Rounds:
    """Before the first round."""
    none = jnp.zeros_like(course.velocities[0][0])
    return Rounds(course, none, none == 0)


def rounds_of(number: int, grip: Gripping, task: Task, at: Rounds, span: Span) -> Rounds:
    """`rounds` where there are at most so many contacts, for each of which `grip` does: loops in which nothing
    branches.
    """
    grips = [machine().part(task.grips, k) for k in range(number)]

    def once(course: Course) -> Course:
        velocities, joints = _solve_joints(task, course)
        held = list(course.held)
        for k, one in enumerate(grips):
            velocity, held[k] = grip(one, (_velocity_of(velocities, one.body), held[k]))
            velocities = _put(velocities, one.body, velocity)
        return Course(velocities, joints, tuple(held))

    pressed = at.course.held
    held = tuple(machine().part(pressed, k) for k in range(number))
    at = rounds(once, at._replace(course=at.course._replace(held=held)), span)
    for k, part in enumerate(at.course.held):
        pressed = machine().with_part(pressed, k, part)
    return at._replace(course=at.course._replace(held=pressed))


def rounds(iterate: Callable[[Course], Course], at: Rounds, span: Span) -> Rounds:
    """Rounds of iterations, as long as they change something."""
    at_once = at.change.size == 1 or span.last <= SURE  # none waits for another

    def one_round(k: Int[Array, ""], at: Rounds) -> Rounds:
        course = lax.fori_loop(0, length(k), lambda _, course: iterate(course), at.course)
        course = course if at_once else where(at.going, course, at.course)
        change = _change(course, at.course) * (SHORT / length(k).astype(jnp.float32))
        going = at.going & ((change > span.tolerance) | (k < SURE - 1))
        ends = at.going & ~going
        course = if_any(ends, lambda course: _carried_on(at, course, change, ends, k), course)
        return Rounds(course, change, going)

    return machine().while_active(lambda at: at.going, one_round, at, first=span.first, last=span.last)


def _carried_on(at: Rounds, course: Course, change: Num, ends: Bool[Array, "..."], k: Int[Array, ""]) -> Course:
    """For whom it ends: where the iterations that are left would lead to, if what they change shrinks as it just did,
    from the middle of one round to the middle of the next.
    """
    here, before = (length(number).astype(jnp.float32) for number in (k, k - 1))
    shrinks = jnp.log(change / jnp.maximum(at.change, 1e-9)) * (2 * here / (here + before))
    shrinks = jnp.clip(shrinks, *SHRINKING)  # in a round as long as this one
    rounds = k.astype(jnp.float32)
    left = jnp.where(k < EARLY, ITERATIONS // SHORT - 1 - rounds, ROUNDS - 1 - rounds)
    share = jnp.exp(shrinks)
    far = jnp.where(ends, share * (1 - jnp.exp(left * shrinks)) / (1 - share), 0.0)
    return jax.tree.map(lambda new, old: new + far * (new - old), course, at.course)


def solution(task: Task, course: Course) -> Solution:
    """What the course has come to."""
    return course.velocities, course.joints, GripImpulse(*_turned(task.turned, machine().join(course.held, AXIS)))


def _turned(which: Bool[Array, "8 ..."], pairs: tuple[tuple[Array, ...], ...]) -> Iterator[tuple[Array, ...]]:
    """Pairs of values, one for each point, exchanged in some of the contacts."""
    return (where(which, pair[::-1], pair) for pair in pairs)


def prepared(problem: Problem) -> tuple[Task, Course]:
    """The task, with all that can be known before the iterations, and the velocities with the last step's impulses."""
    task, course = begin(problem)
    return task._replace(hinges=fence(locked(task.hinges))), course


def begin(problem: Problem) -> tuple[Task, Course]:
    """`prepared`, but that the joints are hinges yet."""
    bodies, velocities, drives, joints, contacts, memory = problem
    hinges = tuple(hinge(joint, bodies) for joint in JOINTS)
    turned, contacts = is_turned(contacts), with_first(contacts)
    used = machine().in_use(contacts.on)
    held = machine().split(GripImpulse(*_turned(turned, (memory.normal, memory.tangent))), SLOTS, used)
    grips = grips_of(contacts, used)
    joints = tuple(_warm(impulse, drive) for impulse, drive in zip(joints, drives, strict=True))
    velocities, _ = machine().over(_start_grip, velocities, grips, held, used)
    for joint, lever, impulse in zip(JOINTS, hinges, joints, strict=True):
        turning = impulse.motor + impulse.limit
        velocities = _apply(velocities, joint, lever, impulse.x, impulse.y, turning)
    return Task(hinges, drives, grips, used, turned), Course(velocities, joints, held)


def locked(hinges: Sequence[Hinge]) -> tuple[Lock, ...]:
    """The joints as the iterations use them."""
    return tuple(Lock.of(hinge) for hinge in hinges)


def iterate(task: Task, course: Course) -> Course:
    """One of Box2D's iterations."""
    velocities, joints = _solve_joints(task, course)
    velocities, held = grip_all(velocities, task.grips, course.held, task.used)
    return Course(velocities, joints, held)


def _solve_joints(task: Task, course: Course) -> tuple[Velocities, tuple[JointImpulse, ...]]:
    velocities, joints = course.velocities, list(course.joints)
    for j in SOLVING_ORDER:
        velocities, joints[j] = _solve_joint(velocities, JOINTS[j], task.hinges[j], task.drives[j], joints[j])
    return velocities, tuple(joints)


def hinge(joint: Joint, bodies: Bodies) -> Hinge:
    """The joint at the bodies' present angles."""
    a, b = bodies[joint.a], bodies[joint.b]
    ax, ay = turn(*cos_sin(a.angle), *joint.anchor_a)
    bx, by = turn(*cos_sin(b.angle), *joint.anchor_b)
    m = INVERSE_MASS[joint.a] + INVERSE_MASS[joint.b]
    ia, ib = INVERSE_INERTIA[joint.a], INVERSE_INERTIA[joint.b]
    k11, k12, k22 = m + ia * ay * ay + ib * by * by, -ia * ax * ay - ib * bx * by, m + ia * ax * ax + ib * bx * bx
    return Hinge(ax, ay, bx, by, k11, k12, -ia * ay - ib * by, k22, ia * ax + ib * bx, ia + ib)


def _warm(impulse: JointImpulse, drive: Drive) -> JointImpulse:
    """The last step's impulse, without that of a limit the joint has left."""
    limit = jnp.where(drive.at_lower, jnp.maximum(impulse.limit, 0.0), 0.0)
    return impulse._replace(limit=jnp.where(drive.at_upper, jnp.minimum(impulse.limit, 0.0), limit))


def _apply(velocities: Velocities, joint: Joint, lever: Hinge | Lock, px: Num, py: Num, turning: Num) -> Velocities:
    (avx, avy, aw), (bvx, bvy, bw) = velocities[joint.a], velocities[joint.b]
    ma, mb = INVERSE_MASS[joint.a], INVERSE_MASS[joint.b]
    ia, ib = INVERSE_INERTIA[joint.a], INVERSE_INERTIA[joint.b]
    new = list(velocities)
    new[joint.a] = fence((avx - ma * px, avy - ma * py, aw - ia * (lever.ax * py - lever.ay * px + turning)))
    new[joint.b] = fence((bvx + mb * px, bvy + mb * py, bw + ib * (lever.bx * py - lever.by * px + turning)))
    return tuple(new)


def _solve_joint(
    velocities: Velocities, joint: Joint, k: Lock, drive: Drive, held: JointImpulse
) -> tuple[Velocities, JointImpulse]:
    """The motor, then the point, with the limit if that pushes.

    Box2D turns the bodies by the motor's impulse first, then solves for point and limit together, and if the limit
    would have to pull, for the point alone. From the turning impulse, the motor's and the limit's, the point's follows,
    and the limit's is what locks the joint, as far as that pushes. So little of it has to wait for the rest.
    """
    (avx, avy, aw), (bvx, bvy, bw) = velocities[joint.a], velocities[joint.b]
    cx, cy, relative = bvx - avx - bw * k.by + aw * k.ay, bvy - avy + bw * k.bx - aw * k.ax, bw - aw
    share = 1 / (INVERSE_INERTIA[joint.a] + INVERSE_INERTIA[joint.b])
    motor = jnp.clip(held.motor + share * drive.speed - share * relative, -drive.impulse, drive.impulse)
    turning = motor - held.motor
    locks = held.limit + (k.gx * cx + k.gy * cy - relative) * k.stiffness
    limit = jnp.clip(locks - turning, *_pushes(drive))
    turning = limit + (turning - held.limit)
    x, y = -(k.xx * cx + k.xy * cy) - k.gx * turning, -(k.xy * cx + k.yy * cy) - k.gy * turning
    x, y, turning = fence((x, y, turning))
    velocities = _apply(velocities, joint, k, x, y, turning)
    return velocities, JointImpulse(held.x + x, held.y + y, motor, limit)


def _pushes(drive: Drive) -> tuple[Num, Num]:
    """The impulses that a joint's limit can have: of either sign, or none."""
    return jnp.where(drive.at_upper, -jnp.inf, 0.0), jnp.where(drive.at_lower, jnp.inf, 0.0)


def is_turned(contacts: Contact) -> Bool[Array, "8 ..."]:
    """Contacts of one point, the second; for the solver it is the first."""
    return contacts.on[1] & ~contacts.on[0]


def with_first(contacts: Contact) -> Contact:
    """The contacts as the solver has them: that of one point has a first."""
    on, arm_x, arm_y = _turned(is_turned(contacts), (contacts.on, contacts.arm_x, contacts.arm_y))
    return contacts._replace(on=on, arm_x=arm_x, arm_y=arm_y)


def grips_of(contacts: Contact, used: InUse) -> PyTree:
    """Such contacts `[8, …]`, prepared, as `split` makes them."""
    return machine().split(fence(_grip(contacts)), SLOTS, used)


def _grip(c: Contact) -> Grip:
    m, i = c.inverse_mass, c.inverse_inertia
    a, b = (x * c.normal_y - y * c.normal_x for x, y in zip(c.arm_x, c.arm_y, strict=True))
    along = tuple(-(x * c.normal_x + y * c.normal_y) for x, y in zip(c.arm_x, c.arm_y, strict=True))
    k11, k12, k22 = m + i * a * a, m + i * a * b, m + i * b * b
    sound = k11 * k11 < 1000 * (k11 * k22 - k12 * k12)  # else the second point is left out
    on = (c.on[0], c.on[1] & sound)
    tangent = tuple(m + i * v * v for v in along)
    return Grip(
        on=on,
        body=c.body,
        nx=c.normal_x,
        ny=c.normal_y,
        lever=(a, b),
        grasp=along,
        inverse_det=1 / (k11 * k22 - k12 * k12),
        normal_mass=tuple(jnp.where(is_on, 1 / k, 0.0) for is_on, k in zip(on, (k11, k22), strict=True)),
        tangent_mass=tuple(jnp.where(is_on, 1 / k, 0.0) for is_on, k in zip(on, tangent, strict=True)),
        inverse_mass=m,
        inverse_inertia=i,
    )


def _start_grip(velocities: Velocities, grip: Grip, impulse: GripImpulse, _) -> tuple[Velocities, GripImpulse]:
    (n1, n2), (t1, t2) = ([jnp.where(on, p, 0.0) for on, p in zip(grip.on, pair, strict=True)] for pair in impulse)
    turning = grip.lever[0] * n1 + grip.lever[1] * n2 + grip.grasp[0] * t1 + grip.grasp[1] * t2
    velocity = _pushed(_velocity_of(velocities, grip.body), grip, n1 + n2, t1 + t2, turning)
    return _put(velocities, grip.body, velocity), impulse


def grip_all(velocities: Velocities, grips: PyTree, held: PyTree, used: InUse) -> tuple[Velocities, PyTree]:
    """One iteration over the contacts."""

    def grip_one(velocities, grip: Grip, impulse: GripImpulse, there: Sequence):
        velocity, impulse = _solve_grip(_velocity_of(velocities, grip.body), grip, impulse, there)
        return _put(velocities, grip.body, velocity), impulse

    return machine().over(grip_one, velocities, grips, held, used)


def _velocity_of(velocities: Velocities, body: Array) -> Velocity:
    is_lower, is_right = body % 2 == 1, body >= 2
    left, right = (where(is_lower, velocities[k + 1], velocities[k]) for k in (1, 3))
    return where(is_right, right, left)


def _put(velocities: Velocities, body: Array, velocity: Velocity) -> Velocities:
    return (velocities[0], *fence(tuple(where(body == b, velocity, velocities[1 + b]) for b in range(LEGS))))


def _solve_grip(velocity: Velocity, grip: Grip, held: GripImpulse, there: Sequence) -> tuple[Velocity, GripImpulse]:
    """The friction of the points, one after the other, then their normal impulses."""
    if there[1] is None or velocity[0].size > 1:  # of many lanes, one has it
        return with_second(grip, (velocity, held))
    return lax.cond(there[1], partial(with_second, grip), partial(without_second, grip), (velocity, held))


def without_second(grip: Grip, state: tuple[Velocity, GripImpulse]) -> tuple[Velocity, GripImpulse]:
    """A contact of one point."""
    velocity, held = state
    tangent = _rub(grip, 0, held, _slip(velocity, grip, 0))
    rubbed = tangent - held.tangent[0]
    # What friction does to the approach, by turning the body: the velocity need not be waited for.
    turned = grip.inverse_inertia * grip.grasp[0] * grip.lever[0]
    approach = _approach(velocity, grip, 0) + rubbed * turned
    normal = jnp.maximum(held.normal[0] - approach * grip.normal_mass[0], 0.0)
    pressed = normal - held.normal[0]
    velocity = _pushed(velocity, grip, pressed, rubbed, grip.lever[0] * pressed + grip.grasp[0] * rubbed)
    return velocity, GripImpulse((normal, held.normal[1]), (tangent, held.tangent[1]))


def with_second(grip: Grip, state: tuple[Velocity, GripImpulse]) -> tuple[Velocity, GripImpulse]:
    """A contact of one point or two."""
    velocity, held = state
    m, i, grasp, lever = grip.inverse_mass, grip.inverse_inertia, grip.grasp, grip.lever
    first = _rub(grip, 0, held, _slip(velocity, grip, 0))
    rubbed = first - held.tangent[0]
    second = _rub(grip, 1, held, _slip(velocity, grip, 1) + rubbed * (m + i * grasp[0] * grasp[1]))
    rubbed_too = second - held.tangent[1]
    turned = grasp[0] * rubbed + grasp[1] * rubbed_too
    approach = [_approach(velocity, grip, k) + i * lever[k] * turned for k in range(2)]
    block, approach = fence((_press_both(grip, held.normal, approach), approach))
    alone = jnp.maximum(held.normal[0] - approach[0] * grip.normal_mass[0], 0.0)
    normal = where(grip.on[1], block, (alone, held.normal[1]))
    pressed = (normal[0] - held.normal[0], normal[1] - held.normal[1])
    turned = turned + lever[0] * pressed[0] + lever[1] * pressed[1]
    velocity = _pushed(velocity, grip, pressed[0] + pressed[1], rubbed + rubbed_too, turned)
    return velocity, GripImpulse(normal, (first, second))


def _slip(velocity: Velocity, grip: Grip, k: int) -> Num:
    return velocity[0] * grip.ny - velocity[1] * grip.nx + velocity[2] * grip.grasp[k]


def _approach(velocity: Velocity, grip: Grip, k: int) -> Num:
    return velocity[0] * grip.nx + velocity[1] * grip.ny + velocity[2] * grip.lever[k]


def _rub(grip: Grip, k: int, held: GripImpulse, slip: Num) -> Num:
    """A point's tangential impulse, within what the normal one allows."""
    most = FRICTION * held.normal[k]
    return jnp.clip(held.tangent[k] - slip * grip.tangent_mass[k], -most, most)


def _pushed(velocity: Velocity, grip: Grip, normal: Num, tangent: Num, turning: Num) -> Velocity:
    """The velocity after impulses along the normal and the ground, which turn the body by this."""
    vx, vy, w = velocity
    m, i = grip.inverse_mass, grip.inverse_inertia
    nx, ny = m * grip.nx, m * grip.ny
    return fence((vx + nx * normal + ny * tangent, vy + ny * normal - nx * tangent, w + i * turning))


def _press_both(grip: Grip, held: tuple[Num, ...], approach: list[Num]) -> tuple[Num, Num]:
    """Both normal impulses at once: the first of Box2D's four cases that fits; if none does, none changes."""
    (k11, k12, k22), det = grip.block, grip.inverse_det
    b1 = approach[0] - (k11 * held[0] + k12 * held[1])
    b2 = approach[1] - (k12 * held[0] + k22 * held[1])
    x1, x2 = -det * (k22 * b1 - k12 * b2), -det * (k11 * b2 - k12 * b1)
    only1, only2 = -b1 * grip.normal_mass[0], -b2 * grip.normal_mass[1]
    none = jnp.zeros_like(x1)
    out = where((b1 >= 0) & (b2 >= 0), (none, none), held)
    out = where((only2 >= 0) & (k12 * only2 + b1 >= 0), (none, only2), out)
    out = where((only1 >= 0) & (k12 * only1 + b2 >= 0), (only1, none), out)
    return where((x1 >= 0) & (x2 >= 0), (x1, x2), out)
