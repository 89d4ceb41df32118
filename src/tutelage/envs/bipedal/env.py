"""The walker as the student meets it: gymnasium's observation, reward and end of an episode, as pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32, Key

from tutelage.env import Box, Played, Timestep
from tutelage.envs.bipedal import run, terrain
from tutelage.envs.bipedal.level import WalkerLevel
from tutelage.envs.bipedal.physics import lidar
from tutelage.envs.bipedal.physics.begin import begun
from tutelage.envs.bipedal.physics.body import (
    HALF_WIDTH,
    JOINTS,
    SCALE,
    Body,
    Num,
    Polygon,
    hull_origin,
    hull_polygon,
    leg_polygon,
)
from tutelage.envs.bipedal.physics.contacts import Memory
from tutelage.envs.bipedal.physics.ground import Ground, Tiles, paved
from tutelage.envs.bipedal.physics.machine import computed_on
from tutelage.envs.bipedal.physics.step import TOLERANCE, Efforts, World
from tutelage.envs.bipedal.physics.velocity import JointImpulse
from tutelage.envs.bipedal.run.machines import ByItself
from tutelage.envs.bipedal.run.moment import Moment, packed, unpacked
from tutelage.envs.bipedal.terrain import FINISH, Rules, Terrain
from tutelage.errors import check_choices

EFFORT = 0.028  # reward that full torque of one motor costs a step
FALL = -100.0  # the reward of falling


class WalkerState(NamedTuple):
    """One moment of an episode; the five bodies (hull, upper and lower left leg, right leg) lie on an axis."""

    bodies: Body  # fields [5]
    joints: JointImpulse  # fields [4]
    memory: Memory
    feet: Bool[Array, "2"]
    time: Int32[Array, ""]
    ground: Tiles


@dataclass(frozen=True)
class Walker:
    """Walk to the end of the terrain without falling.

    `rules` say how a level becomes terrain. Box2D's iterations end where they change velocities by no more than the
    tolerance, in metres or radians a second; at 0 all of them are made.
    """

    rules: Rules = "parametrised"
    max_steps: int = 2000
    tolerance: float = TOLERANCE

    actions = Box(4)
    """Torque and direction of the motors at left hip and knee, right hip and knee."""

    def __post_init__(self) -> None:
        check_choices(self, rules=Rules)
        if self.max_steps < 1:
            raise ValueError(f"`max_steps` must be at least 1, not {self.max_steps}.")
        if not 0 <= self.tolerance <= 1:
            raise ValueError(f"`tolerance` must lie in [0, 1], not at {self.tolerance}.")

    def reset(self, key: Key[Array, ""], level: WalkerLevel) -> tuple[WalkerState, Float[Array, "24"]]:
        """Begins an episode; the level's seed alone decides how."""
        return self.start(*terrain.build(level, self.rules))

    def start(self, ground: Terrain, force: Float[Array, ""]) -> tuple[WalkerState, Float[Array, "24"]]:
        """Begins an episode on this terrain, level at its start, with this force in N on the hull in the first step."""
        world, tiles = begun(force), paved(ground)
        state = WalkerState(*packed(world), jnp.zeros((), jnp.int32), tiles)
        x, y = hull_origin(world.bodies[0])
        rays = lidar.scan(x[None], y[None], Ground(tiles[None], jnp.zeros(1, jnp.int32)))
        return state, jnp.stack(numbers(world, rays[:, 0]))

    def step(self, key: Key[Array, ""], state: WalkerState, action: Float[Array, "4"]) -> tuple[WalkerState, Timestep]:
        """One step of 0.02 s."""
        moment = Moment(*state[:4])
        after = run.advance(self.tolerance)(moment, action, state.ground)
        new = WalkerState(*after.moment, state.time + 1, state.ground)
        worlds = unpacked(moment), unpacked(after.moment)
        seen, reward, terminated, truncated = judge(
            self.max_steps, *worlds, tuple(action), after.fallen, after.rays, new.time
        )
        return new, Timestep(jnp.stack(seen), reward, terminated, truncated)

    def play(
        self, student: Any, openings: tuple[WalkerState, Float[Array, "P Q 24"]], noise: Float[Array, "T P 4"]
    ) -> Played | None:
        """A rollout as one GPU kernel, for students that are two towers."""
        states, obs = openings
        begin = (Moment(*states[:4]), obs, states.ground)
        found = run.played(self.tolerance, judge, self.max_steps, student, begin, noise)
        if found is None:
            return None
        played, time, entry = found
        moment: Moment = played.end
        ground = states.ground[jnp.arange(len(entry)), entry]
        return played._replace(end=WalkerState(*moment, time, ground))

    def exports(self) -> Mapping[str, tuple[Literal["level", "state"], Callable[[Any], Any]]]:
        """The level's terrain, and what of the walker a picture shows."""
        return {"terrain": ("level", lambda level: terrain.build(level, self.rules)[0]), "scene": ("state", scene)}

    def by_itself(self) -> AbstractContextManager[None]:
        """One walker, without the fences and the queues of many."""
        return computed_on(ByItself())

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """A return of more than 230."""
        return episode_return > 230


