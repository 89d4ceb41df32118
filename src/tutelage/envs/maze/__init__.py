"""The maze domain: partially observable navigation in the style of MiniGrid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Array, Key

from tutelage.env import SOLVABLE, Measure, Suite
from tutelage.envs.maze import render, suite
from tutelage.envs.maze.design import Edit, Generator, MazeDesign, Order
from tutelage.envs.maze.encoder import Compass, MazeEncoder
from tutelage.envs.maze.env import Maze, MazeObs, MazeState, Reward
from tutelage.envs.maze.level import MazeLevel
from tutelage.errors import check_choices

__all__ = ["Maze", "MazeDesign", "MazeDomain", "MazeEncoder", "MazeLevel", "MazeObs", "MazeState"]

PAPER_SIZE = 13


@dataclass(frozen=True)
class MazeDomain:
    """Mazes of one size, the student that walks them and the teacher that designs them."""

    size: int = PAPER_SIZE
    """Tiles a side, the border not counted: 3 to 99."""

    view: int = 5
    """Tiles a side of the student's view, 5 or 7: it sees that many ahead, its own included, and half as many aside."""

    max_steps: int = 250
    """Steps until an episode is cut off."""

    reward: Reward = "minigrid"
    """What reaching the goal at step t pays: 1 − 0.9·t/max_steps (minigrid) or 1 − t/max_steps (paper)."""

    see_through: bool = True
    """Whether the student sees through walls."""

    redraw_direction: bool = True
    """Whether each episode starts facing a random way instead of the way its level says."""

    generator: Generator = "variable"
    """How many walls a new level is given: a random number up to blocks, exactly blocks, or none (empty); or the
    reference simulator's own random reset (uniform), in which all are on different tiles."""

    blocks: int = 60
    """The generator's number of walls to place; as tiles are drawn with replacement, fewer may result."""

    edits: tuple[Edit, ...] = ("wall", "empty", "goal")
    """What an edit may make of a tile: a wall, an empty tile, the goal, the student's start (agent)."""

    edit_order: Order = "drawn"
    """The order in which the tiles of a level are edited: as drawn, or as Python goes through a set of their numbers
    (the reference implementation)."""

    compass: Compass = "shown"
    """What the student is told of its direction: which of four it is (shown), or always all four at once, as by a bug
    of the reference implementation in the paper's time (constant)."""

    name = "maze"
    measure = Measure()
    """The share of episodes that reach the goal."""

    classes = SOLVABLE
    """Whether a level can be solved."""

    def __post_init__(self) -> None:
        if not 3 <= self.size <= 99:
            raise ValueError(f"`size` must be 3 to 99 tiles, not {self.size}.")
        if self.view not in (5, 7):
            raise ValueError(f"`view` must be 5 or 7 tiles, not {self.view}.")
        check_choices(self, reward=Reward, compass=Compass)
        self.env()  # these two check the rest
        self.design()

    def env(self) -> Maze:
        """The maze that the student trains in."""
        return Maze(
            height=self.size,
            width=self.size,
            view=self.view,
            max_steps=self.max_steps,
            see_through=self.see_through,
            reward=self.reward,
            redraw_direction=self.redraw_direction,
        )

    def design(self) -> MazeDesign:
        """The mazes that the teacher may design."""
        return MazeDesign(self.size, self.size, self.generator, self.blocks, self.edits, self.edit_order)

    def encoder(self, key: Key[Array, ""]) -> MazeEncoder:
        """The student's eye, with fresh weights."""
        return MazeEncoder(view=self.view, compass=self.compass, key=key)

    def suites(self) -> Mapping[str, Suite]:
        """The paper's test mazes with more perfect mazes, the paper's alone, some to validate on, and small ones.

        Validation is by three of the paper's; a student of smaller mazes than theirs is validated on the small ones.
        """
        every = dict(suite.suites(self.view, self.reward))
        return every if self.size >= PAPER_SIZE else every | {"validation": every["small"]}

    def film(self, level: MazeLevel, states: MazeState) -> list[np.ndarray]:
        """Pictures of an episode on a level of any size, with the student's field of view and its trail."""
        height, width = level.walls.shape
        return render.film(replace(self.env(), height=height, width=width), states)
