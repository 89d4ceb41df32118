"""Times of impact: leg bodies that would pass into the ground within a step are stopped where they meet it.

As in Box2D, a struck body is moved back to the moment its core comes within 5 mm of the ground, pushed out and slowed
down there *alone*, as if it had no joints, and moves on for the rest of the step. The joints are mended in the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from tutelage.envs.bipedal.physics import manifold
from tutelage.envs.bipedal.physics.body import (
    HALF_LENGTH,
    HALF_WIDTH,
    LEGS,
    SECONDS,
    SLOP,
    Bodies,
    Body,
    Num,
    cos_sin,
    leg_polygon,
    turn,
    unturn,
)
from tutelage.envs.bipedal.physics.contacts import SLOTS, Contact, Feet, Footing, Memory, moved_along
from tutelage.envs.bipedal.physics.ground import Cells, Look
from tutelage.envs.bipedal.physics.machine import fence, if_any, machine
from tutelage.envs.bipedal.physics.nearby import NOTHING, Surveyed, codes, passed
from tutelage.envs.bipedal.physics.position import Poses, push_out_struck
from tutelage.envs.bipedal.physics.tools import choose, some, where
from tutelage.envs.bipedal.physics.velocity import GripImpulse, Velocities, grip_all, grips_of, with_first

TARGET = SLOP  # the distance of the cores at the time of impact
MARGIN = 0.25 * SLOP
NEAR, FAR = TARGET - MARGIN, TARGET + MARGIN
STRIKES = 16  # pieces of ground that bodies are followed to
AXES = 8  # along which the time is sought, one after the other
CORNERS = 8  # that are followed along an axis
LATEST = 1 - 10 * 2.0**-23  # an impact after this fraction of the step is left to the next
SEARCH = 20  # steps to the time one corner comes
MAX_SHIFT = 2.0  # metres a step
MAX_TURN = 1.5707964  # radians a step


class Piece(NamedTuple):
    """A piece of ground as a rectangle about (x, y) along the unit vector e; an edge is one without thickness."""

    x: Num
    y: Num
    ex: Num
    ey: Num
    half_length: Num
    half_height: Num


class Axis(NamedTuple):
    """A unit vector from the ground to a body, or if it is the body's, in its frame, from it to the ground."""

    x: Num
    y: Num
    by_body: Bool[Array, "..."]


class Sweep(NamedTuple):
    """Bodies on their way through a step, from the pose at t = 0 by the shift to that at t = 1."""

    x: Num
    y: Num
    angle: Num
    dx: Num
    dy: Num
    turn: Num
    half_width: Num

    def at(self, t: Num | float) -> tuple[Num, Num, Num]:
        """The pose at a time in [0, 1]."""
        return self.x + t * self.dx, self.y + t * self.dy, self.angle + t * self.turn


class Effort(NamedTuple):
    """How far impacts are followed."""

    rounds: int  # impacts of one body in a step
    iterations: int  # over the contacts, to find a struck body's velocity


ENOUGH, THOROUGH = Effort(2, 16), Effort(8, 180)


def effort(tolerance: float) -> Effort:
    """At a tolerance of 0, as far as Box2D does."""
    return ENOUGH if tolerance else THOROUGH


class Flight(NamedTuple):
    """Where the leg bodies stand while impacts are found."""

    start: Poses  # from where they are still to be followed
    time: tuple[Num, ...]  # when they are there, as a fraction of the step
    end: Bodies
    met: Poses  # where their contacts were last looked for
    memory: Memory
    feet: Feet
    unsettled: Bool[Array, "..."]  # the positions at the end are not yet final


class Aimed(NamedTuple):
    """Which leg bodies are struck next, when, and where they stand then."""

    struck: tuple[Bool[Array, "..."], ...]
    time: tuple[Num, ...]
    met: Poses


