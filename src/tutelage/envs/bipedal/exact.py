"""Box2D's own velocity solver: sequential impulses over the joints and the contacts, 180 times.

Joints have a motor, a limit and a point that keeps the two anchors together; contacts have friction and two normal
impulses, solved as a block. Impulses are accumulated and start from those of the step before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.body import (
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
from tutelage.envs.bipedal.contacts import AXIS, SLOTS, Contact, Memory
from tutelage.envs.bipedal.lanes import (
    InUse,
    by_xla_on_gpu,
    choose,
    fence,
    if_used,
    in_use,
    index,
    join,
    largest,
    on_cpu,
    over,
    repeated,
    split,
    where,
    while_active,
)
from tutelage.envs.bipedal.scarce import where_scarce

ITERATIONS = 180
ROUND = 10  # iterations between two looks at whether they still change anything
ROUNDS = ITERATIONS // ROUND
SURE = 4  # rounds that are made in any case
STILL = 1e-3  # metres or radians a second by which a round may change velocities and count as changing nothing

Velocity = tuple[Num, ...]  # vx, vy, spin
Velocities = tuple[Velocity, ...]


class JointImpulse(NamedTuple):
    """What a joint's point, motor and limit have exerted, accumulated over a step.

    The reduced solver knows of no points and counts a limit's impulse as the motor's.
    """

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

    @property
    def two(self) -> tuple[Num, Num, Num]:
        """The inverse of the point's part: xx, xy, yy."""
        det = 1 / (self.k11 * self.k22 - self.k12 * self.k12)
        return det * self.k22, -det * self.k12, det * self.k11

    @property
    def three(self) -> tuple[Num, ...]:
        """The inverse of the whole, by cofactors: xx, xy, xz, yy, yz, zz."""
        k11, k12, k13, k22, k23, k33 = self[4:]
        xx, xy, xz = k22 * k33 - k23 * k23, k13 * k23 - k12 * k33, k12 * k23 - k13 * k22
        yy, yz, zz = k11 * k33 - k13 * k13, k12 * k13 - k11 * k23, k11 * k22 - k12 * k12
        det = 1 / (k11 * xx + k12 * xy + k13 * xz)
        return tuple(det * c for c in (xx, xy, xz, yy, yz, zz))


class Lock(NamedTuple):
    """A joint as the iterations use it: its lever arms, what its point feels of its limit, and inverse matrices."""

    ax: Num
    ay: Num
    bx: Num
    by: Num
    k13: Num
    k23: Num
    two: tuple[Num, ...]
    three: tuple[Num, ...]

    @classmethod
    def of(cls, hinge: Hinge) -> Lock:
        """Of a hinge."""
        return cls(*hinge[:4], hinge.k13, hinge.k23, hinge.two, hinge.three)


class Grip(NamedTuple):
    """A contact as the velocity solver uses it."""

    on: tuple[Bool[Array, "..."], ...]
    both: Bool[Array, "..."]  # two points, solved as a block
    body: Array
    nx: Num
    ny: Num
    lever: tuple[Num, ...]  # arm × normal
    grasp: tuple[Num, ...]  # arm × tangent
    inverse_det: Num
    normal_mass: tuple[Num, ...]
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


class Course(NamedTuple):
    """What changes from iteration to iteration."""

    velocities: Velocities
    joints: tuple[JointImpulse, ...]
    held: PyTree  # the contacts' impulses, as `split` makes them


class Task(NamedTuple):
    """What does not."""

    hinges: tuple[Hinge | Lock, ...]
    drives: tuple[Drive, ...]
    grips: PyTree  # as `split` makes them
    used: InUse


def solve(problem: Problem, iterations: Int[Array, ""] | int | None = None) -> Solution:
    """As Box2D does, or with other than its 180 iterations."""
    task, course = _begin(problem)
    if iterations is None and by_xla_on_gpu():
        once = lambda task, course: iterate(task._replace(hinges=_locked(task.hinges)), course)  # noqa: E731
        return _solution(repeated(once, task, course, ITERATIONS))
    task = task._replace(hinges=fence(_locked(task.hinges)))
    times = ITERATIONS if iterations is None else iterations
    return _solution(lax.fori_loop(0, times, lambda _, course: iterate(task, course), course))


