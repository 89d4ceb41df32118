"""Mazes in the making: the procedures by which a teacher designs and edits them step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Bool, Int, Key

from tutelage.env import Discrete
from tutelage.envs.grid import WALL_CODE, EditDraft, OnGrid, Plan, edit_tile, empty_plan, place, place_both, put
from tutelage.envs.maze.level import MazeLevel, make_level, random_direction


class DesignDraft(NamedTuple):
    """A level being designed, and how many of its steps place walls."""

    plan: Plan
    budget: Int[Array, ""]


@dataclass(frozen=True)
class MazeDesigning(OnGrid):
    """The design procedure of Dennis et al. (2020): so many walls, then the goal, then the start, a tile a step.

    Steps that come after the start change nothing.
    """

    height: int
    width: int
    steps: int
    budget: Callable[[Int[Array, ""]], Int[Array, ""]]
    """The number of walls, given the first tile."""

    block_code = WALL_CODE

    @property
    def actions(self) -> Discrete:
        """A tile."""
        return Discrete(self.height * self.width)

    def begin(self, key: Key[Array, ""], level: None) -> DesignDraft:
        """An empty room."""
        return DesignDraft(empty_plan(self.actions.n), jnp.int32(0))

    def act(self, draft: DesignDraft, step: Int[Array, ""], action: Int[Array, ""]) -> DesignDraft:
        """Sets the chosen tile."""
        n = jnp.where(step == 0, self.budget(action), draft.budget)
        return DesignDraft(put(draft.plan, action, step < n, step == n, step == n + 1), n)

    def finish(self, key: Key[Array, ""], draft: DesignDraft) -> MazeLevel:
        """A start that was chosen on the goal goes to a random free tile."""
        key_agent, key_direction = random.split(key)
        goal = draft.plan.goal
        walls, agent = place(key_agent, draft.plan.blocks, draft.plan.agent, goal)
        return make_level(walls.reshape(self.height, self.width), agent, goal, random_direction(key_direction))


@dataclass(frozen=True)
class MazeEditing(OnGrid):
    """`steps` edits of a maze, each of a kind and on a tile that the teacher chooses: action = kind · tiles + tile."""

    height: int
    width: int
    kinds: tuple[str, ...]
    steps: int

    block_code = WALL_CODE

    @property
    def tiles(self) -> int:
        """How many tiles there are to choose from."""
        return self.height * self.width

    @property
    def actions(self) -> Discrete:
        """A kind of edit and a tile."""
        return Discrete(len(self.kinds) * self.tiles)

    def begin(self, key: Key[Array, ""], level: MazeLevel) -> EditDraft:
        """The parent."""
        return EditDraft(Plan(level.walls.reshape(-1), level.goal, level.agent), jnp.zeros(self.tiles, bool))

    def act(self, draft: EditDraft, step: Int[Array, ""], action: Int[Array, ""]) -> EditDraft:
        """One edit."""
        kind, loc = action // self.tiles, action % self.tiles
        wall, goal, agent = (self._is(kind, name) for name in ("wall", "goal", "agent"))
        return edit_tile(draft, loc, wall, goal, agent)

    def finish(self, key: Key[Array, ""], draft: EditDraft) -> MazeLevel:
        """A goal or start left without a tile goes to a random free one; the start direction is drawn anew."""
        key_goal, key_agent, key_direction = random.split(key, 3)
        walls, goal, agent = place_both(key_goal, key_agent, draft.plan)
        return make_level(walls.reshape(self.height, self.width), agent, goal, random_direction(key_direction))

    def _is(self, kind: Int[Array, ""], name: str) -> Bool[Array, ""]:
        return kind == (self.kinds.index(name) if name in self.kinds else -1)