def take_off(start: Bodies, end: Bodies, memory: Memory, feet: Feet) -> Flight:
    """Before the first impact."""
    legs = tuple(b[:3] for b in start[1:])
    none = jnp.zeros_like(end[0].x)
    return Flight(legs, (none,) * LEGS, end, legs, memory, feet, none != 0)


def endangered(flight: Flight, surveyed: Surveyed) -> Bool[Array, "..."]:
    """Who may be struck at all."""
    return some(_passed(flight, surveyed) < NOTHING)


def aim(flight: Flight, surveyed: Surveyed, look: Look) -> Aimed:
    """The first impact of each leg body on the rest of its way."""
    end = flight.end
    code = _passed(flight, surveyed)
    never = (jnp.full_like(end[0].x, 2.0),) * LEGS
    share = fence(if_any(code < NOTHING, lambda _: _times(code, flight, look), never))
    time = tuple(t + f * (1 - t) for t, f in zip(flight.time, share, strict=True))
    struck = tuple(t < LATEST for t in time)
    time = tuple(jnp.where(s, t, old) for t, old, s in zip(time, flight.time, struck, strict=True))
    met = fence(
        tuple(
            where(s, tuple(v + f * (w - v) for v, w in zip(a, b[:3], strict=True)), m)
            for a, b, m, f, s in zip(flight.start, end[1:], flight.met, share, struck, strict=True)
        )
    )
    return Aimed(struck, time, met)


def bounce(flight: Flight, aimed: Aimed, footing: Footing, iterations: int) -> Flight:
    """The struck bodies stopped where they met the ground, and on their way again."""
    end, contacts, (struck, time, met) = flight.end, footing.contacts, aimed
    hit = choose(contacts.body, struck)
    contacts = contacts._replace(on=fence((contacts.on[0] & hit, contacts.on[1] & hit)))
    poses = push_out_struck((end[0][:3], *met), contacts)
    velocities = _stopped(contacts, poses, end, iterations)
    after = [
        where(s, moved(pose, velocity, (1 - t) * SECONDS), body)
        for pose, velocity, body, s, t in zip(poses[1:], velocities[1:], end[1:], struck, time, strict=True)
    ]
    start = _where_each(struck, poses[1:], flight.start)
    return Flight(start, time, (end[0], *after), met, footing.memory, footing.feet, flight.unsettled)


def _where_each(masks: tuple[Bool[Array, "..."], ...], yes: Poses, no: Poses) -> Poses:
    """One of two poses for each body."""
    return tuple(where(m, a, b) for m, a, b in zip(masks, yes, no, strict=True))


def _stopped(contacts: Contact, poses: Poses, end: Bodies, iterations: int) -> Velocities:
    """The velocities of bodies at these poses after their contacts have stopped them."""
    contacts = with_first(moved_along(contacts, poses[1:]))
    used = machine().in_use(contacts.on)
    grips = grips_of(contacts, used)
    none = jnp.zeros_like(contacts.normal_x)
    held = machine().split(GripImpulse((none, none), (none, none)), SLOTS, used)
    velocities = tuple(b[3:] for b in end)
    once = lambda grips, s: grip_all(s[0], grips, s[1], used)  # noqa: E731
    return machine().repeated(once, grips, (velocities, held), iterations)[0]


def moved(pose: tuple[Num, ...], velocity: tuple[Num, ...], seconds: Num | float) -> Body:
    """The body after this time at this velocity, which is cut where it would carry it too far."""
    (x, y, angle), (vx, vy, spin) = pose, velocity
    far = seconds * jnp.sqrt(vx * vx + vy * vy)
    cut = jnp.where(far > MAX_SHIFT, MAX_SHIFT / jnp.maximum(far, 1e-9), 1.0)
    wide = seconds * jnp.abs(spin)
    vx, vy = cut * vx, cut * vy
    spin = jnp.where(wide > MAX_TURN, MAX_TURN / jnp.maximum(wide, 1e-9), 1.0) * spin
    return Body(x + seconds * vx, y + seconds * vy, angle + seconds * spin, vx, vy, spin)


