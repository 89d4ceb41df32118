"""Contacts of random poses with random ground are those of Box2D's collision functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d
from tutelage.envs.bipedal.physics import body, manifold

N = 4000
b2 = box2d.walkers.Box2D


def poses(rng, spread_y):
    return np.float32(
        np.stack([rng.uniform(-0.9, 0.9, N), rng.uniform(-spread_y, spread_y, N), rng.uniform(-3.2, 3.2, N)])
    )


def leg(x, y, angle):
    return body.leg_polygon(x, y, angle, jnp.float32(body.HALF_WIDTH[1]))


def hull(x, y, angle):
    """Here a pose is that of the hull's origin, as for Box2D's functions."""
    dx, dy = body.turn(jnp.cos(angle), jnp.sin(angle), *body.HULL_CENTRE)
    return body.hull_polygon(x + dx, y + dy, angle)


SHAPES = {
    "leg": (leg, b2.b2PolygonShape(box=(3.2 / 30, 17 / 30))),
    "hull": (hull, b2.b2PolygonShape(vertices=[tuple(v) for v in body.HULL_SHAPE])),
}


def real_manifold(collide, ground, shape, pose):
    found = b2.b2Manifold()
    there, here = b2.b2Transform(), b2.b2Transform()
    there.SetIdentity()
    here.Set(tuple(map(float, pose[:2])), float(pose[2]))
    collide(found, ground, there, shape, here)
    world = b2.b2WorldManifold()
    world.Initialize(found, there, 0.01, here, 0.01)
    return found, world


def compare(collide, shape, grounds, poses, ours):
    """How often the points are as many; largest differences of points and normals where they are."""
    same, differences, points = [], [], 0
    for k, (ground, pose) in enumerate(zip(grounds, poses.T, strict=True)):
        found, world = real_manifold(collide, ground, shape, pose)
        on = [bool(ours.on[i][k]) for i in range(2)]
        same.append(sum(on) == found.pointCount)
        # The hill-climbing of Box2D 2.3 may take another than the shallowest way out of a deep overlap.
        if same[-1] and found.pointCount and ours.depth[k] > -0.3:
            points += 1
            sign = -1 if ours.by_body[k] else 1
            n = np.array([ours.normal_x[k], ours.normal_y[k]])
            differences.append(np.abs(sign * n - world.normal).max())
            placed = []
            for i in range(2):
                if on[i]:
                    p = np.array([ours.x[i][k], ours.y[i][k]])
                    gap = n @ (p - [ours.plane_x[k], ours.plane_y[k]])
                    placed.append(p - 0.5 * gap * n)
            differences.append(np.abs(np.array(placed) - np.array(world.points[: len(placed)])).max())
    return np.mean(same), np.array(differences), points


@pytest.mark.parametrize("name", SHAPES)
def test_with_edges(name):
    rng = np.random.default_rng(0)
    ends = np.float32(np.stack([np.full(N, -0.2333), rng.uniform(-0.4, 0.4, N), np.full(N, 0.2333), -np.zeros(N)]))
    at = poses(rng, 0.9)
    polygon, shape = SHAPES[name]
    ours = jax.jit(lambda p, e: manifold.with_edge(polygon(*p), *e))(at, ends)
    grounds = [b2.b2EdgeShape(vertices=[tuple(map(float, e[:2])), tuple(map(float, e[2:]))]) for e in ends.T]
    same, differences, points = compare(b2.b2CollideEdgeAndPolygon, shape, grounds, at, jax.tree.map(np.asarray, ours))
    assert points > N / 20
    assert same >= 0.999
    assert np.quantile(differences, 0.999) < 1e-5


@pytest.mark.parametrize("name", SHAPES)
def test_with_boxes(name):
    rng = np.random.default_rng(1)
    sides = np.float32(np.stack([-rng.uniform(0.1, 1, N), rng.uniform(0.1, 1, N), rng.uniform(0, 0.5, N), -np.ones(N)]))
    at = poses(rng, 1.3)
    polygon, shape = SHAPES[name]
    ours = jax.jit(lambda p, s: manifold.with_box(polygon(*p), *s))(at, sides)
    grounds = [
        b2.b2PolygonShape(vertices=[(l, b), (r, b), (r, t), (l, t)])
        for l, r, t, b in sides.T.astype(float).tolist()  # noqa: E741
    ]
    same, differences, points = compare(b2.b2CollidePolygons, shape, grounds, at, jax.tree.map(np.asarray, ours))
    assert points > N / 20
    assert same >= 0.999
    assert np.quantile(differences, 0.999) < 1e-5
