"""The walker's masses, shapes and joints are those that Box2D computes for gymnasium's walker."""

import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d
from tutelage.envs.bipedal.physics import body


@pytest.fixture(scope="module")
def real():
    return box2d.make(seed=0)[0]


def test_masses(real):
    for k, part in enumerate((real.hull, *real.legs)):
        about_origin = body.INERTIA[k] + body.MASS[k] * np.square(part.localCenter).sum()
        assert part.mass == pytest.approx(body.MASS[k], rel=1e-6)
        assert part.inertia == pytest.approx(about_origin, rel=1e-6)
    assert tuple(real.hull.localCenter) == pytest.approx(body.HULL_CENTRE, abs=1e-7)


def test_joints(real):
    for joint, ours in zip(real.joints, body.JOINTS, strict=True):
        anchor_a = np.array(joint.GetLocalAnchorA()) - joint.bodyA.localCenter
        assert anchor_a == pytest.approx(np.array(ours.anchor_a), abs=1e-6)
        assert tuple(joint.GetLocalAnchorB()) == pytest.approx(ours.anchor_b, abs=1e-6)
        assert tuple(joint.limits) == pytest.approx((ours.lower, ours.upper), rel=1e-6)
        assert joint.GetReferenceAngle() == pytest.approx(ours.reference, abs=1e-7)
        parts = [real.hull, *real.legs]
        assert (joint.bodyA, joint.bodyB) == (parts[ours.a], parts[ours.b])


@pytest.mark.parametrize("part", range(5))
def test_shapes(real, part):
    of_box2d = (real.hull, *real.legs)[part]
    x, y, angle = (jnp.float32(v) for v in (*of_box2d.worldCenter, of_box2d.angle))
    ours = body.hull_polygon(x, y, angle)
    if part:
        ours = body.leg_polygon(x, y, angle, jnp.float32(body.HALF_WIDTH[(part - 1) % 2]))
    shape = of_box2d.fixtures[0].shape
    corners = [of_box2d.GetWorldPoint(v) for v in shape.vertices]
    normals = [of_box2d.GetWorldVector(v) for v in shape.normals]
    assert np.stack([ours.x, ours.y], 1) == pytest.approx(np.array(corners), abs=1e-5)
    assert np.stack([ours.normal_x, ours.normal_y], 1) == pytest.approx(np.array(normals), abs=1e-5)


def test_friction(real):
    ground, leg = real.terrain[0].fixtures[0], real.legs[1].fixtures[0]
    assert np.sqrt(ground.friction * leg.friction) == pytest.approx(body.FRICTION, rel=1e-6)
    assert leg.restitution == ground.restitution == 0
