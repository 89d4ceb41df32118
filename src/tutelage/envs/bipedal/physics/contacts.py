"""The contacts of the four leg bodies: what is near them looked at closely, the deepest kept, known again later.

Six are kept, on an axis of eight; more than six at once are not seen in walking. They lie in the order in which Box2D
visits them (see `nearby`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from tutelage.envs.bipedal.physics import manifold
from tutelage.envs.bipedal.physics.body import (
    HALF_WIDTH,
    INVERSE_INERTIA,
    INVERSE_MASS,
    Num,
    cos_sin,
    leg_polygon,
    turn,
    unturn,
)
from tutelage.envs.bipedal.physics.ground import Look
from tutelage.envs.bipedal.physics.machine import fence, if_any, machine, when
from tutelage.envs.bipedal.physics.manifold import Manifold
from tutelage.envs.bipedal.physics.nearby import AXIS, NOTHING, Legs, Surveyed, codes, touching
from tutelage.envs.bipedal.physics.tools import choose, index, some, where

SLOTS = 6
FEATURES = 256  # that a point may have (see `manifold`)
FEET = (1, 3)  # the lower legs among the leg bodies 0 … 3

Feet = tuple[Bool[Array, "..."], ...]  # of the left and the right lower leg
Pair = tuple[Num, ...]  # one number for each of a manifold's two points


class Memory(NamedTuple):
    """The contacts of the last step, by what touched what, with their impulses. All `[8, …]`."""

    key: Int[Array, "8 ..."]  # 512 · body + the ground's number; −1 for none
    feature: tuple[Int[Array, "8 ..."], ...]
    normal: Pair
    tangent: Pair


class Contact(NamedTuple):
    """A contact, or an axis of them.

    The reference side is given in its owner's frame, the points in that of the other, so that both can be placed again
    when the body has moved.
    """

    key: Int[Array, "..."]
    body: Int[Array, "..."]  # 0 … 3, one less than its number among all bodies
    on: tuple[Bool[Array, "..."], ...]
    feature: tuple[Int[Array, "..."], ...]
    by_body: Bool[Array, "..."]
    side_x: Num
    side_y: Num
    plane_x: Num
    plane_y: Num
    x: Pair
    y: Pair
    normal_x: Num  # in the world, from the ground to the body
    normal_y: Num
    arm_x: Pair  # from the body's centre of mass to where the impulses act
    arm_y: Pair
    inverse_mass: Num
    inverse_inertia: Num


class Footing(NamedTuple):
    """What the legs touch, and what follows from what they touched before."""

    contacts: Contact
    memory: Memory  # of those contacts, with the impulses they have brought along
    feet: Feet


def empty_memory(like: Num) -> Memory:
    """That of a walker in the air."""
    none = jnp.zeros((AXIS, *like.shape), jnp.float32)
    key = jnp.full(none.shape, -1, jnp.int32)
    return Memory(key, (key, key), (none, none), (none, none))


def footing_of(
    legs: Legs, surveyed: Surveyed, look: Look, memory: Memory, feet: Feet, *, at_impact: bool = False
) -> Footing:
    """The contacts of the legs with the cells around them, in Box2D's order."""
    code = codes(touching(legs, surveyed.cells), surveyed.first)

    def find(nothing: tuple[Contact, Memory]) -> tuple[Contact, Memory]:
        contacts = _in_order(code, nothing[0], legs, look, at_impact)
        return contacts, recall(contacts, memory)

    contacts, recalled = if_any(code < NOTHING, find, _nothing(legs[0][0]))
    return Footing(contacts, recalled, latched(feet, memory, recalled, at_impact))


def _nothing(like: Num) -> tuple[Contact, Memory]:
    """No contact, and nothing to remember."""
    memory = empty_memory(like)
    none, no = jnp.zeros_like(memory.normal[0]), jnp.zeros_like(memory.key, bool)
    pair, whole = (none, none), jnp.zeros_like(memory.key)
    lines = (none, none, none, none, pair, pair, none, none, pair, pair, none, none)
    return Contact(memory.key, whole, (no, no), (whole, whole), no, *lines), memory


def _in_order(code: Int[Array, "8 ..."], nothing: Contact, legs: Legs, look: Look, at_impact: bool) -> Contact:
    """The contacts of these codes; if it shows that others should come first, they are looked at once more."""

    def look_closely(_: Int[Array, ""], state: tuple[Array, Contact, Array]) -> tuple[Array, Contact, Array]:
        code = state[0]
        contacts, depth = meet(code, legs, look)
        crowded = None if at_impact else machine().known(machine().entry(code, SLOTS) < NOTHING)
        better = when(crowded, lambda code: ordered(code, depth, at_impact), code)
        return better, contacts, some(better != code)

    state = (code, nothing, jnp.ones_like(legs[0][0], bool))
    return machine().while_active(lambda state: state[2], look_closely, state, last=2)[1]


