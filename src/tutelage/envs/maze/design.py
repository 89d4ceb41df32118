"""The maze as the teacher meets it: generators, edits, complexity metrics, pictures and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.envs.grid import UNPLACED, Plan, check_rows, first_occurrences, place, place_both
from tutelage.envs.maze import render
from tutelage.envs.maze.drafts import MazeDesigning, MazeEditing
from tutelage.envs.maze.level import WALL, MazeLevel, level_from_rows, level_to_rows, make_level, random_direction
from tutelage.envs.maze.order import set_order
from tutelage.envs.maze.paths import path_length
from tutelage.errors import check_choices, listed, shown

Generator = Literal["variable", "fixed", "empty", "uniform"]
Edit = Literal["wall", "empty", "goal", "agent"]
Order = Literal["drawn", "set"]


@dataclass(frozen=True)
class MazeDesign:
    """How mazes come about.

    The generator is the design procedure of Dennis et al. (2020) under uniformly random actions: n walls, then the
    goal, then the start, each on a tile drawn with replacement. `fixed` has n = blocks, `empty` n = 0, and `variable`
    reads n off the first action, n = ⌊blocks · loc₀ / tiles⌋. Nothing asks whether a level can be solved.

    The generator `uniform` is the simulator's own random reset of the reference implementation: goal, start and a
    uniformly random number of walls, at most `blocks`, all on different tiles.
    """

    height: int = 13
    width: int = 13
    generator: Generator = "variable"
    blocks: int = 60
    edits: tuple[Edit, ...] = ("wall", "empty", "goal")
    edit_order: Order = "drawn"

    def __post_init__(self) -> None:
        if not (3 <= self.height <= 99 and 3 <= self.width <= 99):
            raise ValueError(f"A maze's interior has 3 to 99 tiles a side, not {self.height} × {self.width}.")
        check_choices(self, generator=Generator, edit_order=Order)
        if self.blocks < 0:
            raise ValueError(f"`blocks` must not be negative, as {self.blocks} is.")
        if not self.edits or sorted(set(self.edits) & set(get_args(Edit))) != sorted(self.edits):
            raise ValueError(f"`edits` must be some of {listed(Edit)}, each once, not {self.edits}.")

    @property
    def tiles(self) -> int:
        """How many tiles the teacher may set."""
        return self.height * self.width

    @property
    def design_steps(self) -> int:
        """How many tiles the teacher chooses to design one level: the most blocks, the goal, the start."""
        return 2 + (0 if self.generator == "empty" else self.blocks)

    def sample(self, key: Key[Array, ""]) -> MazeLevel:
        """The level of a uniformly random teacher, or of the simulator's random reset."""
        if self.generator == "uniform":
            return self._reset(key)
        key_locs, key_build = random.split(key)
        return self.build(key_build, random.randint(key_locs, (self.design_steps,), 0, self.tiles))

    def _reset(self, key: Key[Array, ""]) -> MazeLevel:
        key_tiles, key_count, key_direction = random.split(key, 3)
        tiles = random.permutation(key_tiles, self.tiles)
        goal, agent, rest = tiles[0], tiles[1], tiles[2:]
        placed = jnp.arange(rest.size) < random.randint(key_count, (), 0, self.blocks + 1)
        walls = jnp.zeros(self.tiles, bool).at[rest].set(placed)
        return make_level(walls.reshape(self.height, self.width), agent, goal, random_direction(key_direction))

    def build(self, key: Key[Array, ""], locs: Int[Array, " design_steps"]) -> MazeLevel:
        """The level that a teacher's choice of tiles makes; those after the start are not used.

        A start chosen on the goal is put on a random free tile instead.
        """
        key_agent, key_direction = random.split(key)
        n = self.budget(locs[0])
        placed = jnp.where(jnp.arange(self.design_steps) < n, locs, self.tiles)
        goal, agent = locs[n], locs[n + 1]
        walls = jnp.zeros(self.tiles, bool).at[placed].set(True, mode="drop").at[jnp.stack([goal, agent])].set(False)
        agent = jnp.where(agent == goal, UNPLACED, agent)
        walls, agent = place(key_agent, walls, agent, goal)
        return make_level(walls.reshape(self.height, self.width), agent, goal, random_direction(key_direction))

    def budget(self, first: Int[Array, ""]) -> Int[Array, ""]:
        """The number of walls to place, given the first chosen tile."""
        return {
            "variable": self.blocks * first // self.tiles,
            "fixed": jnp.int32(self.blocks),
            "empty": jnp.int32(0),
        }[self.generator]

    def designing(self) -> MazeDesigning:
        """The generator's procedure, for a teacher that chooses."""
        if self.generator == "uniform":
            raise ValueError(
                "In the generator 'uniform' nobody chooses tiles: a teacher needs another --env.generator."
            )
        return MazeDesigning(self.height, self.width, self.design_steps, self.budget)

    def editing(self, n: int) -> MazeEditing:
        """`n` edits, for a teacher that chooses."""
        return MazeEditing(self.height, self.width, self.edits, n)

    def edit(self, key: Key[Array, ""], level: MazeLevel, n: int) -> MazeLevel:
        """Sets up to `n` random tiles anew: n ≥ 1 draws with replacement, each distinct tile edited once.

        Their order decides which goal stays, where several are put: as `drawn`, or that of a Python `set`.
        """
        key_locs, key_kinds, key_apply = random.split(key, 3)
        locs = random.randint(key_locs, (n,), 0, self.tiles)
        locs = set_order(locs, self.tiles) if self.edit_order == "set" else locs
        kinds = random.randint(key_kinds, (n,), 0, len(self.edits))
        return self.apply_edits(key_apply, level, locs, kinds)

    def apply_edits(
        self, key: Key[Array, ""], level: MazeLevel, locs: Int[Array, " n"], kinds: Int[Array, " n"]
    ) -> MazeLevel:
        """Edits the tiles `locs` in turn, the i-th as `edits[kinds[i]]` says; a tile that comes again is left alone.

        An edit clears its tile and then puts a wall, nothing, the goal or the start there; the last goal (start) so put
        is the one that stays. A goal or start left without a tile goes to a random free one, the goal first. The start
        direction is drawn anew.
        """
        key_goal, key_agent, key_direction = random.split(key, 3)
        edited = first_occurrences(locs)
        wall, to_goal, to_agent = (edited & self._is_kind(kinds, kind) for kind in ("wall", "goal", "agent"))
        tiles = jnp.where(edited, locs, self.tiles)
        walls = level.walls.reshape(-1).at[tiles].set(wall, mode="drop")
        goal, agent = moved(level.goal, locs, to_goal), moved(level.agent, locs, to_agent)
        walls, goal, agent = place_both(key_goal, key_agent, Plan(walls, goal, agent))
        return make_level(walls.reshape(level.walls.shape), agent, goal, random_direction(key_direction))

    def _is_kind(self, kinds: Int[Array, " n"], kind: Edit) -> Bool[Array, " n"]:
        return kinds == (self.edits.index(kind) if kind in self.edits else -1)

    def describe(self, level: MazeLevel) -> Mapping[str, Float[Array, ""]]:
        """Interior walls, tile moves from start to goal (NaN if there is no way), and whether there is a way."""
        length = path_length(level)
        return {
            "blocks": jnp.sum(level.walls).astype(jnp.float32),
            "path_length": length,
            "solvable": (~jnp.isnan(length)).astype(jnp.float32),
        }

    def render(self, level: MazeLevel) -> np.ndarray:
        """The maze with its border, 16 pixels a tile."""
        return render.draw(level)

    def to_json(self, level: MazeLevel) -> dict[str, Any]:
        """The rows of the interior (`#` wall, `.` floor, `S` start, `G` goal) and the start direction."""
        return {"rows": level_to_rows(level), "direction": int(level.direction)}

    def from_json(self, data: Any) -> MazeLevel:
        """The level that `to_json` wrote, checked."""
        if not isinstance(data, Mapping) or set(data) != {"rows", "direction"}:
            raise ValueError("A maze level is a mapping with the keys 'rows' and 'direction' and no others.")
        check_rows(data["rows"], kind="maze", block=WALL, height=self.height, width=self.width)
        if type(data["direction"]) is not int or not 0 <= data["direction"] <= 3:
            raise ValueError(f"The direction of a maze level is 0, 1, 2 or 3, not {shown(data['direction'])}.")
        return level_from_rows(data["rows"], data["direction"])


def moved(loc: Int[Array, ""], edited: Int[Array, " n"], here: Bool[Array, " n"]) -> Int[Array, ""]:
    """Where the goal or start is after tiles were `edited`, of which `here` says which were given it."""
    last = jnp.max(jnp.where(here, jnp.arange(here.size), -1))
    cleared = jnp.where(jnp.any(edited == loc), UNPLACED, loc)
    return jnp.where(last >= 0, edited[last], cleared)
