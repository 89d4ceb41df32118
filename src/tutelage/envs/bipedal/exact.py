"""Box2D's own velocity solver: sequential impulses over the joints and the contacts, 180 times.

Joints have a motor, a limit and a point that keeps the two anchors together; contacts have friction and two normal
impulses, solved as a block. Impulses are accumulated and start from those of the step before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

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
    join,
    over,
    repeated,
    split,
    where,
)

ITERATIONS = 180

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


def solve(problem: Problem, iterations: Int[Array, ""] | int | None = None) -> Solution:
    """As Box2D does, or with other than its 180 iterations."""
    bodies, velocities, drives, joints, contacts, memory = problem
    hinges = tuple(hinge(joint, bodies) for joint in JOINTS)
    used = in_use(contacts.on)
    grips, held = grips_of(contacts, used), split(GripImpulse(memory.normal, memory.tangent), SLOTS, used)
    joints = tuple(_warm(impulse, drive) for impulse, drive in zip(joints, drives, strict=True))
    velocities, _ = over(_start_grip, velocities, grips, held, used)
    for joint, lever, impulse in zip(JOINTS, hinges, joints, strict=True):
        turning = impulse.motor + impulse.limit
        velocities = _apply(velocities, joint, lever, impulse.x, impulse.y, turning)

    def iterate(kept, state):
        (hinges, drives, grips), (velocities, joints, held) = kept, state
        joints = list(joints)
        for j in SOLVING_ORDER:
            velocities, joints[j] = _solve_joint(velocities, JOINTS[j], hinges[j], drives[j], joints[j])
        velocities, held = grip_all(velocities, grips, held, used)
        return velocities, tuple(joints), held

    kept, state = (hinges, drives, grips), (velocities, joints, held)
    if iterations is None and by_xla_on_gpu():
        velocities, joints, held = repeated(iterate, kept, state, ITERATIONS)
    else:
        left = jnp.int32(ITERATIONS if iterations is None else iterations)
        once = lambda s: (s[0] - 1, iterate(kept, s[1]))  # noqa: E731
        _, (velocities, joints, held) = lax.while_loop(lambda s: s[0] > 0, once, (left, state))
    return velocities, joints, join(held, AXIS)


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


def _apply(velocities: Velocities, joint: Joint, lever: Hinge, px: Num, py: Num, turning: Num) -> Velocities:
    (avx, avy, aw), (bvx, bvy, bw) = velocities[joint.a], velocities[joint.b]
    ma, mb = INVERSE_MASS[joint.a], INVERSE_MASS[joint.b]
    ia, ib = INVERSE_INERTIA[joint.a], INVERSE_INERTIA[joint.b]
    new = list(velocities)
    new[joint.a] = fence((avx - ma * px, avy - ma * py, aw - ia * (lever.ax * py - lever.ay * px + turning)))
    new[joint.b] = fence((bvx + mb * px, bvy + mb * py, bw + ib * (lever.bx * py - lever.by * px + turning)))
    return tuple(new)


def _solve_joint(
    velocities: Velocities, joint: Joint, k: Hinge, drive: Drive, held: JointImpulse
) -> tuple[Velocities, JointImpulse]:
    relative = velocities[joint.b][2] - velocities[joint.a][2]
    motor = jnp.clip(held.motor - (relative - drive.speed) / k.k33, -drive.impulse, drive.impulse)
    (avx, avy, aw), (bvx, bvy, bw) = velocities[joint.a], velocities[joint.b]
    turning = motor - held.motor
    aw, bw = fence((aw - INVERSE_INERTIA[joint.a] * turning, bw + INVERSE_INERTIA[joint.b] * turning))
    cx, cy = bvx - bw * k.by - avx + aw * k.ay, bvy + bw * k.bx - avy - aw * k.ax
    # With the limit: three equations. Without, or where it would have to pull: the point alone, the limit let go.
    x3, y3, z3 = _solve_three(k, -cx, -cy, aw - bw)
    limit = held.limit + z3
    keeps = (drive.at_lower & (limit >= 0)) | (drive.at_upper & (limit <= 0))
    x2, y2 = _solve_two(k, -cx + held.limit * k.k13, -cy + held.limit * k.k23)
    x, y, z = fence(where(keeps, (x3, y3, z3), (x2, y2, -held.limit)))
    turned = list(velocities)
    turned[joint.a], turned[joint.b] = (avx, avy, aw), (bvx, bvy, bw)
    velocities = _apply(tuple(turned), joint, k, x, y, z)
    return velocities, JointImpulse(held.x + x, held.y + y, motor, held.limit + z)


def _solve_two(k: Hinge, x: Num, y: Num) -> tuple[Num, Num]:
    det = 1 / (k.k11 * k.k22 - k.k12 * k.k12)
    return det * (k.k22 * x - k.k12 * y), det * (k.k11 * y - k.k12 * x)


def _solve_three(k: Hinge, x: Num, y: Num, z: Num) -> tuple[Num, Num, Num]:
    """By cofactors."""
    c11, c12, c13 = k.k22 * k.k33 - k.k23 * k.k23, k.k13 * k.k23 - k.k12 * k.k33, k.k12 * k.k23 - k.k13 * k.k22
    c22, c23, c33 = k.k11 * k.k33 - k.k13 * k.k13, k.k12 * k.k13 - k.k11 * k.k23, k.k11 * k.k22 - k.k12 * k.k12
    det = 1 / (k.k11 * c11 + k.k12 * c12 + k.k13 * c13)
    return (
        det * (c11 * x + c12 * y + c13 * z),
        det * (c12 * x + c22 * y + c23 * z),
        det * (c13 * x + c23 * y + c33 * z),
    )


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
