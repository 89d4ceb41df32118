"""Levels in the real Box2D: gymnasium's BipedalWalker behind the env's interface, on terrain of our making.

Vertices, rectangles and the first push are those of `terrain.build`; all else is gymnasium's. What needed a decision:

- The world. gymnasium keeps one world for all episodes, in which the order of contacts, and with it the trajectory,
  depends on the episodes before. Here every episode has a fresh one.
- The time limit, which gymnasium leaves to a wrapper, is the env's.
- Clouds are left out; they would only use up random numbers.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Array, Bool, Float, Key

from tutelage.env import Box, Timestep
from tutelage.envs.bipedal.level import WalkerLevel
from tutelage.envs.bipedal.terrain import CELLS, MAX_FORCE, Rules, Terrain, build
from tutelage.envs.hosted import HostedEnv, seen
from tutelage.errors import UserError, check_choices

NUMBERS = 24
MOTORS = 4
SOLVED = 230.0


@dataclass(frozen=True)
class RealWalker(HostedEnv):
    """`Walker`, played by gymnasium on the host."""

    rules: Rules = "parametrised"
    max_steps: int = 2000

    actions = Box(MOTORS)
    """Torques of left hip, left knee, right hip, right knee."""
    nothing = np.zeros(NUMBERS, np.float32)

    def __post_init__(self) -> None:
        check_choices(self, rules=Rules)
        gymnasium()  # or say now that it is missing

    def opening(self, key: Key[Array, ""], level: WalkerLevel) -> tuple[Terrain, Float[Array, ""]]:
        """The level's terrain and the first push."""
        return build(level, self.rules)

    def new_engine(self, opening: Any) -> Any:
        """A walker of gymnasium's."""
        return gymnasium()(self.max_steps)

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """A return above 230, as in the paper's evaluation."""
        return episode_return > SOLVED


@lru_cache
def gymnasium() -> Any:
    """gymnasium's walker as a class of engines; a `UserError` if Box2D or gymnasium is not installed."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of SWIG, which made Box2D's module, and of pygame
            import Box2D
            import pygame  # noqa: F401
            from gymnasium.envs.box2d import bipedal_walker
    except ImportError as error:
        raise UserError(f"This needs gymnasium with Box2D ({error}): pip install 'tutelage[real]'") from error

    class Engine(bipedal_walker.BipedalWalker):
        """A walker for one episode at a time."""

        def __init__(self, max_steps: int) -> None:
            super().__init__()
            self.max_steps = max_steps

        def begin(self, opening: Any) -> Timestep:
            """A new episode, on a terrain and with a first push, in a fresh world."""
            self._destroy()
            self.world = Box2D.b2World()
            self.level, force = opening
            self.np_random = _Push(float(force))  # pyright: ignore[reportAttributeAccessIssue]
            self.time = 0
            return seen(np.float32(self.reset()[0]))

        def act(self, action: np.ndarray) -> Timestep:
            """One step."""
            obs, reward, terminated, _, _ = self.step(action)
            self.time += 1
            return seen(np.float32(obs), float(reward), terminated, self.time >= self.max_steps)

        def _generate_terrain(self, hardcore: bool) -> None:
            """Static bodies in gymnasium's order: rectangles, then edges, each from left to right."""
            level = self.level
            for left, right, top, bottom in _rectangles_of(level):
                self.fd_polygon.shape.vertices = [(left, top), (right, top), (right, bottom), (left, bottom)]
                self.terrain.append(self.world.CreateStaticBody(fixtures=self.fd_polygon))
            points = np.stack([level.x, level.y], axis=1).tolist()
            for i in range(CELLS - 1):
                self.fd_edge.shape.vertices = points[i : i + 2]
                self.terrain.append(self.world.CreateStaticBody(fixtures=self.fd_edge))

        def _generate_clouds(self) -> None:
            self.cloud_poly = []

    return Engine


def _rectangles_of(terrain: Terrain) -> list[list[float]]:
    cells, first = np.unique(terrain.box_id, return_index=True)
    return terrain.box[first[cells >= 0]].tolist()


@dataclass(frozen=True)
class _Push:
    """In place of a random generator, of which gymnasium asks but the first force."""

    force: float

    def uniform(self, low: float, high: float) -> float:
        assert -low == high == MAX_FORCE
        return self.force
