"""The lava domain: fully observable navigation among lava, as in MiniHack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Array, Key

from tutelage.env import SOLVABLE, Measure, Suite
from tutelage.envs.lava import render, suite
from tutelage.envs.lava.design import Generator, LavaDesign
from tutelage.envs.lava.encoder import SmallEncoder
from tutelage.envs.lava.env import Crop, Hero, Lava, LavaObs, LavaState, Penalty
from tutelage.envs.lava.level import LavaLevel
from tutelage.envs.lava.nethack import NetHackEncoder
from tutelage.errors import check_choices

__all__ = ["Lava", "LavaDesign", "LavaDomain", "LavaLevel", "LavaObs", "LavaState", "NetHackEncoder", "SmallEncoder"]

Eye = Literal["small", "nethack"]


@dataclass(frozen=True)
class LavaDomain:
    """Lava grids of 7×7 tiles, the student that crosses them and the teacher that designs them."""

    max_steps: int = 100
    """Steps until an episode is cut off: 2 to 100."""

    penalty: Penalty = "frozen"
    """Which steps cost 0.01: those into stone, at which the game's time stands still (MiniHack), or every step."""

    crop: Crop = "centred"
    """Where the student is in the crop of the map: in its middle, or one tile towards the lower right (off-centre), as
    in the network of the NetHack Learning Environment."""

    hero: Hero = "fixed"
    """Whether the hero has the same attributes in every game, or has them drawn anew, as NetHack does it unseeded."""

    generator: Generator = "binomial"
    """How many placements of a new level are lava: each or not by a coin, a random number of them, or none (empty)."""

    placements: int = 20
    """The generator's number of placements; as tiles are drawn with replacement, fewer lava tiles may result."""

    eye: Eye = "small"
    """The first part of the student: one layer that trains on a CPU, or the NetHack baseline's convolutions."""

    name = "lava"
    measure = Measure()
    """The share of episodes that reach the goal."""

    classes = SOLVABLE
    """Whether a level can be solved."""

    def __post_init__(self) -> None:
        check_choices(self, eye=Eye)
        self.env()  # these two check the rest
        self.design()

    def env(self) -> Lava:
        """The lava grid that the student trains in."""
        return Lava(self.max_steps, self.penalty, self.crop, self.hero)

    def design(self) -> LavaDesign:
        """The lava grids that the teacher may design."""
        return LavaDesign(self.generator, self.placements)

    def encoder(self, key: Key[Array, ""]) -> SmallEncoder | NetHackEncoder:
        """The student's eye, with fresh weights."""
        return SmallEncoder(key=key) if self.eye == "small" else NetHackEncoder(key=key)

    def suites(self) -> Mapping[str, Suite]:
        """The paper's test levels."""
        return suite.suites(self.env())

    def real_suites(self) -> Mapping[str, Suite]:
        """The paper's test levels in the real MiniHack."""
        from tutelage.envs.lava.real import RealLava

        return suite.suites(RealLava(self.max_steps, self.penalty, self.crop, self.hero))

    def film(self, level: LavaLevel, states: LavaState) -> list[np.ndarray]:
        """Pictures of an episode, with the student's trail."""
        return render.film(level, states)