class Scene(NamedTuple):
    """A walker in the world, all in metres: corners of its hull and of its legs, and where its lidar reaches."""

    hull: Float[Array, "5 2"]
    legs: Float[Array, "4 4 2"]  # upper and lower left, upper and lower right
    eye: Float[Array, "2"]
    rays: Float[Array, "10 2"]


def scene(state: WalkerState) -> Scene:
    """What a picture of this moment shows."""
    hull, *legs = unpacked(Moment(*state[:4])).bodies
    eye = jnp.stack(hull_origin(hull))
    shares = lidar.scan(eye[:1], eye[1:], Ground(state.ground[None], jnp.zeros(1, jnp.int32)))[: lidar.RAYS]
    ends = jnp.array([lidar.END_X, lidar.END_Y]).T[: lidar.RAYS]
    plates = [leg_polygon(*leg[:3], jnp.float32(HALF_WIDTH[k % 2])) for k, leg in enumerate(legs)]
    return Scene(_corners(hull_polygon(*hull[:3])), jnp.stack([*map(_corners, plates)]), eye, eye + shares * ends)


def _corners(polygon: Polygon) -> Float[Array, "corners 2"]:
    return jnp.stack([jnp.stack(polygon.x), jnp.stack(polygon.y)], axis=-1)


def judge(
    max_steps: int,
    old: World,
    new: World,
    efforts: Efforts,
    fallen: Bool[Array, "..."],
    rays: Sequence[Num] | Float[Array, "16"],
    time: Int[Array, "..."],
) -> tuple[list[Num], Num, Bool[Array, "..."], Bool[Array, "..."]]:
    """What a step from one world to the next is: the numbers seen after it, its reward, and whether it was the last."""
    before, after = old.bodies[0], new.bodies[0]
    x = hull_origin(after)[0]
    fell = fallen | (x < 0)
    way = x - hull_origin(before)[0]
    progress = 130 / SCALE * way - 5 * (jnp.abs(after.angle) - jnp.abs(before.angle))
    effort = sum(jnp.minimum(jnp.abs(e), 1.0) for e in efforts)
    reward = jnp.where(fell, FALL, progress - EFFORT * effort)
    return numbers(new, rays), reward, fell | (x > FINISH), time >= max_steps


def numbers(world: World, rays: Sequence[Num] | Float[Array, "16"]) -> list[Num]:
    """Hull angle, spin and velocity; angles, speeds and ground flag of each leg; ten lidar readings."""
    b, hull = world.bodies, world.bodies[0]
    values = [hull.angle, 2 * hull.spin / 50, 0.3 * hull.vx * 20 / 50, 0.3 * hull.vy * (400 / 30) / 50]
    for side in range(2):
        for joint, offset in ((JOINTS[2 * side], 0.0), (JOINTS[2 * side + 1], 1.0)):
            values.append(b[joint.b].angle - b[joint.a].angle - joint.reference + offset)
            values.append((b[joint.b].spin - b[joint.a].spin) / joint.speed)
        values.append(world.feet[side].astype(jnp.float32))
    return [*values, *rays[: lidar.RAYS]]