def _passed(flight: Flight, surveyed: Surveyed) -> Int[Array, "16 ..."]:
    """The codes of what may strike the leg bodies on the rest of their way (see `nearby`)."""
    return codes(passed(flight.start, flight.end[1:], surveyed.cells, FAR), surveyed.first, STRIKES)


def _times(code: Int[Array, "16 ..."], flight: Flight, look: Look) -> tuple[Num, ...]:
    """When the first of these pieces of ground strikes each leg body, as a fraction of the way; 2 for never."""
    there, edge = code < NOTHING, code >> 8 & 1 == 0
    body = jnp.where(there, code >> 9, 0)
    near = fence(look(jnp.where(there, code & 255, 0)))
    sweep, piece = fence((_sweep(body, flight), where(edge, _edge_piece(near), _box_piece(near))))
    there &= _may_strike(sweep, piece)

    def first(never: tuple[Num, ...]) -> tuple[Num, ...]:
        t = machine().for_present(there, _search, (sweep, piece), 2.0, share=8)
        x, y, angle = sweep.at(t)
        shape = fence(leg_polygon(x, y, angle, sweep.half_width))
        depth = manifold.with_edge(shape, near.x1, near.y1, near.x2, near.y2).depth

        def by_kind(depth: Num) -> Num:
            box = manifold.with_box(shape, near.left, near.right, near.top, near.bottom)
            return jnp.where(edge, depth, box.depth)

        t = jnp.where(if_any(there & ~edge, by_kind, depth) < jnp.inf, t, 2.0)
        return tuple(jnp.min(jnp.where(body == b, t, 2.0), axis=0) for b in range(LEGS))

    return if_any(there, first, (jnp.full_like(flight.end[0].x, 2.0),) * LEGS)


def _sweep(body: Int[Array, "16 ..."], flight: Flight) -> Sweep:
    """The ways of these leg bodies."""
    ends = [b[:3] for b in flight.end[1:]]
    shifts = [tuple(e - s for s, e in zip(*way, strict=True)) for way in zip(flight.start, ends, strict=True)]
    x, y, angle = (choose(body, values) for values in zip(*flight.start, strict=True))
    dx, dy, turn = (choose(body, values) for values in zip(*shifts, strict=True))
    return Sweep(x, y, angle, dx, dy, turn, jnp.where(body % 2 == 0, *HALF_WIDTH))


def _may_strike(sweep: Sweep, piece: Piece) -> Bool[Array, "..."]:
    """Whether a piece of ground may strike a body.

    As in Box2D, those that overlap at first never strike, nor do those that at the end are still apart along the axis
    that separates them at first. Whether the others come near in truth is for `_search` to find out.
    """
    first, axis = fence(_nearest(sweep.at(0.0), sweep.half_width, piece))
    middle, a, b = _along(axis, sweep.at(1.0), sweep.half_width, piece)
    comes_near = (first < FAR) | (middle - jnp.abs(a) - jnp.abs(b) <= NEAR)
    return comes_near & _apart(sweep.at(0.0), sweep.half_width, piece)


def _search(given: tuple[Sweep, Piece], there: Bool[Array, "..."]) -> Num:
    """When bodies come within 5 mm of the pieces that are there, as Box2D finds it; 2 for never.

    A body is followed to where it is near along the axis that separates it from the piece at first. If it is not near
    in truth, there is another axis, along which it is followed from there, and so on.
    """
    sweep, piece = given

    def advance(_, state):
        t, found, active = state
        distance, axis = fence(_nearest(sweep.at(t), sweep.half_width, piece))
        found = jnp.where(active & (distance < FAR), t, found)
        active &= distance >= FAR
        later, active, stuck = _follow_axis(sweep, piece, axis, t, active)
        return jnp.where(active, later, t), jnp.where(stuck, t, found), active

    zero = jnp.zeros_like(piece.x)
    return machine().while_active(lambda s: s[2], advance, (zero, zero + 2, there), last=AXES, between=2)[1]


