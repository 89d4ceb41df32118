"""The fast velocity solver: the same equations as `exact`, without the joints' points.

A walker whose anchors stay together has seven degrees of freedom: u = (vx, vy of the hull; spins of the five bodies).
With the lever arms at the start of the step, v_upper = v_hull + ω_hull × a − ω_upper × b at a hip and likewise at a
knee, so each body's velocity is J_b u. With M = Σ_b m_b J_bᵀ J_b + diag(0, 0, I) and its inverse W, the velocities
before the step become u = W Σ_b (m_b J_bᵀ v_b + I_b ω_b), and what is left are motors with their limits and contact
points with friction. Projected Gauss–Seidel sweeps over these have the fixed point that Box2D's iterations approach.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

from tutelage.envs.bipedal.body import FRICTION, INERTIA, JOINTS, MASS, SOLVING_ORDER, Num
from tutelage.envs.bipedal.contacts import SLOTS, Contact
from tutelage.envs.bipedal.exact import (
    Drive,
    GripImpulse,
    Hinge,
    JointImpulse,
    Problem,
    Solution,
    Velocities,
    hinge,
)
from tutelage.envs.bipedal.lanes import fence, in_use, over, split, where

SWEEPS = 64

Vector = tuple[Num, ...]  # of length 7
Matrix = tuple[Vector, ...]


class Row(NamedTuple):
    """A contact point in one direction: speed = direction · v_hull + levers · spins, and W times that row."""

    levers: tuple[Num, ...]  # of length 5
    response: Vector


class Answer(NamedTuple):
    """How the speeds of a point answer to its impulses, and what is divided by that in every sweep."""

    nn: Num
    nt: Num
    tt: Num
    stick: Num  # 1 / determinant
    ahead: Num  # of a sliding point's normal impulse, with friction one way and the other
    back: Num
    slow: Num
    rub: Num
    jams: Bool[Array, "..."]


class Foothold(NamedTuple):
    """The rows of a contact's two points, and how their speeds answer to their impulses."""

    nx: Num
    ny: Num
    on: tuple
    normal: tuple[Row, ...]
    tangent: tuple[Row, ...]
    answer: tuple[Answer, ...]


def solve(problem: Problem) -> Solution:
    """As `exact.solve`, but that a joint's impulses are all its motor's."""
    bodies, velocities, drives, joints, contacts, memory = problem
    hinges = tuple(hinge(joint, bodies) for joint in JOINTS)
    levers = fence(_levers(hinges))
    inverse = fence(_inverse_mass(levers))
    u = _times(inverse, _momentum(levers, velocities))
    footholds = split(_foothold(contacts, levers, inverse), SLOTS)
    held = split(GripImpulse(memory.normal, memory.tangent), SLOTS)
    turning = tuple(impulse.motor for impulse in joints)
    stiffness = tuple(_stiffness(inverse, 2 + joint.a, 2 + joint.b) for joint in JOINTS)
    stiffness = fence(tuple((k, 1 / k) for k in stiffness))
    turns = fence(tuple(_turn(inverse, 2 + joint.a, 2 + joint.b) for joint in JOINTS))
    for turn, impulse in zip(turns, turning, strict=True):
        u = _add(u, turn, impulse)
    count = in_use(contacts.on)
    u, _ = over(_start, u, footholds, held, count)

    def sweep(_, state):
        u, turning, held = state
        turning = list(turning)
        for j in SOLVING_ORDER:
            a, b = 2 + JOINTS[j].a, 2 + JOINTS[j].b
            new = fence(_drive(drives[j], u[b] - u[a], turning[j], stiffness[j]))
            u = _add(u, turns[j], new - turning[j])
            turning[j] = new
        u, held = over(_press, u, footholds, held, count)
        return u, tuple(turning), held

    u, turning, held = lax.fori_loop(0, SWEEPS, sweep, (u, turning, held))
    none = jnp.zeros_like(u[0])
    return _velocities(levers, u), tuple(JointImpulse(none, none, t, none) for t in turning), held


class Levers(NamedTuple):
    """How a leg's velocities follow from u: v_upper = v + ω_hull × hip + ω_upper × thigh, and for the lower leg
    v_lower = v + ω_hull × hip + ω_upper × knee + ω_lower × shin.
    """

    hip: tuple[Num, Num]
    thigh: tuple[Num, Num]
    knee: tuple[Num, Num]
    shin: tuple[Num, Num]


