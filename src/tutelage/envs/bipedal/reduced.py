"""The fast velocity solver: the same equations as `exact`, without the joints' points.

A walker whose anchors stay together has seven degrees of freedom: u = (vx, vy of the hull; spins of the five bodies).
With the lever arms at the start of the step, v_upper = v_hull + ω_hull × a − ω_upper × b at a hip and likewise at a
knee, so each body's velocity is J_b u, and what is left are motors with their limits and contact points with friction:
rows r with a speed r · u each. Projected Gauss–Seidel sweeps over these have the fixed point that Box2D's iterations
approach.

M = Σ_b m_b J_bᵀ J_b + diag(0, 0, I) has a root, M = R Rᵀ, and the sweeps are over w = Rᵀ u, in which all masses are
one: the row r becomes R⁻¹ r, whose product with w is the speed and which is also what a unit impulse adds to w. As the
legs meet in the hull alone, a row of one leg has five numbers: three of the hull, two of that leg. Divided by their
length, with impulses multiplied by it, rows answer to an impulse by just as much speed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int

from tutelage.envs.bipedal.body import FRICTION, INERTIA, JOINTS, MASS, SOLVING_ORDER, Num
from tutelage.envs.bipedal.contacts import AXIS, SLOTS, Contact
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
from tutelage.envs.bipedal.lanes import (
    InUse,
    by_xla_on_gpu,
    fence,
    if_used,
    in_kernel,
    in_turn,
    in_use,
    join,
    known_lane,
    largest,
    over,
    split,
    where,
    while_active,
)

SWEEPS = 32
SAME = 1e-6  # by which a sweep may change w and count as changing nothing
LEAPS = 8  # over what further sweeps would do, each after three
FARTHEST = 8.0  # leap, as a multiple of the last change

Vector = tuple[Num, ...]  # of length 7: hull x, y, turn; left upper, lower; right upper, lower leg
Five = tuple[Num, ...]  # of one leg: hull x, y, turn; upper, lower leg
State = TypeVar("State", bound=tuple)


class Row(NamedTuple):
    """A row R⁻¹ r of one leg, divided by its length."""

    unit: Five
    length: Num


class Motor(NamedTuple):
    """A joint's row, and what its motor and limits want, measured in that."""

    unit: Five
    speed: Num
    most: Num
    lower: Num  # 0 if it is at the limit, else −∞
    upper: Num  # 0 if it is at the limit, else ∞


class Point(NamedTuple):
    """A contact point: its rows, and how it sticks and slides. One that is off has zeros for rows, and does nothing.

    No more than this, so that a GPU's registers can hold all points.
    """

    normal: Five
    tangent: Five
    tie: Num  # what an impulse along one row adds to the speed along the other
    friction: Num
    ahead: Num  # the normal impulse of a point that slides ahead, for each unit of speed down
    back: Num
    ease: Num  # that of one that sticks; of one that may jam, the share of a change that is made at once


class Foothold(NamedTuple):
    """A contact's two points."""

    right: Bool[Array, "..."]
    points: tuple[Point, ...]


