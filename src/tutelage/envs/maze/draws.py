"""Where test levels come from: fixed layouts, and random ones in the manner of MiniGrid's environments.

Each is a function from a key to the level of one evaluation episode, hashable by value. Coordinates are interior ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Bool, Int, Key

from tutelage.envs.grid import GOAL, START, random_tile
from tutelage.envs.maze.level import WALL, MazeLevel, make_level, random_direction
from tutelage.envs.maze.spanning import kruskal, lattice_edges


@dataclass(frozen=True)
class Layout:
    """A drawn maze facing right. With several goals (`G` or `g`), each episode has one of them at random."""

    rows: tuple[str, ...]

    def __call__(self, key: Key[Array, ""]) -> MazeLevel:
        text = np.array([list(row) for row in self.rows])
        start, goals = int(np.flatnonzero(text == START)[0]), np.flatnonzero(np.char.upper(text) == GOAL)
        goal = jnp.asarray(goals, jnp.int32)[random.randint(key, (), 0, goals.size)]
        return make_level(jnp.asarray(text == WALL), start, goal, 0)


@dataclass(frozen=True)
class SimpleCrossing:
    """From corner to corner across `rivers` straight walls, each with one gap, placed so that a path exists.

    Rivers are whole lines at odd coordinates. A random order of the |V| vertical and |H| horizontal ones is a path's
    order of crossing them; each gap is a random tile of the river between the rivers that bound the path at that point.
    """

    side: int = 9
    rivers: int = 5

    def __call__(self, key: Key[Array, ""]) -> MazeLevel:
        key_rivers, key_order, key_gaps = random.split(key, 3)
        lines = np.arange(1, self.side - 1, 2)
        chosen = random.permutation(key_rivers, np.arange(2 * lines.size) < self.rivers)
        vertical, horizontal = self._bounds(lines, chosen[: lines.size]), self._bounds(lines, chosen[lines.size :])
        is_right = random.permutation(key_order, jnp.arange(self.rivers) < jnp.sum(chosen[: lines.size]))
        a = jnp.cumsum(is_right) - is_right  # vertical rivers crossed before this one
        b = jnp.arange(self.rivers) - a
        across = jnp.where(is_right, vertical[a + 1], horizontal[b + 1])
        low, high = (jnp.where(is_right, horizontal[b + i], vertical[a + i]) for i in (0, 1))
        along = random.randint(key_gaps, (self.rivers,), low + 1, high)
        walls = self._line(vertical)[None, :] | self._line(horizontal)[:, None]
        walls = walls.at[jnp.where(is_right, along, across), jnp.where(is_right, across, along)].set(False)
        return make_level(walls, 0, self.side**2 - 1, 0)

    def _bounds(self, lines: np.ndarray, chosen: Bool[Array, " lines"]) -> Int[Array, " bounds"]:
        """The border, the chosen lines in order, and the border again to the end."""
        return jnp.pad(jnp.sort(jnp.where(chosen, lines, self.side)), 1, constant_values=(-1, self.side))

    def _line(self, bounds: Int[Array, " bounds"]) -> Bool[Array, " side"]:
        return jnp.zeros(self.side, bool).at[bounds[1:]].set(True, mode="drop")


@dataclass(frozen=True)
class FourRooms:
    """Four rooms, a door in each wall between them; start, direction and goal at random."""

    side: int = 17

    def __call__(self, key: Key[Array, ""]) -> MazeLevel:
        key_doors, key_agent, key_goal, key_direction = random.split(key, 4)
        middle = self.side // 2
        walls = np.zeros((self.side, self.side), bool)
        walls[middle, :] = walls[:, middle] = True
        doors = random.randint(key_doors, (2, 2), 0, middle) + np.array([[0], [middle + 1]])
        walls = jnp.asarray(walls).at[doors[:, 0], middle].set(False).at[middle, doors[:, 1]].set(False)
        free = ~walls.reshape(-1)
        agent = random_tile(key_agent, free)
        goal = random_tile(key_goal, free.at[agent].set(False))
        return make_level(walls, agent, goal, random_direction(key_direction))


@dataclass(frozen=True)
class PerfectMaze:
    """A maze without loops: a random spanning tree of the tiles at even coordinates. Start and goal are two corners."""

    side: int

    def __call__(self, key: Key[Array, ""]) -> MazeLevel:
        key_order, key_corners = random.split(key)
        lattice = self.side // 2 + 1
        edges = random.permutation(key_order, lattice_edges(lattice))
        kept = kruskal(edges, lattice**2)
        y, x = (edges // lattice).sum(axis=1), (edges % lattice).sum(axis=1)  # (2y₁ + 2y₂) / 2, the tile halfway
        walls = np.ones((self.side, self.side), bool)
        walls[::2, ::2] = False
        walls = jnp.asarray(walls).at[y, x].set(~kept)
        corners = jnp.array([0, self.side - 1, self.side * (self.side - 1), self.side**2 - 1])
        pair = random.randint(key_corners, (), 0, 12)
        return make_level(walls, corners[pair // 3], corners[(pair // 3 + 1 + pair % 3) % 4], 0)
