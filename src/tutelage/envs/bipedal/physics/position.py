"""Box2D's position pass: contacts pushed out and joints pulled together, one after the other, until all is in place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.physics.body import (
    ANGULAR_SLOP,
    INVERSE_INERTIA,
    INVERSE_MASS,
    JOINTS,
    LEGS,
    SKIN,
    SLOP,
    SOLVING_ORDER,
    Joint,
    Num,
    Pose,
    cos_sin,
    small_cos_sin,
    turn,
)
from tutelage.envs.bipedal.physics.contacts import SLOTS, Contact
from tutelage.envs.bipedal.physics.machine import InUse, Known, fence, machine, when
from tutelage.envs.bipedal.physics.tools import any_of, choose, largest, where

POSITION_ITERATIONS = 60
IMPACT_ITERATIONS = 20
MAX_PUSH = 0.2  # metres an iteration
MAX_BEND = 0.13962634  # 8° an iteration

Poses = tuple[Pose, ...]


class Stance(NamedTuple):
    """A pose with the cosine and sine of its angle, which follow it from one small turn to the next."""

    x: Num
    y: Num
    angle: Num
    cos: Num
    sin: Num

    def moved(self, dx: Num, dy: Num, by: Num) -> Stance:
        """The stance after a shift and a turn."""
        return Stance(self.x + dx, self.y + dy, *self.turned(by)[2:])

    def turned(self, by: Num) -> Stance:
        """The stance after a turn."""
        cos, sin = small_cos_sin(by)
        cos, sin = self.cos * cos - self.sin * sin, self.sin * cos + self.cos * sin
        return Stance(self.x, self.y, self.angle + by, cos, sin)


Stances = tuple[Stance, ...]


class Point(NamedTuple):
    """A contact point: the gap is normal · (body + arm − origin) − shift, with one of normal and arm turned.

    That is the normal, `turns`, for a reference side of the body, which looks the other way, and has no arm; else the
    arm, `turns`.
    """

    on: Bool[Array, "..."]
    turns: tuple[Num, Num]
    origin: tuple[Num, Num]
    shift: Num


class Foothold(NamedTuple):
    """A contact."""

    body: Int[Array, "..."]
    by_body: Bool[Array, "..."]
    normal: tuple[Num, Num]  # if it is not the body's
    points: tuple[Point, ...]
    inverse_mass: Num
    inverse_inertia: Num


Limits = Sequence[tuple[Bool[Array, "..."], Bool[Array, "..."]]]  # of each joint: was it at its lower, at its upper?


def settle(
    poses: Poses, contacts: Contact, limits: Limits, still: float, portions: Sequence[int] = (POSITION_ITERATIONS,)
) -> Poses:
    """At most 60 iterations over contacts, then joints; fewer if all is in place or none of it moves more than `still`.

    `limits` is as it was when the step began. After each of the portions, those who have settled are left alone.
    """
    first, *later = portions
    poses, unsettled = settle_some(poses, contacts, limits, still, first)
    if not later:
        return poses

    def go_on(given: tuple[Poses, Contact, Limits]) -> Poses:
        return settle(*given, still, later)

    return machine().for_few(unsettled, go_on, (poses, contacts, limits), poses, share=4)


def settle_some(
    poses: Poses, contacts: Contact, limits: Limits, still: float, times: int
) -> tuple[Poses, Bool[Array, "..."]]:
    """So many iterations at most, and of which walkers not all is in place then."""
    used = machine().in_use(contacts.on)
    footholds = machine().split(_foothold(contacts), SLOTS, used)
    limited = [machine().known(at_lower | at_upper) for at_lower, at_upper in limits]

    def iterate(kept, state):
        (footholds, limits), (before, active) = kept, state
        stances, least = push_out(before, footholds, used, 0.2)
        fine = jnp.minimum(jnp.minimum(*least[:2]), jnp.minimum(*least[2:])) >= -3 * SLOP
        for j in SOLVING_ORDER:
            stances, ok = _pull(stances, JOINTS[j], limits[j], limited[j])
            fine &= ok
        moved = _largest_move(before, stances) > still
        return machine().where_active(active, stances, before), active & ~fine & moved

    state = (_stances(poses), jnp.ones_like(poses[0][0], bool))
    stances, active = machine().repeated(iterate, (footholds, tuple(limits)), state, times, lambda s: s[1])
    return _from_stances(stances), active


def _stances(poses: Poses) -> Stances:
    return fence(tuple(Stance(x, y, angle, *cos_sin(angle)) for x, y, angle in poses))


def _from_stances(stances: Stances) -> Poses:
    return tuple(stance[:3] for stance in stances)


Pushed = tuple[Stances, tuple[Bool[Array, "..."], ...]]  # and which leg bodies are still to be pushed


def push_out_struck(poses: Poses, contacts: Contact) -> Poses:
    """The position pass at a time of impact: no joints, each body by itself, and pushed out faster."""
    used = machine().in_use(contacts.on)
    footholds = machine().split(_foothold(contacts), SLOTS, used)

    def iterate(footholds: PyTree, state: Pushed) -> Pushed:
        before, active = state
        after, least = push_out(before, footholds, used, 0.75)
        legs = (where(a, new, old) for a, new, old in zip(active, after[1:], before[1:], strict=True))
        active = tuple(a & (gap < -1.5 * SLOP) for a, gap in zip(active, least, strict=True))
        return (before[0], *legs), active

    state: Pushed = (_stances(poses), (jnp.ones_like(poses[0][0], bool),) * LEGS)
    stances, _ = machine().repeated(iterate, footholds, state, IMPACT_ITERATIONS, lambda s: any_of(s[1]))
    return _from_stances(stances)


def _foothold(contacts: Contact) -> Foothold:
    """The contacts `[8, …]`, prepared."""
    c, side, plane = contacts, (contacts.side_x, contacts.side_y), (contacts.plane_x, contacts.plane_y)
    shift = jnp.where(c.by_body, side[0] * plane[0] + side[1] * plane[1], 0.0)
    points = tuple(
        Point(on, where(c.by_body, side, corner), where(c.by_body, corner, plane), shift)
        for on, corner in zip(c.on, zip(c.x, c.y, strict=True), strict=True)
    )
    return fence(Foothold(c.body, c.by_body, side, points, c.inverse_mass, c.inverse_inertia))


def push_out(stances: Stances, footholds: PyTree, used: InUse, factor: float) -> tuple[Stances, tuple[Num, ...]]:
    """One iteration over the first contacts (as `split` makes them), and the least separation of each leg body."""

    def push(carry, foothold: Foothold, _, there: Sequence):
        stances, least = carry
        mine = [foothold.body == b for b in range(LEGS)]
        state = (Stance(*(choose(foothold.body, values) for values in zip(*stances[1:], strict=True))), none)
        for point, needed in zip(foothold.points, there, strict=True):
            state = when(needed, partial(_push_point, foothold, point, factor), state)
        stance, gap = state
        legs = tuple(where(m, stance, old) for m, old in zip(mine, stances[1:], strict=True))
        least = tuple(jnp.where(m, jnp.minimum(old, gap), old) for m, old in zip(mine, least, strict=True))
        return fence(((stances[0], *legs), least)), None

    none = jnp.full_like(stances[0].x, jnp.inf)
    return machine().over(push, (stances, (none,) * LEGS), footholds, None, used)[0]


def _push_point(foothold: Foothold, point: Point, factor: float, state: tuple[Stance, Num]) -> tuple[Stance, Num]:
    """The body's stance after the point pushed it, and the least of how far its points were from touching."""
    stance, least = state
    turned = turn(stance.cos, stance.sin, *point.turns)
    x, y = stance.x - point.origin[0], stance.y - point.origin[1]
    nx, ny = where(foothold.by_body, (-turned[0], -turned[1]), foothold.normal)
    arm_x, arm_y = where(foothold.by_body, (-x, -y), turned)
    x, y = where(foothold.by_body, (x, y), (x + turned[0], y + turned[1]))
    gap = x * nx + y * ny - point.shift - SKIN
    lever = arm_x * ny - arm_y * nx
    stiffness = foothold.inverse_mass + foothold.inverse_inertia * lever * lever
    push = -jnp.clip(factor * (gap + SLOP), -MAX_PUSH, 0.0) / stiffness
    push = jnp.where(point.on, push, 0.0)
    straight = foothold.inverse_mass * push
    stance = stance.moved(straight * nx, straight * ny, foothold.inverse_inertia * push * lever)
    return fence((stance, jnp.where(point.on, jnp.minimum(least, gap), least)))