def solve(problem: Problem) -> Solution:
    """As `exact.solve`, but that a joint's impulses are all its motor's."""
    bodies, velocities, drives, joints, contacts, memory = problem
    levers = fence(_levers(tuple(hinge(joint, bodies) for joint in JOINTS)))
    root = fence(_root(levers))
    bends = fence(tuple(_bend(root, j) for j in range(4)))
    rows = fence(tuple(_rows(contacts, k, levers, root) for k in range(2)))
    w = _even(root, _momentum(levers, velocities))
    turning = tuple(impulse.motor * bend.length for impulse, bend in zip(joints, bends, strict=True))
    held = _scaled(GripImpulse(memory.normal, memory.tangent), rows)
    w = _started(w, bends, turning, rows, held, contacts.body >= 2)
    motors = fence(tuple(_motor(bend, drive) for bend, drive in zip(bends, drives, strict=True)))
    used = in_use(contacts.on)
    footholds = split(fence(_foothold(contacts, rows)), SLOTS, used)

    def sweep(state):
        w, turning, held = state
        w, turning = _drive_all(w, motors, turning)
        w, held = over(_press, w, footholds, held, used)
        return w, turning, held

    state = (w, turning, split(held, SLOTS, used))
    w, turning, held = _swept_by_thirds(motors, footholds, used, state) if by_xla_on_gpu() else _swept(sweep, state)
    velocities = _velocities(levers, _uneven(root, w))
    none = jnp.zeros_like(w[0])
    exerted = (t / bend.length for t, bend in zip(turning, bends, strict=True))
    return velocities, tuple(JointImpulse(none, none, t, none) for t in exerted), _unscaled(join(held, AXIS), rows)


def _swept(sweep: Callable[[State], State], state: State) -> State:
    """The state (w, then impulses) after all sweeps; in kernels, when one changes next to nothing, which is sooner.

    Where changes have come to shrink by the same share from one sweep to the next, they have a sum. Every third time
    they are carried on to it at once, w as the impulses that it follows from; where that was wrong, the next sweeps
    mend it. So 32 sweeps come closer to where they all lead than 64 would without.
    """
    if in_kernel():
        return _swept_in_kernel(sweep, state)

    def once(_: Int[Array, ""], steps: tuple[Vector, State, State]) -> tuple[Vector, State, State]:
        before, now = steps[1:]
        return before[0], now, sweep(now)

    def three(_: Int[Array, ""], state: State) -> State:
        w, before, now = fence(lax.fori_loop(0, 3, once, (state[0], state, state)))
        return _carried_on(now, _changes(before, now), _changes(w, before[0]))

    state = lax.fori_loop(0, LEAPS, three, state)
    return lax.fori_loop(0, SWEEPS - 3 * LEAPS, lambda _, state: sweep(state), state)


