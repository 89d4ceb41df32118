"""Box2D's position pass: contacts pushed out and joints pulled together, one after the other, until all is in place."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.body import (
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
    cos_sin,
    turn,
)
from tutelage.envs.bipedal.contacts import SLOTS, Contact, placed
from tutelage.envs.bipedal.lanes import any_of, choose, fence, in_use, on_cpu, over, some_lane, split, where
from tutelage.envs.bipedal.scarce import where_scarce

ITERATIONS = 60
IMPACT_ITERATIONS = 20
FEW = 3  # iterations, after which most walkers have settled
MAX_PUSH = 0.2  # metres an iteration
MAX_TURN = 0.13962634  # 8° an iteration

Pose = tuple[Num, ...]  # x, y, angle of the centre of mass
Poses = tuple[Pose, ...]


def settle(poses: Poses, contacts: Contact, limits: Sequence[tuple], still: float) -> Poses:
    """At most 60 iterations over contacts, then joints; fewer if all is in place or none of it moves more than `still`.

    `limits` says of each joint whether it was at its lower and at its upper limit when the step began.
    """
    active = jnp.ones_like(poses[0][0], bool)
    if not on_cpu():
        return _iterate(poses, active, contacts, limits, still, 0, ITERATIONS)[0]

    def go_on(given: tuple[Poses, Bool[Array, "..."], Contact, Sequence[tuple]]) -> Poses:
        poses, active, contacts, limits = given
        return _iterate(poses, active, contacts, limits, still, FEW, ITERATIONS)[0]

    poses, active = _iterate(poses, active, contacts, limits, still, 0, FEW)
    return where_scarce(active, go_on, (poses, active, contacts, limits), poses, share=4)


def _iterate(
    poses: Poses,
    active: Bool[Array, "..."],
    contacts: Contact,
    limits: Sequence[tuple],
    still: float,
    first: int,
    last: int,
) -> tuple[Poses, Bool[Array, "..."]]:
    """The iterations from `first` to `last` of the walkers that are active, and which of them still are."""
    parts, count = split(contacts, SLOTS), in_use(contacts.on)

    def iterate(state):
        before, active, k = state
        poses, least = push_out(before, parts, count, 0.2)
        fine = jnp.minimum(jnp.minimum(*least[:2]), jnp.minimum(*least[2:])) >= -3 * SLOP
        for j in SOLVING_ORDER:
            poses, ok = _pull(poses, JOINTS[j], *limits[j])
            fine &= ok
        moved = _largest_move(before, poses) > still
        return where(active, poses, before), active & ~fine & moved, k + 1

    return lax.while_loop(lambda s: some_lane(s[1]) & (s[2] < last), iterate, (poses, active, first))[:2]


def push_out_struck(poses: Poses, contacts: Contact) -> Poses:
    """The position pass at a time of impact: no joints, each body by itself, and pushed out faster."""
    parts, count = split(contacts, SLOTS), in_use(contacts.on)

    def iterate(state):
        before, active, k = state
        after, least = push_out(before, parts, count, 0.75)
        legs = (where(a, new, old) for a, new, old in zip(active, after[1:], before[1:], strict=True))
        active = tuple(a & (gap < -1.5 * SLOP) for a, gap in zip(active, least, strict=True))
        return (before[0], *legs), active, k + 1

    def unfinished(state):
        _, active, k = state
        return some_lane(any_of(active)) & (k < IMPACT_ITERATIONS)

    active = (jnp.ones_like(poses[0][0], bool),) * LEGS
    return lax.while_loop(unfinished, iterate, (poses, active, 0))[0]


def push_out(
    poses: Poses, contacts: PyTree, count: Int[Array, ""] | None, factor: float
) -> tuple[Poses, tuple[Num, ...]]:
    """One iteration over the first contacts (as `split` makes them), and the least separation of each leg body."""

    def push(carry, contact: Contact, _):
        poses, least = carry
        pose = tuple(choose(contact.body, [p[i] for p in poses[1:]]) for i in range(3))
        gaps = []
        for k in range(2):
            pose, gap = fence(_push_point(pose, contact, k, factor))
            gaps.append(gap)
        mine = [contact.body == b for b in range(LEGS)]
        legs = tuple(where(m, pose, old) for m, old in zip(mine, poses[1:], strict=True))
        least = tuple(
            jnp.where(m, jnp.minimum(old, jnp.minimum(*gaps)), old) for m, old in zip(mine, least, strict=True)
        )
        legs, least = fence((legs, least))
        return ((poses[0], *legs), least), None

    none = (jnp.full_like(poses[0][0], jnp.inf),) * LEGS
    return over(push, (poses, none), contacts, None, count)[0]


def _push_point(pose: Pose, contact: Contact, k: int, factor: float) -> tuple[Pose, Num]:
    """The body's pose after point k pushed it, and how far the point was from touching."""
    nx, ny, arm_x, arm_y, gap = placed(contact, k, *pose)
    lever = arm_x * ny - arm_y * nx
    stiffness = contact.inverse_mass + contact.inverse_inertia * lever * lever
    push = -jnp.clip(factor * (gap - SKIN + SLOP), -MAX_PUSH, 0.0) / stiffness
    push = jnp.where(contact.on[k], push, 0.0)
    straight = contact.inverse_mass * push
    moved = (pose[0] + straight * nx, pose[1] + straight * ny, pose[2] + contact.inverse_inertia * push * lever)
    return moved, jnp.where(contact.on[k], gap - SKIN, jnp.inf)