def _pull(stances: Stances, joint: Joint, limits: tuple, limited: Known) -> tuple[Stances, Bool[Array, "..."]]:
    """A joint's limit, then its anchors; whether both were in place before."""
    a, b = stances[joint.a], stances[joint.b]
    ma, mb = INVERSE_MASS[joint.a], INVERSE_MASS[joint.b]
    ia, ib = INVERSE_INERTIA[joint.a], INVERSE_INERTIA[joint.b]
    state = (a, b, jnp.zeros_like(a.x))
    a, b, error = when(limited, partial(_bend_back, joint, *limits), state)
    rax, ray = turn(a.cos, a.sin, *joint.anchor_a)
    rbx, rby = turn(b.cos, b.sin, *joint.anchor_b)
    cx, cy = (b.x - a.x) + (rbx - rax), (b.y - a.y) + (rby - ray)
    k11 = ma + mb + ia * ray * ray + ib * rby * rby
    k12 = -ia * rax * ray - ib * rbx * rby
    k22 = ma + mb + ia * rax * rax + ib * rbx * rbx
    det = 1 / (k11 * k22 - k12 * k12)
    px, py = fence((-det * (k22 * cx - k12 * cy), -det * (k11 * cy - k12 * cx)))
    new = list(stances)
    new[joint.a] = fence(a.moved(-ma * px, -ma * py, -ia * (rax * py - ray * px)))
    new[joint.b] = fence(b.moved(mb * px, mb * py, ib * (rbx * py - rby * px)))
    return tuple(new), (cx * cx + cy * cy <= SLOP * SLOP) & (error <= ANGULAR_SLOP)


def _bend_back(
    joint: Joint, at_lower: Array, at_upper: Array, state: tuple[Stance, Stance, Num]
) -> tuple[Stance, Stance, Num]:
    """The joint's bodies turned back towards a limit that they are beyond, and how far they were."""
    a, b, _ = state
    ia, ib = INVERSE_INERTIA[joint.a], INVERSE_INERTIA[joint.b]
    angle = b.angle - a.angle - joint.reference
    low, high = angle - joint.lower, angle - joint.upper
    excess = jnp.where(at_lower, jnp.clip(low + ANGULAR_SLOP, -MAX_BEND, 0.0), 0.0)
    excess = jnp.where(at_upper, jnp.clip(high - ANGULAR_SLOP, 0.0, MAX_BEND), excess)
    error = jnp.where(at_lower, -low, jnp.where(at_upper, high, 0.0))
    impulse = -excess * (1 / (ia + ib))
    return fence((a.turned(-ia * impulse), b.turned(ib * impulse), error))


def _largest_move(before: Stances, after: Stances) -> Num:
    return largest(
        [jnp.abs(u - v) for a, b in zip(before, after, strict=True) for u, v in zip(a[:3], b[:3], strict=True)]
    )