def ordered(code: Int[Array, "8 ..."], depth: Num, at_impact: bool) -> Int[Array, "8 ..."]:
    """The codes of the deepest, as many as there is room for, in the order that they are in.

    At an impact each body's deepest, which struck, comes before its others.
    """
    slot, body = index(AXIS, code.ndim - 1), code >> 9
    one, other = partial(jnp.expand_dims, axis=1), partial(jnp.expand_dims, axis=0)
    deeper = (one(depth) < other(depth)) | ((one(depth) == other(depth)) & (one(code) < other(code)))
    kept = (jnp.sum(deeper.astype(jnp.int32), axis=0) < SLOTS) & (code < NOTHING)
    code = jnp.where(kept, code, NOTHING)
    key = slot
    if at_impact:
        follows = some(deeper & (one(body) == other(body)) & one(kept))
        key = 32 * choose(body, [2, 3, 1, 0]) + jnp.where(follows, AXIS, 0) + slot
    key = fence(jnp.where(kept, key, 128))
    place = jnp.sum((one(key) < other(key)).astype(jnp.int32), axis=0)
    return jnp.min(jnp.where(one(place) == other(slot), one(code), NOTHING), axis=0)


def meet(code: Int[Array, "8 ..."], legs: Legs, look: Look) -> tuple[Contact, Num]:
    """The contacts of these codes, `[8, …]`, and how deep each is; infinite for none."""
    there = code < NOTHING
    body, kind = jnp.where(there, code >> 9, 0), code >> 8 & 1
    cells = fence(look(jnp.where(there, code & 255, 0)))
    x, y, angle = fence(tuple(choose(body, [leg[k] for leg in legs]) for k in range(3)))
    upper = body % 2 == 0
    shape = fence(leg_polygon(x, y, angle, jnp.where(upper, *HALF_WIDTH)))
    edge = manifold.with_edge(shape, cells.x1, cells.y1, cells.x2, cells.y2)

    def by_kind(edge: Manifold) -> Manifold:
        box = manifold.with_box(shape, cells.left, cells.right, cells.top, cells.bottom)
        return where(kind == 0, edge, box)

    found = fence(if_any(there & (kind == 1), by_kind, edge))
    ground = jnp.where(kind == 0, code & 255, 256 + cells.box)
    on = (found.on[0] & there, found.on[1] & there)
    key = jnp.where(on[0] | on[1], 512 * body + ground, -1)
    masses = (jnp.where(upper, v[1], v[2]) for v in (INVERSE_MASS, INVERSE_INERTIA))
    contact = Contact(key, body, on, found.feature, found.by_body, *_anchored(found, x, y, angle), *masses)
    return fence((contact, jnp.where(there, found.depth, jnp.inf)))


def _anchored(found: Manifold, x: Num, y: Num, angle: Num) -> tuple:
    """A manifold's geometry in the frames of its owners, and as the velocity solver wants it."""
    cos, sin = cos_sin(angle)
    n = (found.normal_x, found.normal_y)
    side = where(found.by_body, unturn(cos, sin, *n), n)
    plane = where(found.by_body, unturn(cos, sin, found.plane_x - x, found.plane_y - y), (found.plane_x, found.plane_y))
    points = [
        where(found.by_body, (px, py), unturn(cos, sin, px - x, py - y))
        for px, py in zip(found.x, found.y, strict=True)
    ]
    gaps = [n[0] * (px - found.plane_x) + n[1] * (py - found.plane_y) for px, py in zip(found.x, found.y, strict=True)]
    arm_x = tuple(px - 0.5 * gap * n[0] - x for px, gap in zip(found.x, gaps, strict=True))
    arm_y = tuple(py - 0.5 * gap * n[1] - y for py, gap in zip(found.y, gaps, strict=True))
    outward = where(found.by_body, (-n[0], -n[1]), n)
    return (*side, *plane, tuple(p[0] for p in points), tuple(p[1] for p in points), *outward, arm_x, arm_y)


