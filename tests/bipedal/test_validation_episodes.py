"""Whole short episodes beside gymnasium's: how they begin, their ground flags, and how they end."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d, lockstep
from tutelage.envs.bipedal import TOLERANCE
from tutelage.envs.bipedal.real import gymnasium

BATCH = 8
FORCES = np.float32(np.linspace(-4.9, 4.9, 3 * BATCH))
STEPS = 40
CALM = 20  # steps in which a script has not come to where a hair decides


class Script(NamedTuple):
    """Where the walker is put in what motion, and what it then does."""

    first: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)  # the action of the first ten steps
    then: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    metres: float = 0.0  # to the right
    velocity: float = 0.0
    spin: float = 0.0


SCRIPTS = {
    "collapses": Script(),
    "jumps": Script((0, -1, 0, -1), (0, 1, 0, 1)),
    "kicks": Script((1, 1, -1, 1), (-1, 1, 1, 1)),
    "stamps": Script((1, -1, 0, 0), (-0.5, 1, 0, 0)),
    "is thrown on its face": Script(velocity=3.0, spin=-8.0),
    "is thrown on its back": Script(velocity=-3.0, spin=4.0),
    "finishes": Script(metres=83.8, velocity=3.0),
    "goes back": Script(metres=-4.3, velocity=-4.0),
}
FIRST_ACTIONS = {
    "still": ((0, 0, 0, 0),) * 3,
    "the left foot jams": ((-0.94, 0.78, -0.22, -0.35), (-1, -1, 1, -0.16), (-0.85, -1, 0.68, 0.48)),
}
FALLS = ("is thrown on its face", "is thrown on its back", "goes back")


@pytest.fixture(scope="module", params=[0.0, TOLERANCE])
def engine(request):
    return lockstep.compiled(request.param)


def opened(force: float):
    """gymnasium on level ground, pushed by this force."""
    env = gymnasium()(2000)
    return env, env.begin((jax.tree.map(np.asarray, box2d.flat()), force)).obs


def grounds():
    return jax.tree.map(lambda v: jnp.stack([v] * BATCH), box2d.flat())


@pytest.mark.parametrize("actions", FIRST_ACTIONS.values(), ids=FIRST_ACTIONS)
def test_first_steps(engine, actions):
    """Observations at reset and in the three steps that pull the walker together, for two dozen pushes."""
    start, step = engine
    for forces in FORCES.reshape(-1, BATCH):
        state, obs = start(grounds(), jnp.asarray(forces))
        worlds, real = zip(*(opened(float(force)) for force in forces), strict=True)
        assert np.abs(np.asarray(obs) - real).max() < 1e-3
        for action in np.float32(actions):
            state, after = step(state, jnp.tile(action, (BATCH, 1)))
            real = [world.act(action).obs for world in worlds]
            assert np.abs(np.asarray(after.obs) - real).max() < 1e-3


class Side:
    """What one of the two worlds saw: `[step, script]`."""

    def __init__(self) -> None:
        self.flags, self.rewards, self.ends = [], [], []

    def see(self, obs, reward, terminated) -> None:
        self.flags.append(np.asarray(obs)[:, [8, 13]])
        self.rewards.append(np.asarray(reward))
        self.ends.append(np.asarray(terminated))

    def lengths(self) -> np.ndarray:
        return np.where(np.any(self.ends, axis=0), np.argmax(self.ends, axis=0) + 1, STEPS)


@pytest.fixture(scope="module")
def sides(engine):
    """The scripts, played here and in gymnasium."""
    start, step = engine
    worlds = [opened(1.0)[0] for _ in SCRIPTS]
    state, _ = start(grounds(), jnp.ones(BATCH))
    for _ in range(2):
        state, _ = step(state, jnp.zeros((BATCH, 4)))
        for world in worlds:
            world.act(np.zeros(4, np.float32))
    for world, script in zip(worlds, SCRIPTS.values(), strict=True):
        for body in (world.hull, *world.legs):
            body.position = (body.position[0] + script.metres, body.position[1])
            body.linearVelocity = (body.linearVelocity[0] + script.velocity, body.linearVelocity[1])
            body.angularVelocity += script.spin
        world.prev_shaping += 130 * script.metres / 30
    state = state._replace(bodies=box2d.as_body(np.stack([box2d.bodies_of(world) for world in worlds])))
    ours, real = Side(), Side()
    for t in range(STEPS):
        actions = [script.first if t < 10 else script.then for script in SCRIPTS.values()]
        state, after = step(state, jnp.float32(actions))
        ours.see(after.obs, after.reward, after.terminated)
        seen = [world.act(np.float32(action)) for world, action in zip(worlds, actions, strict=True)]
        real.see(*(np.stack([getattr(s, name) for s in seen]) for name in ("obs", "reward", "terminated")))
    return ours, real


def test_flags(sides):
    """As latched in gymnasium, step by step, until scripts end or small differences have grown.

    Who is thrown on its face has, in its seventh step, a foot that leaves one cell and meets the one before: Box2D
    tells of the end first, of the begin last. A few steps later small differences have grown there.
    """
    ours, real = (np.array(side.flags)[:CALM] for side in sides)
    played = np.arange(CALM)[:, None] < sides[1].lengths()
    assert np.abs(np.diff(real, axis=0)).sum() > 30  # feet lift off and touch down
    played[10:, list(SCRIPTS).index("is thrown on its face")] = False
    differ = (ours != real).any(-1) & played
    assert not differ.any(), dict(zip(SCRIPTS, map(np.flatnonzero, differ.T), strict=True))


def test_ends(sides):
    """The same scripts end in the same step: with a reward of −100, but not at the finish."""
    ours, real = sides
    over = np.any(real.ends, axis=0)
    assert dict(zip(SCRIPTS, over.tolist(), strict=True)) == {name: name in (*FALLS, "finishes") for name in SCRIPTS}
    assert np.array_equal(ours.lengths(), real.lengths())
    assert np.array_equal(np.any(ours.ends, axis=0), over)
    last = {name: (real.lengths()[k] - 1, k) for k, name in enumerate(SCRIPTS)}
    for t, k in (last[name] for name in FALLS):
        assert ours.rewards[t][k] == real.rewards[t][k] == -100
    t, k = last["finishes"]
    assert ours.rewards[t][k] == pytest.approx(real.rewards[t][k], abs=1e-3)
