"""What is near the legs is found, and kept in Box2D's order: beside a plain search through all that is around them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal.walkers import some_walkers
from tutelage.envs.bipedal.physics import contacts, impact, manifold
from tutelage.envs.bipedal.physics.body import HALF_WIDTH, leg_polygon
from tutelage.envs.bipedal.physics.ground import Ground
from tutelage.envs.bipedal.physics.machine import computed_on
from tutelage.envs.bipedal.physics.nearby import NOTHING, _place_of, box_again, cells_around, codes, passed, touching
from tutelage.envs.bipedal.run.machines import OnCPU

N = 3000
ORDER = {3: 0, 2: 1, 0: 2, 1: 3}  # of the leg bodies, in Box2D's list


@pytest.fixture(scope="module")
def strewn():
    """Legs thrown on ground of all kinds, with what is around them."""
    _, _, tiles = some_walkers(N)
    rng = np.random.default_rng(0)
    places = rng.integers(25, 190, (4, N))
    # Around a corner of the ground, or of a rectangle if there is one.
    at = np.asarray(tiles)[np.arange(N), places]
    is_box = (at[..., 2] < at[..., 3]) & (rng.random((4, N)) < 0.7)
    x = np.where(is_box, at[..., 2], at[..., 0]) + rng.normal(0, 0.4, (4, N))
    y = np.where(is_box, at[..., 4], at[..., 1]) + rng.normal(0.5, 0.4, (4, N))
    angle = np.where(rng.random((4, N)) < 0.2, np.pi / 2, rng.uniform(-3, 3, (4, N)))
    legs = tuple(tuple(jnp.asarray(v[k], jnp.float32) for v in (x, y, angle)) for k in range(4))
    look = Ground(tiles, jnp.arange(N))
    return legs, look, jax.jit(lambda: cells_around(legs, look))()


def all_around(legs, surveyed):
    """How deep every candidate is, `[kind, body, cell, lane]`, by looking closely at each."""
    cells = surveyed.cells
    upper = jnp.arange(4)[:, None, None] % 2 == 0
    x, y, angle = (jnp.stack([leg[k] for leg in legs])[:, None] for k in range(3))
    shapes = leg_polygon(x, y, angle, jnp.where(upper, *HALF_WIDTH))
    edges = manifold.with_edge(shapes, cells.x1, cells.y1, cells.x2, cells.y2).depth
    boxes = manifold.with_box(shapes, cells.left, cells.right, cells.top, cells.bottom).depth
    return np.asarray(jnp.stack([edges, jnp.where(box_again(cells), jnp.inf, boxes)]))


def kept(depth, number, at_impact):
    """The codes of one lane's deepest six, in Box2D's order."""
    found = [
        (depth[at], 512 * at[1] + 256 * at[0] + number[at[1:]], at) for at in map(tuple, np.argwhere(depth < np.inf))
    ]
    found = sorted(found)[: contacts.SLOTS]

    def key(entry):
        _, _, (kind, body, cell) = entry
        strikes = at_impact and entry is next(other for other in found if other[2][1] == body)
        return ORDER[body], not strikes, kind, -cell

    return [code for _, code, _ in sorted(found, key=key)]


@pytest.mark.parametrize("at_impact", [False, True])
def test_all_that_touches_is_kept_in_order(strewn, at_impact):
    legs, look, surveyed = strewn
    depth, number = all_around(legs, surveyed), np.asarray(surveyed.number)
    memory = contacts.empty_memory(legs[0][0])
    no = jnp.zeros(N, bool)
    with computed_on(OnCPU()):
        footing = jax.jit(lambda: contacts.footing_of(legs, surveyed, look, memory, (no, no), at_impact=at_impact))()
    near = np.asarray(jax.jit(lambda: codes(touching(legs, surveyed.cells), surveyed.first))() < NOTHING).sum(0)
    key, on = np.asarray(footing.contacts.key), np.asarray(jnp.stack(footing.contacts.on))
    box = np.asarray(surveyed.cells.box)
    lengths = []
    for lane in range(N):
        if near[lane] == 8:  # there may have been more
            continue
        want = kept(depth[..., lane], number[..., lane], at_impact)
        want = [_key(code, number[..., lane], box[..., lane]) for code in want]
        assert [int(k) for k in key[:, lane] if k >= 0] == want
        assert (on[:, :, lane].any(0) == (key[:, lane] >= 0)).all()
        lengths.append(len(want))
    counts = np.bincount(lengths)
    assert len(lengths) > 0.9 * N
    assert (counts[:7] > 10).all(), "there were too few of some"


def _key(code, number, box):
    """By which a contact is known: a rectangle by its own number."""
    body, kind, cell = code >> 9, code >> 8 & 1, code & 255
    ground = 256 + box[body, list(number[body]).index(cell)] if kind else cell
    return 512 * body + ground


def test_all_that_is_met_on_the_way_is_found(strewn):
    """Every piece of ground whose core a body's core comes near at one of many moments."""
    legs, _, surveyed = strewn
    rng = np.random.default_rng(1)
    shift = rng.normal(0, [[0.05], [0.05], [0.2]], (4, 3, N)).astype(np.float32)
    end = tuple(tuple(v + d for v, d in zip(leg, by, strict=True)) for leg, by in zip(legs, shift, strict=True))
    cells = surveyed.cells
    upper = jnp.arange(4)[:, None, None] % 2 == 0
    half_width = jnp.where(upper, *HALF_WIDTH)
    pieces = [(impact._edge_piece(cells), cells.x1 < cells.x2), (impact._box_piece(cells), cells.left < cells.right)]

    @jax.jit
    def met(t):
        now = [[v + t * (w - v) for v, w in zip(a, b, strict=True)] for a, b in zip(legs, end, strict=True)]
        pose = tuple(jnp.stack(values)[:, None] for values in zip(*now, strict=True))
        apart = [impact._apart(pose, half_width, piece) for piece, _ in pieces]
        near = [impact._nearest(pose, half_width, piece)[0] < impact.FAR for piece, _ in pieces]
        return [there & (n | ~a) for (_, there), n, a in zip(pieces, near, apart, strict=True)]

    moments = [met(t) for t in np.linspace(0, 1, 41, dtype=np.float32)]
    edges, boxes = (np.any([m[kind] for m in moments], axis=0) for kind in range(2))
    found = jax.jit(lambda: passed(legs, end, cells, impact.FAR))()
    assert not (edges & ~np.asarray(found[0])).any()
    assert not (boxes & ~np.asarray(box_again(cells)) & ~np.asarray(found[1])).any()
    assert edges.sum() > 1000
    assert boxes.sum() > 100
    assert np.asarray(found[0]).sum() < 2 * edges.sum(), "it finds more than it needs to"
    assert np.asarray(found[1]).sum() < 2 * boxes.sum(), "it finds more than it needs to"


def test_bits_are_found_by_their_number():
    bits = np.array([0b1, 0b1011000, -1, 1 << 31, 0x10001 | 1 << 31], np.int64).astype(np.int32)
    for number in bits:
        places = [k for k in range(32) if int(number) >> k & 1]
        found = [int(_place_of(jnp.int32(number), jnp.int32(n))) for n in range(len(places))]
        assert found == places
