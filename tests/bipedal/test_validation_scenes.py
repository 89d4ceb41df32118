"""Scenes of a second each, in Box2D and here from the same moment: drops, slides, limits, strikes.

A walker in the air is brought into a pose by its motors, then put down somewhere and left to one action. Feet that
strike the ground do so at a time that Box2D finds to within 1.25 mm; where that decides what comes next, Box2D parts
from itself when it begins a little higher, and the scene says nothing. Those here are ones where it does not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d, lockstep
from tutelage.envs.bipedal.physics.body import HALF_LENGTH, HALF_WIDTH
from tutelage.envs.bipedal.real import gymnasium
from tutelage.envs.bipedal.terrain import HEIGHT, Terrain

SECOND = 50  # steps
BATCH = 8  # scenes at a time
SLOPE_BEGINS = 9.0  # metres
ALOFT, POSING = 8.0, 30  # metres high, for so many steps, a walker takes up its pose

HANGING = (0.0, 0.0, 0.0, 0.0)
TRESTLE = (1.0, 1.0, -1.0, 1.0)  # one leg at its limit before, one behind, knees stretched: stands by itself
CROUCH = (1.0, -1.0, 1.0, -1.0)


class Scene(NamedTuple):
    """What is to happen."""

    pose: tuple[float, ...]  # the action that brings it about
    action: tuple[float, ...]
    height: float = 0.002  # metres, of the lowest foot above the ground
    velocity: tuple[float, float] = (0.0, 0.0)
    spin: float = 0.0
    slope: float = 0.0  # degrees, up if positive; the walker is turned with it
    turned: float = 0.0  # degrees, the walker against the ground


SCENES = {
    "free fall": Scene(HANGING, HANGING, 8.0, (1.0, 3.0), 0.2),
    "drop": Scene(TRESTLE, TRESTLE, 0.3),
    "drop, legs loose": Scene(HANGING, HANGING, 0.3),
    "slide, 40 degrees down": Scene(TRESTLE, TRESTLE, slope=-40.0),
    "slide, 40 degrees up": Scene(TRESTLE, TRESTLE, slope=40.0),
    "stick, 25 degrees down": Scene(TRESTLE, TRESTLE, slope=-25.0),
    "slide and stop": Scene(TRESTLE, TRESTLE, velocity=(2.0, 0.0)),
    "limits, there and back": Scene(TRESTLE, (-1.0, -1.0, 1.0, -1.0), 8.0),
    "limits, weak motors": Scene(TRESTLE, (-0.02, -0.01, 0.02, -0.01), 8.0),
    "motors stalled": Scene(TRESTLE, (0.3, 0.3, -0.3, 0.3)),
    "motors too weak to rise": Scene(CROUCH, (0.1, 0.1, 0.1, 0.1), 8.0),
    "slide and stop, slower": Scene(TRESTLE, TRESTLE, velocity=(1.0, 0.0)),
    "slide and stop, faster": Scene(TRESTLE, TRESTLE, velocity=(3.0, 0.0)),
    "slide and stop, backward": Scene(TRESTLE, TRESTLE, velocity=(-2.0, 0.0)),
    "strike at 1 m/s": Scene(TRESTLE, TRESTLE, 0.15, (0.0, -1.0)),
    "strike at 2 m/s": Scene(TRESTLE, TRESTLE, 0.05, (0.0, -2.0)),
    "strike at 4 m/s": Scene(TRESTLE, TRESTLE, 0.05, (0.0, -4.0)),
    "strike at 7 m/s": Scene(TRESTLE, TRESTLE, 0.05, (0.0, -7.0)),
    "strike at 10 m/s": Scene(TRESTLE, TRESTLE, 0.05, (0.0, -10.0)),
    "strike at 1 m/s, crouched": Scene(CROUCH, CROUCH, 0.3, (0.0, -1.0)),
    "strike at 2 m/s, crouched": Scene(CROUCH, CROUCH, 0.3, (0.0, -2.0)),
    "strike at 4 m/s, crouched": Scene(CROUCH, CROUCH, 0.3, (0.0, -4.0)),
    "strike at 7 m/s, crouched": Scene(CROUCH, CROUCH, 0.3, (0.0, -7.0)),
    "strike at 10 m/s, crouched": Scene(CROUCH, CROUCH, 0.2, (0.0, -10.0)),
}


def ground(slope: float) -> Terrain:
    """Level where walkers are born, then a slope."""
    x = np.float32(np.arange(200) * box2d.CELL)
    y = HEIGHT + np.maximum(x - SLOPE_BEGINS, 0) * np.tan(np.radians(slope))
    return box2d.terrain_of(x, y, [])


def born(scene: Scene) -> tuple[Any, Terrain]:
    """gymnasium's walker on the scene's ground."""
    terrain = jax.tree.map(np.asarray, ground(scene.slope))
    env = gymnasium()(2000)
    env.begin((terrain, 0.0))
    return env, terrain


def lift(env: Any, height: float) -> None:
    for body in (env.hull, *env.legs):
        body.position = (body.position[0], body.position[1] + height)


def place(env: Any, terrain: Terrain, scene: Scene, shift: float = 0.0) -> None:
    """Puts the walker where the scene begins, `shift` metres higher."""
    parts, middle = (env.hull, *env.legs), np.array(env.hull.position)
    angle = np.radians(scene.slope + scene.turned)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for body in parts:
        there = (20.0, 12.0) + turn @ (np.array(body.position) - middle)
        body.transform = (tuple(map(float, there)), float(body.angle + angle))
        body.linearVelocity, body.angularVelocity = scene.velocity, scene.spin
    lift(env, scene.height + shift - clearance(box2d.bodies_of(env), terrain))


def clearance(rows: np.ndarray, terrain: Terrain) -> float:
    """How high the lowest corner of the legs is above the ground."""
    x, y, angle = rows[1:, :3].T
    heights = []
    for w in (-1, 1):
        for h in (-1, 1):
            along, across = h * HALF_LENGTH, w * np.tile(HALF_WIDTH, 2)
            cx = x + np.cos(angle) * across - np.sin(angle) * along
            cy = y + np.sin(angle) * across + np.cos(angle) * along
            heights.append(cy - np.interp(cx, terrain.x, terrain.y))
    return float(np.min(heights))


def played_by_box2d(scene: Scene, shift: float = 0.0) -> np.ndarray:
    """The bodies at each step of the scene when it begins `shift` metres higher."""
    env, terrain = born(scene)
    prepare(env, scene)
    place(env, terrain, scene, shift)
    rows = [box2d.bodies_of(env)]
    for _ in range(SECOND):
        env.act(np.float32(scene.action))
        rows.append(box2d.bodies_of(env))
    assert not env.game_over, "the hull is not to touch the ground"
    return np.array(rows)


def prepare(env: Any, scene: Scene) -> None:
    """Brings the walker into its pose, high in the air."""
    env.act(np.zeros(4, np.float32))
    lift(env, ALOFT)
    for _ in range(POSING):
        env.act(np.float32(scene.pose))


def sensitivity(scene: Scene, shift: float) -> float:
    """How far Box2D parts from itself if it begins `shift` metres higher, in metres or radians."""
    rows = played_by_box2d(scene)
    other = played_by_box2d(scene, shift)
    return float(np.abs(other - rows)[..., :3].max())


class Pair:
    """A batch of scenes in both worlds at once."""

    def __init__(self, engine, scenes: list[Scene]) -> None:
        begin, self.step = engine
        self.scenes = scenes
        self.worlds, self.terrains = zip(*map(born, scenes), strict=True)
        self.state = begin(jax.tree.map(lambda *v: jnp.stack(v), *self.terrains), jnp.zeros(len(scenes)))[0]

    def real(self) -> np.ndarray:
        return np.stack([box2d.bodies_of(world) for world in self.worlds])

    def ours(self) -> np.ndarray:
        return np.stack([np.asarray(field) for field in self.state.bodies], -1)

    def inject(self) -> None:
        """Our bodies take the place of Box2D's."""
        self.state = self.state._replace(bodies=box2d.as_body(self.real()))

    def act(self, actions: list[tuple[float, ...]]) -> None:
        """One step in both."""
        self.state = self.step(self.state, jnp.float32(actions))[0]
        for world, action in zip(self.worlds, actions, strict=True):
            world.act(np.float32(action))

    def parted(self) -> np.ndarray:
        """How far the walkers of each scene come apart, in metres or radians, at every step `[step, scene]`."""
        still = [HANGING] * len(self.scenes)
        self.act(still)
        for world in self.worlds:
            lift(world, ALOFT)
        for _ in range(POSING):
            self.inject()
            self.act([scene.pose for scene in self.scenes])
        for world, terrain, scene in zip(self.worlds, self.terrains, self.scenes, strict=True):
            place(world, terrain, scene)
        self.inject()
        apart = []
        for _ in range(SECOND):
            self.act([scene.action for scene in self.scenes])
            apart.append(np.abs(self.ours() - self.real())[..., :3].max((1, 2)))
        return np.array(apart)


def parted(engine, scenes: dict[str, Scene]) -> dict[str, float]:
    """How far each scene comes apart in its second, a batch at a time."""
    names, apart = list(scenes), []
    for at in range(0, len(names), BATCH):
        batch = [scenes[name] for name in names[at : at + BATCH]]
        filled = batch + batch[:1] * (BATCH - len(batch))
        apart.extend(Pair(engine, filled).parted().max(0)[: len(batch)].tolist())
    return dict(zip(names, apart, strict=True))


@pytest.fixture(scope="module")
def apart():
    return parted(lockstep.compiled(0.0), SCENES)


@pytest.mark.parametrize("name", SCENES)
def test_scenes(apart, name):
    assert apart[name] < 1e-3


@pytest.mark.parametrize("name", SCENES)
def test_scenes_are_well_posed(name):
    """Box2D stays within a millimetre of itself when it begins a tenth of one higher or lower."""
    assert max(sensitivity(SCENES[name], shift) for shift in (1e-4, -1e-4)) < 1e-3