def _pull(poses: Poses, joint: Joint, at_lower, at_upper) -> tuple[Poses, Bool[Array, "..."]]:
    """A joint's limit, then its anchors; whether both were in place before."""
    (ax, ay, aa), (bx, by, ba) = poses[joint.a], poses[joint.b]
    ma, mb = INVERSE_MASS[joint.a], INVERSE_MASS[joint.b]
    ia, ib = INVERSE_INERTIA[joint.a], INVERSE_INERTIA[joint.b]
    angle = ba - aa - joint.reference
    low, high = angle - joint.lower, angle - joint.upper
    excess = jnp.where(at_lower, jnp.clip(low + ANGULAR_SLOP, -MAX_TURN, 0.0), 0.0)
    excess = jnp.where(at_upper, jnp.clip(high - ANGULAR_SLOP, 0.0, MAX_TURN), excess)
    error = jnp.where(at_lower, -low, jnp.where(at_upper, high, 0.0))
    impulse = -excess / (ia + ib)
    aa, ba = fence((aa - ia * impulse, ba + ib * impulse))
    rax, ray = turn(*cos_sin(aa), *joint.anchor_a)
    rbx, rby = turn(*cos_sin(ba), *joint.anchor_b)
    cx, cy = bx + rbx - ax - rax, by + rby - ay - ray
    k11 = ma + mb + ia * ray * ray + ib * rby * rby
    k12 = -ia * rax * ray - ib * rbx * rby
    k22 = ma + mb + ia * rax * rax + ib * rbx * rbx
    det = 1 / (k11 * k22 - k12 * k12)
    px, py = fence((-det * (k22 * cx - k12 * cy), -det * (k11 * cy - k12 * cx)))
    new = list(poses)
    new[joint.a] = fence((ax - ma * px, ay - ma * py, aa - ia * (rax * py - ray * px)))
    new[joint.b] = fence((bx + mb * px, by + mb * py, ba + ib * (rbx * py - rby * px)))
    return tuple(new), (cx * cx + cy * cy <= SLOP * SLOP) & (error <= ANGULAR_SLOP)


def _largest_move(before: Poses, after: Poses) -> Num:
    out = jnp.zeros_like(before[0][0])
    for a, b in zip(before, after, strict=True):
        for u, v in zip(a, b, strict=True):
            out = jnp.maximum(out, jnp.abs(u - v))
    return out