def _follow_axis(
    sweep: Sweep, piece: Piece, axis: Axis, begin: Num, active: Bool[Array, "..."]
) -> tuple[Num, Bool[Array, "..."], Bool[Array, "..."]]:
    """When the nearest corner along the axis is 5 mm away, whether it ever is, and whether one was at the beginning."""

    def follow_corner(kept, state):
        (sweep, piece, axis, begin), (t, active, reached, at_once) = kept, state

        def along(t: Num) -> tuple[Num, Num, Num]:
            return _along(axis, sweep.at(t), sweep.half_width, piece)

        middle, a, b = fence(along(t))
        corner = (jnp.where(a > 0, -1.0, 1.0), jnp.where(b > 0, -1.0, 1.0))

        def separation(t: Num) -> Num:
            middle, a, b = along(t)
            return middle + corner[0] * a + corner[1] * b

        first, last = fence((separation(begin), middle - jnp.abs(a) - jnp.abs(b)))
        reached |= active & (last > NEAR) & (last <= FAR)
        active &= last <= NEAR
        at_once |= active & (first >= NEAR) & (first <= FAR)
        active &= first > FAR
        return _root(separation, (begin, first), (t, last), active), active, reached, at_once

    none = jnp.zeros_like(active)
    state = (jnp.ones_like(begin), active, none, none)
    t, _, reached, at_once = machine().repeated(
        follow_corner, (sweep, piece, axis, begin), state, CORNERS, lambda s: s[1]
    )
    return t, reached, at_once


def _root(f: Callable[[Num], Num], first: tuple[Num, Num], last: tuple[Num, Num], active: Bool[Array, "..."]) -> Num:
    """Where f is 5 mm between two points (t, f(t)), to within a quarter, by bisection and secants in turn."""

    def look_between(k, state):
        (t1, f1), (t2, f2), t, active = state
        secant = t1 + (TARGET - f1) * (t2 - t1) / jnp.where(f1 == f2, 1.0, f2 - f1)
        new = jnp.where((k & 1) == 1, secant, 0.5 * (t1 + t2))
        value = f(new)
        before = value > TARGET
        first, last = where(before, (new, value), (t1, f1)), where(before, (t2, f2), (new, value))
        return first, last, jnp.where(active, new, t), active & (jnp.abs(value - TARGET) >= MARGIN)

    state = (first, last, last[0], active)
    return machine().while_active(lambda s: s[3], look_between, state, last=SEARCH)[2]


def _along(axis: Axis, pose: tuple[Num, Num, Num], half_width: Num, piece: Piece) -> tuple[Num, Num, Num]:
    """Along the axis: the way from its owner's side to the other's middle, and the other's half length and height."""
    x, y, angle = pose
    cos, sin = cos_sin(angle)
    nx, ny = where(axis.by_body, turn(cos, sin, axis.x, axis.y), (axis.x, axis.y))
    apart = nx * (x - piece.x) + ny * (y - piece.y)
    along, across = unturn(cos, sin, nx, ny)
    body = (half_width * along, HALF_LENGTH * across)
    along, across = unturn(piece.ex, piece.ey, nx, ny)
    ground = (piece.half_length * along, piece.half_height * across)
    own, other = where(axis.by_body, body, ground), where(axis.by_body, ground, body)
    return jnp.where(axis.by_body, -apart, apart) - jnp.abs(own[0]) - jnp.abs(own[1]), *other


