"""All iterations do in a step what Box2D does, and stay with it for a while when left alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d, lockstep
from tutelage.envs.bipedal.physics import begin
from tutelage.envs.bipedal.run.moment import packed
from tutelage.envs.bipedal.run.stages import step, table


@pytest.fixture(scope="module")
def engine():
    return lockstep.compiled(0.0)


@pytest.fixture(scope="module")
def errors(engine):
    return lockstep.follow(*engine, box2d.episodes(lockstep.EPISODES, lockstep.STEPS))


def test_begins_as_gymnasium(errors):
    assert errors["first"].max() < 1e-3


def test_first_step_is_known(engine):
    """What is stored of the step before the student acts is what the solver makes of it, whatever the force."""
    forces = jnp.float32([-5, -3.3, -0.02, 0, 0.4, 1.7, 4.2, 5])
    state, _ = engine[0](jax.tree.map(lambda v: jnp.stack([v] * 8), box2d.flat()), forces)
    birth = state._replace(**jax.vmap(lambda force: packed(begin.born(force)))(forces)._asdict())
    assert not np.allclose(birth.bodies.y, state.bodies.y, atol=1e-2)
    after, _ = engine[1](birth, jnp.zeros((8, 4)))
    for one, other in zip(jax.tree.leaves(state[:4]), jax.tree.leaves(after[:4]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.slow
def test_first_step_can_be_stored_anew(tmp_path):
    stages = table(0.0)
    begin.write_table(lambda world, efforts, look: step(world, efforts, look, stages)[0], tmp_path / "again.npz")
    with np.load(begin.TABLE) as stored, np.load(tmp_path / "again.npz") as again:
        assert sorted(stored) == sorted(again)
        for name in stored:
            np.testing.assert_allclose(stored[name], again[name], atol=1e-5)


def test_single_steps(errors):
    pose, velocity = errors["pose"], errors["velocity"]
    assert len(pose) > 500
    assert np.median(pose) < 1e-5
    assert np.median(velocity) < 1e-5
    assert np.quantile(velocity, 0.9) < 1e-3
    assert np.quantile(velocity, 0.98) < 0.1  # Box2D's own gap between 180 and 360 iterations


def test_what_the_student_sees(errors):
    assert np.median(errors["lidar"]) < 1e-5
    assert np.quantile(errors["lidar"], 0.98) < 1e-3
    assert np.quantile(errors["reward"], 0.95) < 1e-3
    assert errors["flags"].mean() < 0.01
    assert errors["ends"].mean() < 0.002


SCENES = {  # height above the start, (vx, vy) and spin of all, an action
    "thrown": (6.0, (1.0, 3.0), 0.2, (0.0, 0.0, 0.0, 0.0)),
    "limits": (6.0, (0.0, 0.0), 0.0, (1.0, 1.0, -1.0, -1.0)),
    "weak motors": (6.0, (0.0, 0.0), 0.0, (-0.02, 0.01, 0.02, -0.01)),
    "dropped": (0.3, (0.0, 0.0), 0.0, (0.0, 0.0, 0.0, 0.0)),
    "stamped": (0.2, (0.0, -5.0), 0.0, (0.0, 0.0, 0.0, 0.0)),
    "sliding": (0.05, (2.0, -1.0), 0.0, (0.1, 0.1, 0.1, 0.1)),
    "hopping": (0.5, (1.0, -2.0), 0.5, (0.0, -1.0, 0.0, -1.0)),
    "still": (0.0, (0.0, 0.0), 0.0, (0.0, 0.0, 0.0, 0.0)),
}


def test_scenes(engine):
    """Free motion, limits, motors, drops and slides from the same moment, left alone for half a second."""
    apart = drift(engine, SCENES, 25)
    assert max(apart.values()) < 1e-3, str(apart)


def drift(engine, scenes, steps):
    """How far the bodies come apart from Box2D's, by scene, in metres or radians."""
    start, step = engine
    worlds = [box2d.make(seed=3) for _ in scenes]
    terrain = jax.tree.map(lambda *v: jnp.stack(v), *(w[2] for w in worlds))
    state, _ = start(terrain, jnp.float32([w[3] for w in worlds]))
    for (env, *_), (height, velocity, spin, _) in zip(worlds, scenes.values(), strict=True):
        for _ in range(2):  # pulls the walker together first
            env.step(np.zeros(4, np.float32))
        for body in (env.hull, *env.legs):
            body.position = (body.position[0], body.position[1] + height)
            body.linearVelocity, body.angularVelocity = velocity, spin
    for _ in range(2):
        state, _ = step(state, jnp.zeros((8, 4)))
    state = state._replace(bodies=box2d.as_body(np.stack([box2d.bodies_of(w[0]) for w in worlds])))
    action = np.float32([scene[3] for scene in scenes.values()])
    worst = np.zeros(len(scenes))
    for _ in range(steps):
        state, _ = step(state, jnp.asarray(action))
        for k, (env, *_) in enumerate(worlds):
            env.step(action[k])
        real = np.stack([box2d.bodies_of(w[0]) for w in worlds])
        ours = np.stack([np.asarray(v) for v in state.bodies], -1)
        worst = np.maximum(worst, np.abs(ours - real)[..., :3].max((1, 2)))
    return dict(zip(scenes, worst.round(5).tolist(), strict=True))