def _levers(hinges: Sequence[Hinge]) -> tuple[Levers, Levers]:
    def of(hip: Hinge, knee: Hinge) -> Levers:
        return Levers((hip.ax, hip.ay), (-hip.bx, -hip.by), (knee.ax - hip.bx, knee.ay - hip.by), (-knee.bx, -knee.by))

    return of(hinges[0], hinges[1]), of(hinges[2], hinges[3])


def _momentum(levers: tuple[Levers, Levers], velocities: Velocities) -> Vector:
    """Σ_b (m_b J_bᵀ v_b + I_b ω_b e_b)."""
    px, py = MASS[0] * velocities[0][0], MASS[0] * velocities[0][1]
    spins = [INERTIA[b] * velocities[b][2] for b in range(5)]
    for side, lever in enumerate(levers):
        up, low = 1 + 2 * side, 2 + 2 * side
        upper = (MASS[up] * velocities[up][0], MASS[up] * velocities[up][1])
        lower = (MASS[low] * velocities[low][0], MASS[low] * velocities[low][1])
        whole = (upper[0] + lower[0], upper[1] + lower[1])
        px, py = px + whole[0], py + whole[1]
        spins[0] = spins[0] + _cross(lever.hip, whole)
        spins[up] = spins[up] + _cross(lever.thigh, upper) + _cross(lever.knee, lower)
        spins[low] = spins[low] + _cross(lever.shin, lower)
    return (px, py, *spins)


def _inverse_mass(levers: tuple[Levers, Levers]) -> Matrix:
    """W, by eliminating each leg's two spins (D, coupled to the base by C) and inverting what is left of the base."""
    mass = sum(MASS)
    one = jnp.ones_like(levers[0].hip[0])
    legs = [_leg_blocks(lever) for lever in levers]
    base = [[mass * one, 0.0 * one, 0.0 * one], [0.0 * one, mass * one, 0.0 * one], [0.0 * one] * 3]
    both = MASS[1] + MASS[2]
    for lever in levers:
        base[0][2] = base[0][2] - both * lever.hip[1]
        base[1][2] = base[1][2] + both * lever.hip[0]
        base[2][2] = base[2][2] + both * _dot(lever.hip, lever.hip)
    base[2][2] = base[2][2] + INERTIA[0]
    shares = []  # C D⁻¹, 3 × 2 for each leg
    for d_inverse, c in legs:
        share = [[c[i][0] * d_inverse[0][k] + c[i][1] * d_inverse[1][k] for k in range(2)] for i in range(3)]
        for i in range(3):
            for k in range(i, 3):
                base[i][k] = base[i][k] - share[i][0] * c[k][0] - share[i][1] * c[k][1]
        shares.append(share)
    s, shares = fence((_inverse_three(fence(base)), shares))
    w: list[list] = [[one] * 7 for _ in range(7)]
    for i in range(3):
        for k in range(3):
            w[i][k] = s[i][k]
    across = [[[-sum(s[i][n] * share[n][k] for n in range(3)) for k in range(2)] for i in range(3)] for share in shares]
    for side in range(2):
        for i in range(3):
            for k in range(2):
                w[i][3 + 2 * side + k] = w[3 + 2 * side + k][i] = across[side][i][k]
        for other in range(2):
            for i in range(2):
                for k in range(2):
                    value = -sum(shares[side][n][i] * across[other][n][k] for n in range(3))
                    w[3 + 2 * side + i][3 + 2 * other + k] = value + (legs[side][0][i][k] if side == other else 0.0)
    return tuple(tuple(row) for row in w)


def _leg_blocks(lever: Levers) -> tuple[list[list[Num]], list[list[Num]]]:
    """D⁻¹ of a leg's two spins, and C, which couples the base to them."""
    up, low = MASS[1], MASS[2]
    d11 = INERTIA[1] + up * _dot(lever.thigh, lever.thigh) + low * _dot(lever.knee, lever.knee)
    d12 = low * _dot(lever.knee, lever.shin)
    d22 = INERTIA[2] + low * _dot(lever.shin, lever.shin)
    det = 1 / (d11 * d22 - d12 * d12)
    upper = (up * lever.thigh[0] + low * lever.knee[0], up * lever.thigh[1] + low * lever.knee[1])
    lower = (low * lever.shin[0], low * lever.shin[1])
    c = [[-upper[1], -lower[1]], [upper[0], lower[0]], [_dot(lever.hip, upper), _dot(lever.hip, lower)]]
    return [[det * d22, -det * d12], [-det * d12, det * d11]], c