def placed(contact: Contact, k: int, x: Num, y: Num, angle: Num) -> tuple[Num, Num, Num, Num, Num]:
    """Point k of a contact when its body is at this pose: normal to the body, arm from its centre, separation."""
    cos, sin = cos_sin(angle)
    nx, ny = where(contact.by_body, turn(cos, sin, contact.side_x, contact.side_y), (contact.side_x, contact.side_y))
    moving = where(contact.by_body, (contact.plane_x, contact.plane_y), (contact.x[k], contact.y[k]))
    fixed = where(contact.by_body, (contact.x[k], contact.y[k]), (contact.plane_x, contact.plane_y))
    mx, my = turn(cos, sin, *moving)
    sign = jnp.where(contact.by_body, -1.0, 1.0)
    gap = sign * ((x + mx - fixed[0]) * nx + (y + my - fixed[1]) * ny)
    arm_x = jnp.where(contact.by_body, fixed[0] - x, mx)
    arm_y = jnp.where(contact.by_body, fixed[1] - y, my)
    return sign * nx, sign * ny, arm_x, arm_y, gap


def moved_along(contact: Contact, legs: Sequence[tuple[Num, ...]]) -> Contact:
    """The contacts `[8, …]` as the velocity solver wants them when the leg bodies have come to other poses."""
    x, y, angle = fence(tuple(choose(contact.body, [leg[k] for leg in legs]) for k in range(3)))
    points = [placed(contact, k, x, y, angle) for k in range(2)]
    half = jnp.where(contact.by_body, -0.5, 0.5)
    return fence(
        contact._replace(
            normal_x=points[0][0],
            normal_y=points[0][1],
            arm_x=tuple(arm_x - half * gap * nx for nx, _, arm_x, _, gap in points),
            arm_y=tuple(arm_y - half * gap * ny for _, ny, _, arm_y, gap in points),
        )
    )


def recall(contact: Contact, memory: Memory) -> Memory:
    """The contacts `[8, …]` as memory: with the impulses of points that were there before, by key and feature."""
    then, now = partial(jnp.expand_dims, axis=1), partial(jnp.expand_dims, axis=0)
    names = [then(FEATURES * memory.key + feature) for feature in memory.feature]
    feature = tuple(jnp.where(on, f, -1) for on, f in zip(contact.on, contact.feature, strict=True))
    normal, tangent = [], []
    for f in feature:
        name = now(jnp.where(f < 0, -1, FEATURES * contact.key + f))
        same = [name == old for old in names]
        normal.append(_sum_where(same, [then(v) for v in memory.normal]))
        tangent.append(_sum_where(same, [then(v) for v in memory.tangent]))
    return fence(Memory(contact.key, feature, tuple(normal), tuple(tangent)))


def _sum_where(masks: Sequence[Bool[Array, "8 8 ..."]], values: Sequence[Num]) -> Num:
    """The sum, over the first axis, of the values for which the masks are set."""
    return jnp.sum(sum(jnp.where(mask, v, 0.0) for mask, v in zip(masks, values, strict=True)), axis=0)


def latched(feet: Feet, before: Memory, now: Memory, at_impact: bool) -> Feet:
    """Gymnasium's ground flags: a begin sets them, an end clears them, whatever else still touches.

    Of several in a step the last decides: that of the contact which comes last in Box2D's order.
    """
    left, right = (_latched(flag, body, before.key, now.key, at_impact) for flag, body in zip(feet, FEET, strict=True))
    return left, right


def _latched(
    flag: Bool[Array, "..."], body: int, before: Int[Array, "8 ..."], now: Int[Array, "8 ..."], at_impact: bool
) -> Bool[Array, "..."]:
    """The flag of the leg body (0 … 3), by the keys before and now."""
    known = some(jnp.expand_dims(before, 1) == jnp.expand_dims(now, 0))
    lasting = some(jnp.expand_dims(now, 1) == jnp.expand_dims(before, 0))
    place = _place(now)
    if at_impact:
        place = jnp.where(_after_its_own(now >> 9), place, -512)
    begin = jnp.max(jnp.where((now >> 9 == body) & ~known, place, -1024), axis=0)
    end = jnp.max(jnp.where((before >> 9 == body) & ~lasting, _place(before), -1024), axis=0)
    return jnp.where(begin == end, flag, begin > end)


def _place(key: Int[Array, "8 ..."]) -> Int[Array, "8 ..."]:
    """Where a contact is among its body's in the order of `in_order`, by its key."""
    ground = key & 511
    return jnp.where(ground < 256, -ground, 512 - ground)


def _after_its_own(body: Int[Array, "8 ..."]) -> Bool[Array, "8 ..."]:
    """Whether an entry of the same body comes before."""
    here, there = index(AXIS, body.ndim), jnp.expand_dims(index(AXIS, body.ndim - 1), 0)
    return some((jnp.expand_dims(body, 1) == jnp.expand_dims(body, 0)) & (here < there))
