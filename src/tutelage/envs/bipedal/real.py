"""The same levels in the real Box2D: gymnasium's BipedalWalker behind the env's interface, on terrain of our making.

Vertices, rectangles and the first push are those of `terrain.build`; all else is gymnasium's. What needed a decision:

- The world. gymnasium keeps one world for all episodes, in which the order of contacts, and with it the trajectory,
  depends on the episodes before. Here every episode has a fresh one.
- The time limit, which gymnasium leaves to a wrapper, is the env's.
- Clouds are left out; they would only use up random numbers.
"""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, Key

from tutelage.env import Box, Timestep
from tutelage.envs.bipedal.level import WalkerLevel
from tutelage.envs.bipedal.terrain import CELLS, MAX_FORCE, Rules, Terrain, build
from tutelage.errors import UserError

OBS = 24
JOINTS = 4
SOLVED = 230.0

Game = tuple[bytes, bytes]  # a level, and the actions so far


class Seen(NamedTuple):
    """What gymnasium says of a step."""

    obs: Float[np.ndarray, "24"]
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self.terminated or self.truncated

    def timestep(self) -> Timestep:
        """The same in the env's types."""
        return Timestep(
            np.float32(self.obs),  # pyright: ignore[reportArgumentType]
            np.float32(self.reward),  # pyright: ignore[reportArgumentType]
            np.bool_(self.terminated),  # pyright: ignore[reportArgumentType]
            np.bool_(self.truncated),  # pyright: ignore[reportArgumentType]
        )


NOTHING = Seen(np.zeros(OBS, np.float32))


class RealState(NamedTuple):
    """A game is determined by its level and the actions so far: Box2D is deterministic in a fresh world."""

    level: WalkerLevel
    terrain: Terrain
    force: Float[Array, ""]
    actions: Float[Array, "max_steps 4"]
    time: Int32[Array, ""]
    over: Bool[Array, ""]


@dataclass(frozen=True)
class RealWalker:
    """`Walker`, played by gymnasium on the host. It consists of pure functions too, so that it can stand in for it."""

    rules: Rules = "parametrised"
    max_steps: int = 2000

    def __post_init__(self) -> None:
        if self.rules not in get_args(Rules):
            raise ValueError(f"The rules are one of {get_args(Rules)}, not {self.rules!r}.")
        gymnasium()  # or say now that it is missing

    @property
    def actions(self) -> Box:
        """Torques of left hip, left knee, right hip, right knee."""
        return Box(JOINTS)

    def reset(self, key: Key[Array, ""], level: WalkerLevel) -> tuple[RealState, Float[Array, "24"]]:
        """A new game on the level. The key is not used."""
        terrain, force = build(level, self.rules)
        actions = jnp.zeros((self.max_steps, JOINTS), jnp.float32)
        state = RealState(level, terrain, force, actions, jnp.zeros((), jnp.int32), jnp.zeros((), bool))
        return state, self._look(state).obs

    def step(self, key: Key[Array, ""], state: RealState, action: Float[Array, "4"]) -> tuple[RealState, Timestep]:
        """One action in gymnasium. The key is not used; after the end nothing happens any more."""
        actions = state.actions.at[state.time].set(action, mode="drop")
        state = state._replace(actions=actions, time=state.time + 1)
        after = self._look(state)
        return state._replace(over=state.over | after.done), after

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """A return above 230, as in the paper's evaluation."""
        return episode_return > SOLVED

    def _look(self, state: RealState) -> Timestep:
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), NOTHING.timestep())
        return jax.pure_callback(self._look_on_host, shapes, state, vmap_method="broadcast_all")

    def _look_on_host(self, states: RealState) -> Timestep:
        states = jax.tree.map(np.asarray, states)
        shape = states.time.shape
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[len(shape) :]), states)
        games = [jax.tree.map(lambda x, i=i: x[i], flat) for i in range(flat.time.size)]
        worlds = _worlds(self)
        seen = [(NOTHING if game.over else worlds.look(game)).timestep() for game in games]
        return jax.tree.map(lambda *x: np.stack(x).reshape(shape + x[0].shape), *seen)


class Worlds:
    """Worlds at work, each waiting at some point of some game for the next action."""

    def __init__(self, env: RealWalker) -> None:
        self.max_steps = env.max_steps
        self.waiting: dict[Game, list[Any]] = defaultdict(list)

    def look(self, game: RealState) -> Seen:
        """What the game comes to: of a world that is one action short of it, or of a new one."""
        time = int(game.time)
        if time == 0:
            world = self._new(game)
            after = world.begin()
        else:
            world = self._before(game)
            after = world.act(game.actions[time - 1])
            after = after._replace(truncated=time >= self.max_steps)
        if not after.over:
            self.waiting[_name(game)].append(world)
        return after

    def _new(self, game: RealState) -> Any:
        return gymnasium()(game.terrain, float(game.force))

    def _before(self, game: RealState) -> Any:
        """A world one action ago, brought there by playing the game again if none is waiting."""
        name = _name(game._replace(time=game.time - 1))
        if name not in self.waiting:
            world = self._new(game)
            world.begin()
            for action in game.actions[: game.time - 1]:
                world.act(action)
            return world
        world = self.waiting[name].pop()
        if not self.waiting[name]:
            del self.waiting[name]
        return world


_worlds = lru_cache(Worlds)


def _name(game: RealState) -> Game:
    return b"".join(np.asarray(x).tobytes() for x in game.level), game.actions[: game.time].tobytes()


@lru_cache
def gymnasium() -> Any:
    """gymnasium's walker as a class of worlds; a `UserError` if Box2D or gymnasium is not installed."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of SWIG, which made Box2D's module, and of pygame
            import Box2D  # noqa: F401
            import pygame  # noqa: F401
            from gymnasium.envs.box2d import bipedal_walker
    except ImportError as error:
        raise UserError(f"This needs gymnasium with Box2D ({error}): pip install 'tutelage[real]'") from error

    class World(bipedal_walker.BipedalWalker):
        """One episode."""

        def __init__(self, terrain: Terrain, force: float) -> None:
            super().__init__()
            self.level = terrain
            self.np_random = _Push(force)  # pyright: ignore[reportAttributeAccessIssue]

        def begin(self) -> Seen:
            """The first observation."""
            return Seen(self.reset()[0])

        def act(self, action: np.ndarray) -> Seen:
            """One step."""
            obs, reward, terminated, _, _ = self.step(action)
            return Seen(obs, float(reward), terminated)

        def _generate_terrain(self, hardcore: bool) -> None:
            """Static bodies in gymnasium's order: rectangles, then edges, each from left to right."""
            level = self.level
            for left, right, top, bottom in _rectangles(level):
                self.fd_polygon.shape.vertices = [(left, top), (right, top), (right, bottom), (left, bottom)]
                self.terrain.append(self.world.CreateStaticBody(fixtures=self.fd_polygon))
            points = np.stack([level.x, level.y], axis=1).tolist()
            for i in range(CELLS - 1):
                self.fd_edge.shape.vertices = points[i : i + 2]
                self.terrain.append(self.world.CreateStaticBody(fixtures=self.fd_edge))

        def _generate_clouds(self) -> None:
            self.cloud_poly = []

    return World


def _rectangles(terrain: Terrain) -> list[list[float]]:
    cells, first = np.unique(terrain.box_id, return_index=True)
    return terrain.box[first[cells >= 0]].tolist()


@dataclass(frozen=True)
class _Push:
    """In place of a random generator, of which gymnasium asks but the first force."""

    force: float

    def uniform(self, low: float, high: float) -> float:
        assert -low == high == MAX_FORCE
        return self.force