def _inverse_three(m: list[list[Num]]) -> list[list[Num]]:
    """Of a symmetric matrix, of which the upper triangle is read."""
    (a, b, c), (_, d, e), (_, _, f) = m
    c11, c12, c13 = d * f - e * e, c * e - b * f, b * e - c * d
    c22, c23, c33 = a * f - c * c, b * c - a * e, a * d - b * b
    det = 1 / (a * c11 + b * c12 + c * c13)
    return [[det * c11, det * c12, det * c13], [det * c12, det * c22, det * c23], [det * c13, det * c23, det * c33]]


def _foothold(contacts: Contact, levers: tuple[Levers, Levers], inverse: Matrix) -> Foothold:
    """The contacts `[8, …]`, prepared."""
    n, t = (contacts.normal_x, contacts.normal_y), (contacts.normal_y, -contacts.normal_x)
    normal = tuple(_row(contacts, k, n, levers, inverse) for k in range(2))
    tangent = tuple(_row(contacts, k, t, levers, inverse) for k in range(2))
    return fence(
        Foothold(
            *n,
            contacts.on,
            normal,
            tangent,
            tuple(
                _answer(_speed(a.response, *n, a), _speed(b.response, *n, a), _speed(b.response, *t, b))
                for a, b in zip(normal, tangent, strict=True)
            ),
        )
    )


def _answer(nn: Num, nt: Num, tt: Num) -> Answer:
    with_friction = nn + FRICTION * jnp.abs(nt)
    ahead, back = (1 / jnp.maximum(nn + sign * FRICTION * nt, 0.1 * nn) for sign in (1.0, -1.0))
    # Where friction may press the foot down by more than it relieves it, only the motors keep it from jamming: they
    # must be given time.
    jams = FRICTION * jnp.abs(nt) > 0.75 * nn
    return Answer(nn, nt, tt, 1 / jnp.maximum(nn * tt - nt * nt, 1e-9), ahead, back, 1 / with_friction, 1 / tt, jams)


def _row(c: Contact, k: int, direction: tuple[Num, Num], levers: tuple[Levers, Levers], inverse: Matrix) -> Row:
    """The row of point k of contacts `[8, …]` in this direction."""
    right, lower = c.body >= 2, c.body % 2 == 1
    lever = where(right, levers[1], levers[0])
    arm = (c.arm_x[k], c.arm_y[k])
    none = jnp.zeros_like(direction[0])
    upper_arm = where(lower, lever.knee, (lever.thigh[0] + arm[0], lever.thigh[1] + arm[1]))
    lower_arm = where(lower, (lever.shin[0] + arm[0], lever.shin[1] + arm[1]), (none, none))
    up, low = _cross(upper_arm, direction), _cross(lower_arm, direction)
    spins = (
        _cross(lever.hip, direction),
        *(jnp.where(right, none, v) for v in (up, low)),
        *(jnp.where(right, v, none) for v in (up, low)),
    )
    spins = fence(spins)
    return Row(spins, fence(_times(inverse, (*direction, *spins))))


def _start(u: Vector, foothold: Foothold, held: GripImpulse) -> tuple[Vector, GripImpulse]:
    for k in range(2):
        u = _add(u, foothold.normal[k].response, held.normal[k])
        u = _add(u, foothold.tangent[k].response, held.tangent[k])
    return u, held


def _drive(drive: Drive, relative: Num, turning: Num, stiffness: tuple[Num, Num]) -> Num:
    """The impulse of motor and limit together: the motor's, unless that would carry the joint past its limit.

    `stiffness` comes with its inverse.
    """
    k, inverse = stiffness
    free = relative - k * turning
    motor = jnp.clip((drive.speed - free) * inverse, -drive.impulse, drive.impulse)
    speed = free + k * motor
    stopped = (drive.at_lower & (speed < 0)) | (drive.at_upper & (speed > 0))
    return jnp.where(stopped, -free * inverse, motor)