def solve_promptly(problem: Problem) -> Solution:
    """The same, but that iterations end when they change next to nothing; by XLA on GPUs, all are made."""
    if by_xla_on_gpu():
        return solve(problem)
    if on_cpu():
        return _solve_by_kinds(problem)
    return _solution(_go_on(*_prepared(problem), 0, ROUNDS)[0])


def solve_a_little(problem: Problem) -> tuple[Solution, Bool[Array, "..."]]:
    """What `solve_promptly` finds in those rounds that are made in any case, and who is to go on."""
    course, going = _go_on(*_prepared(problem), 0, SURE)
    return _solution(course), going


def solve_on(problem: Problem, found: Solution) -> Solution:
    """The rest of it."""
    velocities, joints, held = found
    task, _ = _prepared(problem)
    course = Course(velocities, joints, split(held, SLOTS, task.used))
    return _solution(_go_on(task, course, SURE, ROUNDS)[0])


def number_of(contacts: Contact) -> Int[Array, "..."]:
    """How many contacts are to be visited."""
    on = contacts.on[0] | contacts.on[1]
    return jnp.max(jnp.where(on, index(on.shape[0], on.ndim - 1) + 1, 0), axis=0)


def _solve_by_kinds(problem: Problem) -> Solution:
    """On CPUs, where all would wait for the few with several contacts, and for those that take long to settle."""
    number = number_of(problem.contacts)
    task, course = _prepared(problem)
    one_at_most = task.used._replace(number=jnp.minimum(task.used.number, 1))
    course, going = _go_on(task._replace(used=one_at_most), course, 0, SURE)
    found = _solution(course)
    found = where_scarce(going & (number < 2), lambda given: solve_on(*given), (problem, found), found, share=4)
    several = lambda problem: _solution(_go_on(*_prepared(problem), 0, ROUNDS)[0])  # noqa: E731
    return where_scarce(number > 1, several, problem, found, share=8)


def _prepared(problem: Problem) -> tuple[Task, Course]:
    task, course = _begin(problem)
    return task._replace(hinges=fence(_locked(task.hinges))), course


def _go_on(task: Task, course: Course, first: int, last: int) -> tuple[Course, Bool[Array, "..."]]:
    """Some rounds of iterations, as long as they change something, and whether they still do."""
    at_once = course.velocities[0][0].size == 1 or last <= SURE  # none waits for another

    def once(_: Int[Array, ""], at: tuple[Course, Bool[Array, "..."]]) -> tuple[Course, Bool[Array, "..."]]:
        course, going = at
        new = iterate(task, course)
        return new if at_once else where(going, new, course), going

    def one_round(k: Int[Array, ""], at: tuple[Course, Bool[Array, "..."]]) -> tuple[Course, Bool[Array, "..."]]:
        course, going = lax.fori_loop(0, ROUND, once, at)
        pairs = zip(jax.tree.leaves(course.velocities), jax.tree.leaves(at[0].velocities), strict=True)
        changes = largest([jnp.abs(new - old) for new, old in pairs]) > STILL
        return course, going & (changes | (k < SURE - 1))

    begin = (course, jnp.ones_like(course.velocities[0][0], bool))
    return while_active(lambda at: at[1], one_round, begin, first=first, last=last)


def _solution(course: Course) -> Solution:
    return course.velocities, course.joints, join(course.held, AXIS)


def _begin(problem: Problem) -> tuple[Task, Course]:
    """The task, and the velocities with the last step's impulses."""
    bodies, velocities, drives, joints, contacts, memory = problem
    hinges = tuple(hinge(joint, bodies) for joint in JOINTS)
    used = in_use(contacts.on)
    grips, held = grips_of(contacts, used), split(GripImpulse(memory.normal, memory.tangent), SLOTS, used)
    joints = tuple(_warm(impulse, drive) for impulse, drive in zip(joints, drives, strict=True))
    velocities, _ = over(_start_grip, velocities, grips, held, used)
    for joint, lever, impulse in zip(JOINTS, hinges, joints, strict=True):
        turning = impulse.motor + impulse.limit
        velocities = _apply(velocities, joint, lever, impulse.x, impulse.y, turning)
    return Task(hinges, drives, grips, used), Course(velocities, joints, held)


