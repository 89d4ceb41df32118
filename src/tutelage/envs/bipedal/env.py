"""The walker as the student meets it: gymnasium's observation, reward and end of an episode, as pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, get_args

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32, Key

from tutelage.env import Box, Timestep
from tutelage.envs.bipedal import lidar, terrain
from tutelage.envs.bipedal.body import JOINTS, SCALE, Body, hull_origin
from tutelage.envs.bipedal.contacts import Memory
from tutelage.envs.bipedal.exact import JointImpulse
from tutelage.envs.bipedal.ground import Ground, Tiles, paved
from tutelage.envs.bipedal.kernel import Moment, advance, packed
from tutelage.envs.bipedal.level import WalkerLevel
from tutelage.envs.bipedal.physics import Solver
from tutelage.envs.bipedal.start import begun
from tutelage.envs.bipedal.terrain import Rules, Terrain

FINISH = 190 * 14 / 30  # metres
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

    `rules` say how a level becomes terrain. The `reduced` solver is the fast one, the `exact` one does what Box2D does,
    iteration by iteration.
    """

    rules: Rules = "parametrised"
    max_steps: int = 2000
    solver: Solver = "reduced"

    def __post_init__(self) -> None:
        if self.rules not in get_args(Rules):
            raise ValueError(f"The rules are one of {get_args(Rules)}, not {self.rules!r}.")
        if self.max_steps < 1:
            raise ValueError(f"An episode needs at least one step, not {self.max_steps}.")
        if self.solver not in get_args(Solver):
            raise ValueError(f"The solver is one of {get_args(Solver)}, not {self.solver!r}.")

    @property
    def actions(self) -> Box:
        """Torque and direction of the motors at left hip and knee, right hip and knee."""
        return Box(4)

    def reset(self, key: Key[Array, ""], level: WalkerLevel) -> tuple[WalkerState, Float[Array, "24"]]:
        """Begins an episode; the level's seed alone decides how."""
        return self.start(*terrain.build(level, self.rules))

    def start(self, ground: Terrain, force: Float[Array, ""]) -> tuple[WalkerState, Float[Array, "24"]]:
        """Begins an episode on this terrain, level at its start, with this force in N on the hull in the first step."""
        world, tiles = begun(force), paved(ground)
        state = WalkerState(*packed(world), jnp.zeros((), jnp.int32), tiles)
        x, y = hull_origin(world.bodies[0])
        rays = lidar.scan(x[None], y[None], Ground(tiles[None], jnp.zeros(1, jnp.int32)))
        return state, observe(state, rays[:, 0])

    def step(self, key: Key[Array, ""], state: WalkerState, action: Float[Array, "4"]) -> tuple[WalkerState, Timestep]:
        """One step of 0.02 s."""
        after = advance(self.solver)(Moment(*state[:4]), action, state.ground)
        new = WalkerState(*after.moment, state.time + 1, state.ground)
        x = hull_origin(_hull(new))[0]
        fell = after.fallen | (x < 0)
        timestep = Timestep(
            obs=observe(new, after.rays),
            reward=jnp.where(fell, FALL, _progress(state, new) - EFFORT * jnp.sum(jnp.minimum(jnp.abs(action), 1.0))),
            terminated=fell | (x > FINISH),
            truncated=new.time >= self.max_steps,
        )
        return new, timestep

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """A return of more than 230."""
        return episode_return > 230


def _progress(old: WalkerState, new: WalkerState) -> Float[Array, ""]:
    """The change of 130·x/30 − 5·|angle of the hull|."""
    before, after = _hull(old), _hull(new)
    way = hull_origin(after)[0] - hull_origin(before)[0]
    return 130 / SCALE * way - 5 * (jnp.abs(after.angle) - jnp.abs(before.angle))


def _hull(state: WalkerState) -> Body:
    return Body(*(field[0] for field in state.bodies))


def observe(state: WalkerState, rays: Float[Array, "16"]) -> Float[Array, "24"]:
    """Hull angle, spin and velocity; angles, speeds and ground flag of each leg; ten lidar readings."""
    b, hull = state.bodies, _hull(state)
    values = [hull.angle, 2 * hull.spin / 50, 0.3 * hull.vx * 20 / 50, 0.3 * hull.vy * (400 / 30) / 50]
    for side in range(2):
        for joint, offset in ((JOINTS[2 * side], 0.0), (JOINTS[2 * side + 1], 1.0)):
            values.append(b.angle[joint.b] - b.angle[joint.a] - joint.reference + offset)
            values.append((b.spin[joint.b] - b.spin[joint.a]) / joint.speed)
        values.append(state.feet[side].astype(jnp.float32))
    return jnp.concatenate([jnp.stack(values), rays[: lidar.RAYS]])