def _press(u: Vector, foothold: Foothold, held: GripImpulse) -> tuple[Vector, GripImpulse]:
    """One sweep over a contact's points."""
    normal, tangent = list(held.normal), list(held.tangent)
    for k in range(2):
        n, t = foothold.normal[k], foothold.tangent[k]
        approach = _speed(u, foothold.nx, foothold.ny, n)
        slip = _speed(u, foothold.ny, -foothold.nx, t)
        new = _coulomb(approach, slip, normal[k], tangent[k], foothold.answer[k])
        new = fence(tuple(jnp.where(foothold.on[k], v, 0.0) for v in new))
        u = _add(_add(u, n.response, new[0] - normal[k]), t.response, new[1] - tangent[k])
        normal[k], tangent[k] = new
    return u, GripImpulse(tuple(normal), tuple(tangent))


def _coulomb(approach: Num, slip: Num, n: Num, t: Num, k: Answer) -> tuple[Num, Num]:
    """A point's normal and tangential impulse, solved together: it lifts off, sticks, or slides one way or the other.

    One after the other, as Box2D does it, they chase each other in these coordinates, where a push along the ground
    lifts or presses the foot by way of the whole leg, and may never meet.
    """
    vn, vt = approach - k.nn * n - k.nt * t, slip - k.nt * n - k.tt * t  # without this point's impulses
    stuck_n, stuck_t = k.stick * (k.nt * vt - k.tt * vn), k.stick * (k.nt * vn - k.nn * vt)
    sticks = (stuck_n >= 0) & (jnp.abs(stuck_t) <= FRICTION * stuck_n)
    forward, backward = _sliding(1.0, k.ahead, vn, vt, k), _sliding(-1.0, k.back, vn, vt, k)
    ahead = jnp.where(forward[2] == backward[2], stuck_t > 0, forward[2])
    out = where(sticks, (stuck_n, stuck_t), where(ahead, forward[:2], backward[:2]))
    slow_n = jnp.maximum(n - approach * k.slow, 0.0)
    most = FRICTION * slow_n
    slow_t = jnp.clip(t - slip * k.rub, -most, most)
    return where(k.jams, (slow_n, slow_t), out)


def _sliding(sign: float, inverse: Num, vn: Num, vt: Num, k: Answer) -> tuple[Num, Num, Bool[Array, "..."]]:
    """The impulses of a point that slides, with friction in the direction `sign`, and whether that opposes it."""
    n = jnp.maximum(-vn, 0.0) * inverse
    t = sign * FRICTION * n
    return n, t, sign * (vt + k.nt * n + k.tt * t) <= 0


def _speed(u: Vector, dx: Num, dy: Num, row: Row) -> Num:
    return u[0] * dx + u[1] * dy + sum(w * lever for w, lever in zip(u[2:], row.levers, strict=True))


def _velocities(levers: tuple[Levers, Levers], u: Vector) -> Velocities:
    """Each body's velocity from the seven numbers."""
    out = [(u[0], u[1], u[2])]
    for side, lever in enumerate(levers):
        up, low = u[3 + 2 * side], u[4 + 2 * side]
        hip = (u[0] - u[2] * lever.hip[1], u[1] + u[2] * lever.hip[0])
        out.append((hip[0] - up * lever.thigh[1], hip[1] + up * lever.thigh[0], up))
        vx = hip[0] - up * lever.knee[1] - low * lever.shin[1]
        out.append((vx, hip[1] + up * lever.knee[0] + low * lever.shin[0], low))
    return tuple(out)


def _stiffness(w: Matrix, a: int, b: int) -> Num:
    return w[a][a] + w[b][b] - 2 * w[a][b]


def _turn(w: Matrix, a: int, b: int) -> Vector:
    """What an impulse that turns the body of spin b against that of spin a adds to the seven numbers."""
    return tuple(row[b] - row[a] for row in w)


def _add(u: Vector, response: Vector, impulse: Num) -> Vector:
    return fence(tuple(v + r * impulse for v, r in zip(u, response, strict=True)))


def _times(m: Matrix, v: Vector) -> Vector:
    return tuple(_sum([a * b for a, b in zip(row, v, strict=True)]) for row in m)


def _sum(values: Sequence[Num]) -> Num:
    out = values[0]
    for value in values[1:]:
        out = out + value
    return out


def _dot(a: tuple[Num, Num], b: tuple[Num, Num]) -> Num:
    return a[0] * b[0] + a[1] * b[1]


def _cross(a: tuple[Num, Num], b: tuple[Num, Num]) -> Num:
    return a[0] * b[1] - a[1] * b[0]