def _locked(hinges: Sequence[Hinge]) -> tuple[Lock, ...]:
    return tuple(Lock.of(hinge) for hinge in hinges)


def iterate(task: Task, course: Course) -> Course:
    """One of Box2D's iterations."""
    velocities, joints, held = course
    joints = list(joints)
    for j in SOLVING_ORDER:
        velocities, joints[j] = _solve_joint(velocities, JOINTS[j], task.hinges[j], task.drives[j], joints[j])
    velocities, held = grip_all(velocities, task.grips, held, task.used)
    return Course(velocities, tuple(joints), held)


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
    relative = velocities[joint.b][2] - velocities[joint.a][2]
    share = 1 / (INVERSE_INERTIA[joint.a] + INVERSE_INERTIA[joint.b])
    motor = jnp.clip(held.motor - (relative - drive.speed) * share, -drive.impulse, drive.impulse)
    (avx, avy, aw), (bvx, bvy, bw) = velocities[joint.a], velocities[joint.b]
    turning = motor - held.motor
    aw, bw = fence((aw - INVERSE_INERTIA[joint.a] * turning, bw + INVERSE_INERTIA[joint.b] * turning))
    cx, cy, cz = bvx - bw * k.by - avx + aw * k.ay, bvy + bw * k.bx - avy - aw * k.ax, bw - aw
    # With the limit: three equations. Without, or where it would have to pull: the point alone, the limit let go.
    xx, xy, xz, yy, yz, zz = k.three
    x3, y3, z3 = xx * cx + xy * cy + xz * cz, xy * cx + yy * cy + yz * cz, xz * cx + yz * cy + zz * cz
    limit = held.limit - z3
    keeps = (drive.at_lower & (limit >= 0)) | (drive.at_upper & (limit <= 0))
    cx, cy = cx - held.limit * k.k13, cy - held.limit * k.k23
    xx, xy, yy = k.two
    x, y, z = fence(where(keeps, (-x3, -y3, -z3), (-(xx * cx + xy * cy), -(xy * cx + yy * cy), -held.limit)))
    turned = list(velocities)
    turned[joint.a], turned[joint.b] = (avx, avy, aw), (bvx, bvy, bw)
    velocities = _apply(tuple(turned), joint, k, x, y, z)
    return velocities, JointImpulse(held.x + x, held.y + y, motor, held.limit + z)


def grips_of(contacts: Contact, used: InUse) -> PyTree:
    """The contacts `[8, …]`, prepared, as `split` makes them."""
    return split(fence(_grip(contacts)), SLOTS, used)


def _grip(c: Contact) -> Grip:
    m, i = c.inverse_mass, c.inverse_inertia
    a, b = (x * c.normal_y - y * c.normal_x for x, y in zip(c.arm_x, c.arm_y, strict=True))
    along = tuple(-(x * c.normal_x + y * c.normal_y) for x, y in zip(c.arm_x, c.arm_y, strict=True))
    k11, k12, k22 = m + i * a * a, m + i * a * b, m + i * b * b
    both = c.on[0] & c.on[1]
    sound = k11 * k11 < 1000 * (k11 * k22 - k12 * k12)
    return Grip(
        on=(c.on[0], c.on[1] & ~(both & ~sound)),
        both=both & sound,
        body=c.body,
        nx=c.normal_x,
        ny=c.normal_y,
        lever=(a, b),
        grasp=along,
        inverse_det=1 / (k11 * k22 - k12 * k12),
        normal_mass=(1 / k11, 1 / k22),
        tangent_mass=(1 / (m + i * along[0] * along[0]), 1 / (m + i * along[1] * along[1])),
        inverse_mass=m,
        inverse_inertia=i,
    )


def _start_grip(velocities: Velocities, grip: Grip, impulse: GripImpulse, _) -> tuple[Velocities, GripImpulse]:
    velocity = _velocity_of(velocities, grip.body)
    for k in range(2):
        n, t = (jnp.where(grip.on[k], p, 0.0) for p in (impulse.normal[k], impulse.tangent[k]))
        velocity = _pushed(_pushed(velocity, grip, k, n), grip, k, t, tangent=True)
    return _put(velocities, grip.body, velocity), impulse


