"""The maze as the student meets it: MiniGrid's seven actions, egocentric view and reward, as pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, Key, UInt8

from tutelage.env import Discrete, Timestep
from tutelage.envs.grid import EMPTY_CODE, GOAL_CODE, UNSEEN_CODE, WALL_CODE, decode
from tutelage.envs.maze.level import MazeLevel, random_direction
from tutelage.envs.maze.paths import shortest_path

LEFT, RIGHT, FORWARD = 0, 1, 2  # pick up, drop, toggle and done pass the time and change nothing

Reward = Literal["minigrid", "paper"]


class MazeState(NamedTuple):
    """One moment of an episode."""

    walls: Bool[Array, "h w"]
    goal: Int32[Array, ""]
    x: Int32[Array, ""]
    y: Int32[Array, ""]
    direction: Int32[Array, ""]
    time: Int32[Array, ""]


class MazeObs(NamedTuple):
    """What the student sees: MiniGrid's `image` `[column, row, channel]`, columns left to right, rows far to near."""

    image: UInt8[Array, "view view 3"]
    direction: Int32[Array, ""]


class Tiles(NamedTuple):
    """What some tiles hold."""

    wall: Bool[Array, "*n"]
    goal: Bool[Array, "*n"]


@dataclass(frozen=True)
class Maze:
    """Find the goal from a small egocentric view. Entering it at step t pays 1 − c·t / max_steps, all else 0.

    c is 0.9 for the `minigrid` reward and 1 for the `paper` one. With `redraw_direction` each episode starts facing a
    random way; without, the way its level says. Without `see_through`, walls hide what is behind them.
    """

    height: int = 13
    width: int = 13
    view: int = 5
    max_steps: int = 250
    see_through: bool = True
    reward: Reward = "minigrid"
    redraw_direction: bool = True

    actions = Discrete(7)
    """Turn left, turn right, forward, and MiniGrid's four that do nothing here."""

    def __post_init__(self) -> None:
        if not (3 <= self.height <= 99 and 3 <= self.width <= 99):
            raise ValueError(f"A maze's interior has 3 to 99 tiles a side, not {self.height} × {self.width}.")
        if self.view < 3 or self.view % 2 == 0:
            raise ValueError(f"`view` must be an odd number of tiles, 3 or more, not {self.view}.")
        if self.max_steps < 1:
            raise ValueError(f"`max_steps` must be at least 1, not {self.max_steps}.")

    def reset(self, key: Key[Array, ""], level: MazeLevel) -> tuple[MazeState, MazeObs]:
        """Puts the student on the level's start tile."""
        direction = random_direction(key) if self.redraw_direction else level.direction
        x, y = level.agent % self.width, level.agent // self.width
        state = MazeState(level.walls, level.goal, x, y, direction, jnp.zeros_like(x))
        return state, self.observe(state)

    def step(self, key: Key[Array, ""], state: MazeState, action: Int[Array, ""]) -> tuple[MazeState, Timestep]:
        """Turns, moves or waits. Deterministic: the key is not used."""
        turn = (action == RIGHT).astype(jnp.int32) - (action == LEFT)
        direction = (state.direction + turn) & 3
        dx, dy = heading(direction)
        blocked = self.look(state, state.x + dx, state.y + dy).wall
        stride = ((action == FORWARD) & ~blocked).astype(jnp.int32)
        x, y, time = state.x + stride * dx, state.y + stride * dy, state.time + 1
        state = state._replace(x=x, y=y, direction=direction, time=time)
        terminated = y * self.width + x == state.goal
        truncated = (time >= self.max_steps) & ~terminated
        reward = jnp.where(terminated, self.payoff(time), 0.0)
        return state, Timestep(self.observe(state), reward, terminated, truncated)

    def payoff(self, time: Int[Array, "..."]) -> Float[Array, "..."]:
        """What entering the goal at step `time` pays."""
        slope = {"minigrid": 0.9, "paper": 1.0}[self.reward]
        return 1.0 - slope * time.astype(jnp.float32) / self.max_steps

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """Whether the goal was reached."""
        return episode_return > 0

    def exports(self) -> Mapping[str, tuple[Literal["level", "state"], Callable[[Any], Any]]]:
        """What the student sees, and a shortest path."""
        seen = lambda state: {"seen": self.field_of_view(state)}  # noqa: E731
        return {"scene": ("state", seen), "path": ("level", shortest_path)}

    def field_of_view(self, state: MazeState) -> Bool[Array, "rows columns"]:
        """Which tiles of the maze and its border the student sees."""
        x, y = view_tiles(state.x, state.y, state.direction, self.view)
        shown = jnp.ones(x.shape, bool) if self.see_through else visible(~self.look(state, x, y).wall)
        height, width = self.height + 2, self.width + 2
        on_map = shown & (x >= -1) & (x <= self.width) & (y >= -1) & (y <= self.height)
        loc = jnp.where(on_map, (y + 1) * width + x + 1, height * width)
        return jnp.zeros(height * width, bool).at[loc].set(True, mode="drop").reshape(height, width)

    def observe(self, state: MazeState) -> MazeObs:
        """The student's view. Its own tile reads as empty, even on the goal."""
        tiles = self.look(state, *view_tiles(state.x, state.y, state.direction, self.view))
        own = np.zeros((self.view, self.view), bool)
        own[self.view // 2, self.view - 1] = True
        code = jnp.where(tiles.wall, WALL_CODE, jnp.where(tiles.goal & ~own, GOAL_CODE, EMPTY_CODE))
        if not self.see_through:
            code = jnp.where(visible(~tiles.wall), code, UNSEEN_CODE)
        return MazeObs(decode(code), state.direction)

    def look(self, state: MazeState, x: Int[Array, "*n"], y: Int[Array, "*n"]) -> Tiles:
        """What stands on the tiles (x, y), in one gather. Everything outside the interior is wall."""
        inside = (x >= 0) & (x < self.width) & (y >= 0) & (y < self.height)
        loc = jnp.clip(y, 0, self.height - 1) * self.width + jnp.clip(x, 0, self.width - 1)
        wall = state.walls.reshape(-1).at[loc].get(mode="promise_in_bounds")
        return Tiles(wall=wall | ~inside, goal=inside & (loc == state.goal))


def heading(direction: Int[Array, "..."]) -> tuple[Int[Array, "..."], Int[Array, "..."]]:
    """The unit vector (dx, dy) of a direction: right, down, left, up."""
    dx = (direction == 0).astype(jnp.int32) - (direction == 2)
    dy = (direction == 1).astype(jnp.int32) - (direction == 3)
    return dx, dy


def view_tiles(
    x: Int[Array, ""], y: Int[Array, ""], direction: Int[Array, ""], view: int
) -> tuple[Int[Array, "view view"], Int[Array, "view view"]]:
    """The maze tile (x, y) behind each view tile (i, j): agent + f·(view − 1 − j) + r·(i − ⌊view / 2⌋).

    f = (dx, dy) is where the student faces and r = (−dy, dx) its right-hand side.
    """
    dx, dy = heading(direction)
    aside = jnp.arange(view)[:, None] - view // 2
    ahead = view - 1 - jnp.arange(view)[None, :]
    return x + dx * ahead - dy * aside, y + dy * ahead + dx * aside


def visible(clear: Bool[Array, "view view"]) -> Bool[Array, "view view"]:
    """Which view tiles are seen when only `clear` ones let sight pass: MiniGrid's rule.

    From the student's tile, row by row away from it, sight spreads along the row to the right, then to the left,
    through clear tiles; each clear tile reached in a sweep also shows the one beyond it and the one diagonally beyond
    it on the sweep's side.
    """
    size = clear.shape[0]
    column = jnp.arange(size, dtype=jnp.uint32)
    clear_rows = jnp.sum(clear.astype(jnp.uint32) << column[:, None], axis=0)  # row j as bits, column i is bit i
    seen, rows = jnp.uint32(1 << size // 2), []
    for j in reversed(range(size)):
        row = clear_rows[j]
        for _ in range(size - 1):
            seen |= (seen & row) << 1
        rightward = seen & row
        for _ in range(size - 1):
            seen |= (seen & row) >> 1
        rows.append(seen)
        seen = (seen & row) | rightward << 1 | (seen & row) >> 1
    return (jnp.stack(rows[::-1]) >> column[:, None] & 1).astype(bool)