def _nearest(pose: tuple[Num, Num, Num], half_width: Num, piece: Piece) -> tuple[Num, Axis]:
    """The distance of the cores of a leg body and a piece of ground apart from it, and its direction."""
    of_body, of_piece = _beyond(_frames(pose, piece), half_width, piece)
    best = (jnp.full_like(piece.x, jnp.inf), piece.x, piece.y, jnp.zeros_like(piece.x, bool))
    for x, y in of_body:
        square = x * x + y * y
        best = where(square < best[0], (square, x, y, best[3]), best)
    for x, y in of_piece:
        # Between two corners, the direction is the world's.
        square = jnp.where((x == 0) | (y == 0), x * x + y * y, jnp.inf)
        best = where(square < best[0], (square, x, y, jnp.ones_like(x, bool)), best)
    square, x, y, by_body = best
    distance = jnp.sqrt(square)
    x, y = x / distance, y / distance
    x, y = where(by_body, (x, y), turn(piece.ex, piece.ey, x, y))
    return distance, Axis(x, y, by_body)


def _edge_piece(cells: Cells) -> Piece:
    dx, dy = cells.x2 - cells.x1, cells.y2 - cells.y1
    length = jnp.sqrt(dx * dx + dy * dy)
    middle = (0.5 * (cells.x1 + cells.x2), 0.5 * (cells.y1 + cells.y2))
    return Piece(*middle, dx / length, dy / length, 0.5 * length, jnp.zeros_like(length))


def _box_piece(cells: Cells) -> Piece:
    one, none = jnp.ones_like(cells.left), jnp.zeros_like(cells.left)
    middle = (0.5 * (cells.left + cells.right), 0.5 * (cells.bottom + cells.top))
    return Piece(*middle, one, none, 0.5 * (cells.right - cells.left), 0.5 * (cells.top - cells.bottom))


def _apart(pose: tuple[Num, Num, Num], half_width: Num, piece: Piece) -> Bool[Array, "..."]:
    """Whether the cores of a leg body and a piece of ground do not overlap."""
    px, py, ux, uy, qx, qy = _frames(pose, piece)
    ax, ay = jnp.abs(ux), jnp.abs(uy)
    apart = jnp.abs(px) > piece.half_length + half_width * ax + HALF_LENGTH * ay
    apart |= jnp.abs(py) > piece.half_height + half_width * ay + HALF_LENGTH * ax
    apart |= jnp.abs(qx) > half_width + piece.half_length * ax + piece.half_height * ay
    return apart | (jnp.abs(qy) > HALF_LENGTH + piece.half_length * ay + piece.half_height * ax)


def _frames(pose: tuple[Num, Num, Num], piece: Piece) -> tuple[Num, ...]:
    """The body's place in the piece's frame, its first axis there, and the piece's place in the body's frame."""
    x, y, angle = pose
    px, py = unturn(piece.ex, piece.ey, x - piece.x, y - piece.y)
    ux, uy = unturn(piece.ex, piece.ey, *cos_sin(angle))
    qx, qy = -(px * ux + py * uy), px * uy - py * ux
    return fence((px, py, ux, uy, qx, qy))


def _beyond(frames: tuple[Num, ...], half_width: Num, piece: Piece) -> tuple[list[tuple[Num, Num]], ...]:
    """How far beyond the piece each corner of the body lies, in its frame, and beyond the body each of the piece's."""
    px, py, ux, uy, qx, qy = frames
    of_body, of_piece = [], []
    for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        w, h = a * half_width, b * HALF_LENGTH
        x, y = px + w * ux - h * uy, py + w * uy + h * ux
        of_body.append((_excess(x, piece.half_length), _excess(y, piece.half_height)))
        w, h = a * piece.half_length, b * piece.half_height
        x, y = qx + w * ux + h * uy, qy - w * uy + h * ux
        of_piece.append((_excess(x, half_width), _excess(y, HALF_LENGTH)))
    return of_body, of_piece


def _excess(x: Num, half: Num | float) -> Num:
    """The way to x from the interval about zero."""
    return x - jnp.clip(x, -half, half)
