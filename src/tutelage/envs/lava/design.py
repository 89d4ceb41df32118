"""The lava grid as the teacher meets it: generators, edits, complexity metrics, pictures and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.envs.grid import UNPLACED, Plan, check_rows, first_occurrences, place, place_both
from tutelage.envs.lava import render
from tutelage.envs.lava.drafts import LavaDesigning, LavaEditing
from tutelage.envs.lava.level import LAVA, SIDE, TILES, LavaLevel, level_from_rows, level_to_rows, make_level
from tutelage.envs.lava.paths import path_length
from tutelage.errors import check_choices

Generator = Literal["binomial", "uniform", "empty"]
MOST_PLACEMENTS = 1_000  # by which every tile is lava in all likelihood


@dataclass(frozen=True)
class LavaDesign:
    """How lava grids come about.

    The generator is the maze's design procedure with lava for walls: so many placements, then the goal, then the
    start, each on a tile drawn with replacement. Of n placements (20 in the ACCEL paper) `binomial` makes each one lava
    or nothing by the toss of a coin (the paper's †); `uniform` first draws their number from 0 … n and makes all of
    them lava (‡); `empty` has none. Nothing asks whether a level can be solved.
    """

    generator: Generator = "binomial"
    placements: int = 20

    def __post_init__(self) -> None:
        check_choices(self, generator=Generator)
        if self.placements < 0:
            raise ValueError(f"`placements` must not be negative, as {self.placements} is.")
        if self.placements > MOST_PLACEMENTS:
            raise ValueError(f"`placements` must be at most {MOST_PLACEMENTS:,}, not {self.placements:,}.")

    @property
    def design_steps(self) -> int:
        """How many tiles the teacher chooses to design one level: the placements, the goal, the start."""
        return 2 + (0 if self.generator == "empty" else self.placements)

    def sample(self, key: Key[Array, ""]) -> LavaLevel:
        """The level of a uniformly random teacher."""
        key_locs, key_lava, key_build = random.split(key, 3)
        locs = random.randint(key_locs, (self.design_steps,), 0, TILES)
        return self.build(key_build, locs, self.draw_lava(key_lava))

    def draw_lava(self, key: Key[Array, ""]) -> Bool[Array, " placements"]:
        """Which of the placements are lava."""
        n = self.design_steps - 2
        if self.generator == "uniform":
            return jnp.arange(n) < random.randint(key, (), 0, n + 1)
        return random.bernoulli(key, 0.5, (n,))

    def build(
        self, key: Key[Array, ""], locs: Int[Array, " design_steps"], lava: Bool[Array, " placements"]
    ) -> LavaLevel:
        """The level that a teacher's choices make: a tile at each step, and at each placement lava or nothing.

        A start chosen on the goal is put on a random free tile instead.
        """
        *_, goal, agent = locs
        placed = jnp.where(lava, locs[:-2], TILES)
        tiles = jnp.zeros(TILES, bool).at[placed].set(True, mode="drop").at[locs[-2:]].set(False)
        tiles, agent = place(key, tiles, jnp.where(agent == goal, UNPLACED, agent), goal)
        return make_level(tiles.reshape(SIDE, SIDE), agent, goal)

    def designing(self) -> LavaDesigning:
        """The generator's procedure, for a teacher that chooses: tiles, and by `binomial` also lava or nothing."""
        return LavaDesigning(self.design_steps, self.generator == "binomial", self.draw_lava)

    def editing(self, n: int) -> LavaEditing:
        """`n` edits, for a teacher that chooses."""
        return LavaEditing(n)

    def edit(self, key: Key[Array, ""], level: LavaLevel, n: int) -> LavaLevel:
        """Sets up to `n` random tiles anew: n ≥ 1 draws with replacement, each distinct tile edited once."""
        key_locs, key_lava, key_apply = random.split(key, 3)
        locs = random.randint(key_locs, (n,), 0, TILES)
        return self.apply_edits(key_apply, level, locs, random.bernoulli(key_lava, 0.5, (n,)))

    def apply_edits(
        self, key: Key[Array, ""], level: LavaLevel, locs: Int[Array, " n"], lava: Bool[Array, " n"]
    ) -> LavaLevel:
        """Makes the tiles `locs` lava or empty floor, as `lava` says; a tile that comes again is left alone.

        A goal or start on an edited tile goes to a random free one afterwards, the goal first.
        """
        key_goal, key_agent = random.split(key)
        edited = jnp.where(first_occurrences(locs), locs, TILES)
        tiles = level.lava.reshape(-1).at[edited].set(lava, mode="drop")
        goal, agent = (jnp.where(jnp.any(locs == loc), UNPLACED, loc) for loc in (level.goal, level.agent))
        tiles, goal, agent = place_both(key_goal, key_agent, Plan(tiles, goal, agent))
        return make_level(tiles.reshape(SIDE, SIDE), agent, goal)

    def describe(self, level: LavaLevel) -> Mapping[str, Float[Array, ""]]:
        """Lava tiles, moves from start to goal (diagonal ones too; NaN if there is no way), and whether it exists."""
        length = path_length(level)
        return {
            "lava": jnp.sum(level.lava).astype(jnp.float32),
            "path_length": length,
            "solvable": (~jnp.isnan(length)).astype(jnp.float32),
        }

    def render(self, level: LavaLevel) -> np.ndarray:
        """The room in its stone, 16 pixels a tile."""
        return render.draw(level)

    def to_json(self, level: LavaLevel) -> dict[str, Any]:
        """The rows of the room: `L` lava, `.` floor, `S` start, `G` goal."""
        return {"rows": level_to_rows(level)}

    def from_json(self, data: Any) -> LavaLevel:
        """The level that `to_json` wrote, checked."""
        if not isinstance(data, Mapping) or set(data) != {"rows"}:
            raise ValueError("A lava level is a mapping with the key 'rows' and no other.")
        check_rows(data["rows"], kind="lava", block=LAVA, height=SIDE, width=SIDE)
        return level_from_rows(data["rows"])