def _swept_by_thirds(motors: tuple[Motor, ...], footholds: tuple[Foothold, ...], used: InUse, state: State) -> State:
    """The same by XLA on GPUs: one kernel, and a third of the contacts at a time, as many as it can read."""
    third = SLOTS // 3

    def press_some(k: Int[Array, ""], kept, at):
        (motors, footholds), (state, begin, last) = kept, at
        begins, ends = k % 3 == 0, k % 3 == 2
        begin = where(begins, state, begin)
        w, turning = where(begins, _drive_all(state[0], motors, state[1]), state[:2])
        w, pressed = over(_press, w, footholds, state[2][:third], used)
        state = (w, turning, (*state[2][third:], *pressed))
        changes = _changes(begin, state)
        leaps = ends & (k // 3 % 3 == 2) & (k // 3 < 3 * LEAPS)
        return where(leaps, _carried_on(state, changes, last), state), begin, where(ends, changes[0], last)

    kept = [(motors, footholds[third * k : third * (k + 1)]) for k in range(3)]
    none = tuple(jnp.zeros_like(v) for v in state[0])
    return in_turn(press_some, kept, (state, state, none), 3 * SWEEPS)[0]


class _Sweeping(NamedTuple):
    """Where sweeps have come to."""

    state: Any
    change: Vector  # of w by the last
    goes_on: Bool[Array, "..."]


def _swept_in_kernel(sweep: Callable[[State], State], state: State) -> State:
    def once(k: Int[Array, ""], at: _Sweeping) -> _Sweeping:
        after = sweep(at.state)
        changes = _changes(at.state, after)
        leaps = (k % 3 == 2) & (k < 3 * LEAPS)
        goes_on = largest([jnp.abs(v) for v in changes[0]]) > SAME
        after = if_used(leaps, lambda after: _carried_on(after, changes, at.change), after)
        return _Sweeping(after, changes[0], goes_on)

    none = tuple(jnp.zeros_like(v) for v in state[0])
    begin = _Sweeping(state, none, jnp.ones_like(none[0], bool))
    return while_active(lambda at: at.goes_on, once, begin, last=SWEEPS).state


def _changes(before: State, after: State) -> State:
    return jax.tree.map(operator.sub, after, before)


def _carried_on(state: State, changes: State, last: Vector) -> State:
    """The state to which further changes add up, after the last of w and those that came then."""
    how_far = fence(_sum_of_shares(changes[0], last))
    return jax.tree.map(lambda v, change: v + how_far * change, state, changes)


def _sum_of_shares(change: Vector, last: Vector) -> Num:
    """s + s² + s³ + …, where s is the share of the last change that the next one was; none if that does not end."""
    share = _sum([a * b for a, b in zip(change, last, strict=True)]) / jnp.maximum(_sum([b * b for b in last]), 1e-30)
    return jnp.where((share > 0) & (share < 1), jnp.minimum(share / jnp.maximum(1 - share, 1e-3), FARTHEST), 0.0)


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


class LegRoot(NamedTuple):
    """A leg's part of R: the inverse of its diagonal, what is below that, and the rows that tie the hull to it."""

    upper: Num
    lower: Num
    below: Num
    ties: tuple[tuple[Num, Num], ...]


class HullRoot(NamedTuple):
    """The hull's part of R: the inverse of its diagonal, and what is below that."""

    diagonal: tuple[Num, Num, Num]
    below: tuple[Num, Num, Num]  # (y, x), (turn, x), (turn, y)


class Root(NamedTuple):
    """R, lower triangular with the legs first and the hull last."""

    legs: tuple[LegRoot, LegRoot]
    hull: HullRoot


def _root(levers: tuple[Levers, Levers]) -> Root:
    legs = fence((_leg_root(levers[0]), _leg_root(levers[1])))
    both = MASS[1] + MASS[2]
    hips = (levers[0].hip, levers[1].hip)
    mass = sum(MASS) * jnp.ones_like(hips[0][0])
    xx, xy, yy = mass, jnp.zeros_like(mass), mass
    xt, yt = -both * (hips[0][1] + hips[1][1]), both * (hips[0][0] + hips[1][0])
    tt = INERTIA[0] + both * (_dot(hips[0], hips[0]) + _dot(hips[1], hips[1]))
    for leg in legs:
        x, y, t = leg.ties
        xx, xy, xt = xx - _dot(x, x), xy - _dot(x, y), xt - _dot(x, t)
        yy, yt, tt = yy - _dot(y, y), yt - _dot(y, t), tt - _dot(t, t)
    dx = 1 / jnp.sqrt(xx)
    yx, tx = xy * dx, xt * dx
    dy = 1 / jnp.sqrt(yy - yx * yx)
    ty = (yt - tx * yx) * dy
    return Root(legs, HullRoot((dx, dy, 1 / jnp.sqrt(tt - tx * tx - ty * ty)), (yx, tx, ty)))


def _leg_root(lever: Levers) -> LegRoot:
    up, low = MASS[1], MASS[2]
    d11 = INERTIA[1] + up * _dot(lever.thigh, lever.thigh) + low * _dot(lever.knee, lever.knee)
    d12 = low * _dot(lever.knee, lever.shin)
    d22 = INERTIA[2] + low * _dot(lever.shin, lever.shin)
    first = 1 / jnp.sqrt(d11)
    below = d12 * first
    leg = LegRoot(first, 1 / jnp.sqrt(d22 - below * below), below, ())
    upper = (up * lever.thigh[0] + low * lever.knee[0], up * lever.thigh[1] + low * lever.knee[1])
    lower = (low * lever.shin[0], low * lever.shin[1])
    with_hull = ((-upper[1], -lower[1]), (upper[0], lower[0]), (_dot(lever.hip, upper), _dot(lever.hip, lower)))
    return leg._replace(ties=tuple(_leg_even(leg, *row) for row in with_hull))


def _leg_even(leg: LegRoot, upper: Num, lower: Num) -> tuple[Num, Num]:
    first = leg.upper * upper
    return first, leg.lower * (lower - leg.below * first)


def _hull_even(hull: HullRoot, x: Num, y: Num, turn: Num) -> tuple[Num, Num, Num]:
    yx, tx, ty = hull.below
    x = hull.diagonal[0] * x
    y = hull.diagonal[1] * (y - yx * x)
    return x, y, hull.diagonal[2] * (turn - tx * x - ty * y)


def _even(root: Root, p: Vector) -> Vector:
    """R⁻¹ p."""
    left, right = (_leg_even(leg, *p[3 + 2 * k : 5 + 2 * k]) for k, leg in enumerate(root.legs))
    ties = zip(p[:3], root.legs[0].ties, root.legs[1].ties, strict=True)
    hull = (v - _dot(a, left) - _dot(b, right) for v, a, b in ties)
    return fence((*_hull_even(root.hull, *hull), *left, *right))


def _uneven(root: Root, w: Vector) -> Vector:
    """R⁻ᵀ w."""
    yx, tx, ty = root.hull.below
    dx, dy, dt = root.hull.diagonal
    turn = dt * w[2]
    y = dy * (w[1] - ty * turn)
    hull = fence((dx * (w[0] - yx * y - tx * turn), y, turn))
    legs = []
    for k, leg in enumerate(root.legs):
        upper, lower = (
            w[3 + 2 * k + i] - _sum([v * tie[i] for v, tie in zip(hull, leg.ties, strict=True)]) for i in (0, 1)
        )
        lower = leg.lower * lower
        legs += [leg.upper * (upper - leg.below * lower), lower]
    return (*hull, *legs)


def _row(hull: HullRoot, leg: LegRoot, r: Five) -> Row:
    """R⁻¹ r for a row of one leg."""
    pair = _leg_even(leg, *r[3:])
    five = (*_hull_even(hull, *(v - _dot(tie, pair) for v, tie in zip(r[:3], leg.ties, strict=True))), *pair)
    five = fence(five)
    length = jnp.sqrt(_speed(five, five))
    inverse = 1 / length
    return Row(tuple(v * inverse for v in five), length)


def _bend(root: Root, j: int) -> Row:
    """The row of joint j: by how much faster its lower body turns than its upper one."""
    one, none = jnp.ones_like(root.hull.below[0]), jnp.zeros_like(root.hull.below[0])
    hip = j % 2 == 0
    r = (none, none, -one if hip else none, one if hip else -one, none if hip else one)
    return _row(root.hull, root.legs[j // 2], r)


def _motor(bend: Row, drive: Drive) -> Motor:
    lower, upper = jnp.where(drive.at_lower, 0.0, -jnp.inf), jnp.where(drive.at_upper, 0.0, jnp.inf)
    return Motor(bend.unit, drive.speed / bend.length, drive.impulse * bend.length, lower, upper)


class Rows(NamedTuple):
    """Those of a contact point, along the normal and along the ground."""

    normal: Row
    tangent: Row


def _rows(c: Contact, k: int, levers: tuple[Levers, Levers], root: Root) -> Rows:
    """Of point k of contacts `[8, …]`; zeros where it is off."""
    right, lower = c.body >= 2, c.body % 2 == 1
    lever, leg = where(right, levers[1], levers[0]), where(right, root.legs[1], root.legs[0])
    arm, none = (c.arm_x[k], c.arm_y[k]), jnp.zeros_like(c.normal_x)
    upper_arm = where(lower, lever.knee, (lever.thigh[0] + arm[0], lever.thigh[1] + arm[1]))
    lower_arm = where(lower, (lever.shin[0] + arm[0], lever.shin[1] + arm[1]), (none, none))

    def along(d: tuple[Num, Num]) -> Row:
        r = (*d, _cross(lever.hip, d), _cross(upper_arm, d), _cross(lower_arm, d))
        row = _row(root.hull, leg, fence(r))
        return where(c.on[k], row, Row((none,) * 5, none + 1))

    return Rows(along((c.normal_x, c.normal_y)), along((c.normal_y, -c.normal_x)))


def _foothold(contacts: Contact, rows: tuple[Rows, ...]) -> Foothold:
    """The contacts `[8, …]`, prepared."""
    return Foothold(contacts.body >= 2, tuple(_point(*r) for r in rows))


def _point(normal: Row, tangent: Row) -> Point:
    tie = _speed(normal.unit, tangent.unit)
    friction = FRICTION * tangent.length / normal.length
    along = friction * tie
    ahead, back = 1 / jnp.maximum(1 + along, 0.1), 1 / jnp.maximum(1 - along, 0.1)
    ease = 1 / jnp.where(_jams(friction, tie), 1 + jnp.abs(along), jnp.maximum(1 - tie * tie, 1e-9))
    return Point(normal.unit, tangent.unit, tie, friction, ahead, back, ease)


def _jams(friction: Num, tie: Num) -> Bool[Array, "..."]:
    """Where friction may press the foot down by nearly as much as it relieves it.

    Only the motors keep it from jamming then, and must be given time.
    """
    return friction * jnp.abs(tie) > 0.75


def _scaled(held: GripImpulse, rows: tuple[Rows, ...]) -> GripImpulse:
    """Impulses of the contacts `[8, …]`, measured in their rows."""
    normal, tangent = ([getattr(r, name).length for r in rows] for name in Rows._fields)
    return GripImpulse(_products(held.normal, normal), _products(held.tangent, tangent))


def _unscaled(held: GripImpulse, rows: tuple[Rows, ...]) -> GripImpulse:
    normal, tangent = ([1 / getattr(r, name).length for r in rows] for name in Rows._fields)
    return GripImpulse(_products(held.normal, normal), _products(held.tangent, tangent))


def _products(a: Sequence[Num], b: Sequence[Num]) -> tuple[Num, ...]:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def _started(
    w: Vector, bends: Sequence[Row], turning: Sequence[Num], rows: Sequence[Rows], held: GripImpulse, right: Array
) -> Vector:
    """w with the impulses that are there already."""
    for j, (bend, impulse) in enumerate(zip(bends, turning, strict=True)):
        w = _with_leg(w, j // 2, _add(_leg(w, j // 2), bend.unit, impulse))
    none = jnp.zeros_like(held.normal[0])
    pushed = (none,) * 5
    for r, n, t in zip(rows, held.normal, held.tangent, strict=True):
        pushed = _add(_add(pushed, r.normal.unit, n), r.tangent.unit, t)
    wide = (*pushed[:3], *where(right, (none, none), pushed[3:]), *where(right, pushed[3:], (none, none)))
    return fence(tuple(v + jnp.sum(x, axis=0) for v, x in zip(w, wide, strict=True)))


def _drive_all(w: Vector, motors: Sequence[Motor], turning: Sequence[Num]) -> tuple[Vector, tuple[Num, ...]]:
    """The joints, one after the other."""
    new = list(turning)
    for j in SOLVING_ORDER:
        w, new[j] = _drive(w, j, motors[j], turning[j])
    return w, tuple(new)


def _drive(w: Vector, j: int, motor: Motor, turning: Num) -> tuple[Vector, Num]:
    """One joint: its motor, unless that would carry it past its limit."""
    five = _leg(w, j // 2)
    stop = -_speed(five, motor.unit, -turning)
    new = jnp.clip(stop + motor.speed, -motor.most, motor.most)
    new = fence(jnp.minimum(jnp.maximum(new, stop + motor.lower), stop + motor.upper))
    return _with_leg(w, j // 2, _add(five, motor.unit, new - turning)), new


def _press(w: Vector, foothold: Foothold, held: GripImpulse, used: Sequence) -> tuple[Vector, GripImpulse]:
    """A contact: its points, one after the other."""
    five = (*w[:3], *where(foothold.right, w[5:], w[3:5]))
    normal, tangent = list(held.normal), list(held.tangent)
    for k, point in enumerate(foothold.points):
        state = (five, normal[k], tangent[k])
        five, normal[k], tangent[k] = if_used(used[k], partial(_press_point, point), state)
    left, right = where(foothold.right, (w[3:5], five[3:]), (five[3:], w[5:]))
    return (*five[:3], *left, *right), GripImpulse(tuple(normal), tuple(tangent))


def _press_point(point: Point, state: tuple[Five, Num, Num]) -> tuple[Five, Num, Num]:
    five, n, t = state
    new_n, new_t = fence(_coulomb(five, n, t, point))
    five = _add(_add(five, point.normal, new_n - n), point.tangent, new_t - t)
    return five, new_n, new_t


def _coulomb(five: Five, n: Num, t: Num, p: Point) -> tuple[Num, Num]:
    """A point's normal and tangential impulse, solved together: it lifts off, sticks, or slides one way or the other.

    One after the other, as Box2D does it, they chase each other in these coordinates, where a push along the ground
    lifts or presses the foot by way of the whole leg, and may never meet.
    """
    own_n, own_t = n + p.tie * t, t + p.tie * n
    vn, vt = _speed(five, p.normal, -own_n), _speed(five, p.tangent, -own_t)  # without this point's impulses
    press = jnp.maximum(-vn, 0.0)
    # The more friction pushes ahead, the faster the point slips ahead: it sticks if it would slip ahead with all
    # friction ahead, and back with all of it back.
    ahead, back = press * p.ahead, press * p.back
    falls_behind = vt + ahead * (p.tie + p.friction) <= 0
    gets_ahead = vt + back * (p.tie - p.friction) >= 0
    out = (p.ease * (p.tie * vt - vn), p.ease * (p.tie * vn - vt))
    out = where(gets_ahead, (back, -p.friction * back), out)
    out = where(falls_behind, (ahead, p.friction * ahead), out)
    jams = _jams(p.friction, p.tie)

    def slowly(out: tuple[Num, Num]) -> tuple[Num, Num]:
        slow_n = jnp.maximum(n - (vn + own_n) * p.ease, 0.0)
        most = p.friction * slow_n
        return where(jams, (slow_n, jnp.clip(t - (vt + own_t), -most, most)), out)

    return if_used(known_lane(jams), slowly, out)


def _leg(w: Vector, side: int) -> Five:
    return (*w[:3], *w[3 + 2 * side : 5 + 2 * side])


def _with_leg(w: Vector, side: int, five: Five) -> Vector:
    return (*five, *w[5:]) if side == 0 else (*five[:3], *w[3:5], *five[3:])


def _speed(w: Five, row: Five, more: Num | float = 0.0) -> Num:
    """The product of the two, and something more, added up so that little of it waits for the rest."""
    a, b, c, d, e = (x * y for x, y in zip(w, row, strict=True))
    return ((more + a) + b) + (c + d + e)


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


def _add(w: Five, row: Five, impulse: Num) -> Five:
    return fence(tuple(v + r * impulse for v, r in zip(w, row, strict=True)))


def _sum(values: Sequence[Num]) -> Num:
    out = values[0]
    for value in values[1:]:
        out = out + value
    return out


def _dot(a: tuple[Num, Num], b: tuple[Num, Num]) -> Num:
    return a[0] * b[0] + a[1] * b[1]


def _cross(a: tuple[Num, Num], b: tuple[Num, Num]) -> Num:
    return a[0] * b[1] - a[1] * b[0]