def grip_all(velocities: Velocities, grips: PyTree, held: PyTree, used: InUse) -> tuple[Velocities, PyTree]:
    """One iteration over the contacts."""

    def grip_one(velocities, grip: Grip, impulse: GripImpulse, there: Sequence):
        velocity, impulse = _solve_grip(_velocity_of(velocities, grip.body), grip, impulse, there)
        return _put(velocities, grip.body, velocity), impulse

    return over(grip_one, velocities, grips, held, used)


def _velocity_of(velocities: Velocities, body: Array) -> Velocity:
    return tuple(choose(body, [v[i] for v in velocities[1:]]) for i in range(3))


def _put(velocities: Velocities, body: Array, velocity: Velocity) -> Velocities:
    return (velocities[0], *fence(tuple(where(body == b, velocity, velocities[1 + b]) for b in range(LEGS))))


def _pushed(velocity: Velocity, grip: Grip, k: int, impulse: Num, tangent: bool = False) -> Velocity:
    vx, vy, w = velocity
    dx, dy, lever = (grip.ny, -grip.nx, grip.grasp[k]) if tangent else (grip.nx, grip.ny, grip.lever[k])
    m, i = grip.inverse_mass * impulse, grip.inverse_inertia * impulse
    return fence((vx + m * dx, vy + m * dy, w + i * lever))


def _solve_grip(velocity: Velocity, grip: Grip, held: GripImpulse, there: Sequence) -> tuple[Velocity, GripImpulse]:
    """The friction of the points that are there, then their normal impulses."""
    tangent = list(held.tangent)
    for k in range(2):
        velocity, tangent[k] = if_used(there[k], partial(_rub, grip, k, held.normal[k]), (velocity, tangent[k]))
    state = (velocity, held.normal)
    if there[0] is None:
        velocity, normal = _press_both(grip, state)
    else:
        velocity, normal = lax.cond(
            there[0] & there[1], partial(_press_both, grip), partial(_press_one, grip, there[0]), state
        )
    return velocity, GripImpulse(normal, tuple(tangent))


def _rub(grip: Grip, k: int, normal: Num, state: tuple[Velocity, Num]) -> tuple[Velocity, Num]:
    velocity, held = state
    slip = velocity[0] * grip.ny - velocity[1] * grip.nx + velocity[2] * grip.grasp[k]
    most = FRICTION * normal
    t = jnp.clip(held - slip * grip.tangent_mass[k], -most, most)
    t = jnp.where(grip.on[k], t, held)
    return _pushed(velocity, grip, k, t - held, tangent=True), t


def _press_both(grip: Grip, state: tuple[Velocity, tuple[Num, ...]]) -> tuple[Velocity, tuple[Num, ...]]:
    velocity, held = state
    approach = [_approach(velocity, grip, k) for k in range(2)]
    block, approach = fence((_block(grip, held, approach), approach))
    normal = []
    for k in range(2):
        alone = _press_alone(grip, k, held[k], approach[k])
        normal.append(jnp.where(grip.both, block[k], alone))
        velocity = _pushed(velocity, grip, k, normal[k] - held[k])
    return velocity, tuple(normal)


def _press_one(
    grip: Grip, first: Bool[Array, ""], state: tuple[Velocity, tuple[Num, ...]]
) -> tuple[Velocity, tuple[Num, ...]]:
    """Where in no lane there are both."""

    def press(k: int, state):
        velocity, held = state
        new = _press_alone(grip, k, held[k], _approach(velocity, grip, k))
        return _pushed(velocity, grip, k, new - held[k]), (new, held[1]) if k == 0 else (held[0], new)

    return lax.cond(first, partial(press, 0), partial(press, 1), state)


def _approach(velocity: Velocity, grip: Grip, k: int) -> Num:
    return velocity[0] * grip.nx + velocity[1] * grip.ny + velocity[2] * grip.lever[k]


def _press_alone(grip: Grip, k: int, held: Num, approach: Num) -> Num:
    return jnp.where(grip.on[k], jnp.maximum(held - approach * grip.normal_mass[k], 0.0), held)


def _block(grip: Grip, held: tuple[Num, ...], approach: list[Num]) -> tuple[Num, Num]:
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
