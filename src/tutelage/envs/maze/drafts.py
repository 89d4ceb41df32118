"""Mazes in the making: the procedures by which a teacher designs and edits them step by step.

A draft is made of plans: which tiles are blocked, where the goal and the start are. What holds for any grid of tiles
serves the lava grid too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Bool, Int, Key, UInt8

from tutelage.env import Discrete
from tutelage.envs.maze.encoder import TeacherEye
from tutelage.envs.maze.env import BYTES, EMPTY_CODE, GOAL_CODE, WALL_CODE
from tutelage.envs.maze.level import MazeLevel, make_level, random_direction, random_tile

UNPLACED = -1
START_CODE = 10  # MiniGrid's tile code of an agent that faces right


class Plan(NamedTuple):
    """A grid level that may still lack its goal and its start, which are `UNPLACED` then."""

    blocks: Bool[Array, " tiles"]  # walls, or lava
    goal: Int[Array, ""]
    agent: Int[Array, ""]


class DesignDraft(NamedTuple):
    """A level being designed, and how many of its steps place blocks."""

    plan: Plan
    budget: Int[Array, ""]


class EditDraft(NamedTuple):
    """A level being edited, and the tiles that have been edited already."""

    plan: Plan
    edited: Bool[Array, " tiles"]


def no_plan(tiles: int) -> Plan:
    """An empty grid without goal and start."""
    return Plan(jnp.zeros(tiles, bool), jnp.int32(UNPLACED), jnp.int32(UNPLACED))


def lay(plan: Plan, loc: Int[Array, ""], block: Bool[Array, ""], goal: Bool[Array, ""], agent: Bool[Array, ""]) -> Plan:
    """Puts a block, the goal, the start or nothing on a tile. The start is not put on the goal."""
    blocks = plan.blocks.at[loc].set((plan.blocks[loc] | block) & ~(goal | agent))
    start = jnp.where(loc == plan.goal, UNPLACED, loc)
    return Plan(blocks, jnp.where(goal, loc, plan.goal), jnp.where(agent, start, plan.agent))


def redo(
    draft: EditDraft, loc: Int[Array, ""], block: Bool[Array, ""], goal: Bool[Array, ""], agent: Bool[Array, ""]
) -> EditDraft:
    """Clears a tile and puts a block, the goal, the start or nothing there; a tile that comes again is left alone."""
    plan, fresh = draft.plan, ~draft.edited[loc]

    def after(old: Int[Array, ""], here: Bool[Array, ""]) -> Int[Array, ""]:
        return jnp.where(fresh & here, loc, jnp.where(fresh & (old == loc), UNPLACED, old))

    blocks = plan.blocks.at[loc].set(jnp.where(fresh, block, plan.blocks[loc]))
    return EditDraft(Plan(blocks, after(plan.goal, goal), after(plan.agent, agent)), draft.edited.at[loc].set(True))


def place(
    key: Key[Array, ""], walls: Bool[Array, " tiles"], loc: Int[Array, ""], other: Int[Array, ""]
) -> tuple[Bool[Array, " tiles"], Int[Array, ""]]:
    """Puts an `UNPLACED` goal or start on a random free tile: no wall, and not where the `other` of the two is.

    If walls have left no tile free, a random one gives way.
    """
    apart = jnp.arange(walls.size) != other
    free = apart & ~walls
    found = random_tile(key, jnp.where(jnp.any(free), free, apart))
    loc = jnp.where(loc == UNPLACED, found, loc)
    return walls.at[loc].set(False), loc


def place_both(key_goal: Key[Array, ""], key_agent: Key[Array, ""], plan: Plan) -> Plan:
    """`place`s the goal, then the start."""
    blocks, goal = place(key_goal, plan.blocks, plan.goal, plan.agent)
    blocks, agent = place(key_agent, blocks, plan.agent, goal)
    return Plan(blocks, goal, agent)


def picture(plan: Plan, height: int, width: int, block_code: int = WALL_CODE) -> UInt8[Array, "rows columns 3"]:
    """The whole map within a border of walls, in MiniGrid's tile codes."""
    tile = jnp.arange(height * width)
    code = jnp.where(plan.blocks, block_code, EMPTY_CODE)
    code = jnp.where(tile == plan.goal, GOAL_CODE, jnp.where(tile == plan.agent, START_CODE, code))
    bordered = jnp.pad(code.reshape(height, width), 1, constant_values=WALL_CODE)
    return (bordered.astype(jnp.uint32)[..., None] >> BYTES).astype(jnp.uint8)


@dataclass(frozen=True)
class MazeDesigning:
    """The design procedure of Dennis et al. (2020): so many walls, then the goal, then the start, a tile a step.

    Steps that come after the start change nothing.
    """

    height: int
    width: int
    steps: int
    budget: Callable[[Int[Array, ""]], Int[Array, ""]]
    """The number of walls, given the first tile."""

    @property
    def actions(self) -> Discrete:
        """A tile."""
        return Discrete(self.height * self.width)

    def begin(self, key: Key[Array, ""], level: None) -> DesignDraft:
        """An empty room."""
        return DesignDraft(no_plan(self.actions.n), jnp.int32(0))

    def act(self, draft: DesignDraft, step: Int[Array, ""], action: Int[Array, ""]) -> DesignDraft:
        """Sets the chosen tile."""
        n = jnp.where(step == 0, self.budget(action), draft.budget)
        return DesignDraft(lay(draft.plan, action, step < n, step == n, step == n + 1), n)

    def finish(self, key: Key[Array, ""], draft: DesignDraft) -> MazeLevel:
        """A start that was chosen on the goal goes to a random free tile."""
        key_agent, key_direction = random.split(key)
        goal = draft.plan.goal
        walls, agent = place(key_agent, draft.plan.blocks, draft.plan.agent, goal)
        return make_level(walls.reshape(self.height, self.width), agent, goal, random_direction(key_direction))

    def look(self, draft: DesignDraft) -> UInt8[Array, "rows columns 3"]:
        """The whole map with its border."""
        return picture(draft.plan, self.height, self.width)

    def encoder(self, key: Key[Array, ""], z: int) -> TeacherEye:
        """A convolution over the map, and the time step."""
        return TeacherEye((self.height + 2, self.width + 2), self.steps, z, key=key)


@dataclass(frozen=True)
class MazeEditing:
    """`steps` edits of a maze, each of a kind and on a tile that the teacher chooses: action = kind · tiles + tile."""

    height: int
    width: int
    kinds: tuple[str, ...]
    steps: int

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
        return redo(draft, loc, wall, goal, agent)

    def finish(self, key: Key[Array, ""], draft: EditDraft) -> MazeLevel:
        """A goal or start left without a tile goes to a random free one; the start direction is drawn anew."""
        key_goal, key_agent, key_direction = random.split(key, 3)
        walls, goal, agent = place_both(key_goal, key_agent, draft.plan)
        return make_level(walls.reshape(self.height, self.width), agent, goal, random_direction(key_direction))

    def look(self, draft: EditDraft) -> UInt8[Array, "rows columns 3"]:
        """The whole map with its border."""
        return picture(draft.plan, self.height, self.width)

    def encoder(self, key: Key[Array, ""], z: int) -> TeacherEye:
        """A convolution over the map, and the time step."""
        return TeacherEye((self.height + 2, self.width + 2), self.steps, z, key=key)

    def _is(self, kind: Int[Array, ""], name: str) -> Bool[Array, ""]:
        return kind == (self.kinds.index(name) if name in self.kinds else -1)
