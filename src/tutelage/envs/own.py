"""A domain from parts: for an env of your own that needs no options on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from tutelage.env import SOLVABLE, Classes, DesignSpace, Env, Level, Measure, State, Suite
from tutelage.student.nets import Flatten


@dataclass(frozen=True)
class OwnDomain:
    """An env and its design space under a name. The student sees observations as flat vectors."""

    name: str
    game: Env
    space: DesignSpace
    held_out: Suite = ()
    measure: Measure = Measure()
    """What students are compared by on the held-out levels."""

    def env(self) -> Env:
        """The student's side."""
        return self.game

    def design(self) -> DesignSpace:
        """The teacher's side."""
        return self.space

    def encoder(self, key: Key[Array, ""]) -> Any:
        """Every number of the observation, as it is."""
        level = jax.eval_shape(self.space.sample, key)
        return Flatten.of(jax.eval_shape(self.game.reset, key, level)[1])

    def suites(self) -> Mapping[str, Suite]:
        """The held-out levels, if any were given."""
        return {"held-out": self.held_out} if self.held_out else {}

    @property
    def classes(self) -> Classes:
        """Whether a level can be solved, where the design space says so."""
        level = jax.eval_shape(self.space.sample, jax.random.key(0))
        return SOLVABLE if "solvable" in jax.eval_shape(self.space.describe, level) else {}

    def film(self, level: Level, states: State) -> list[np.ndarray]:
        """There is no general way to draw an episode."""
        raise NotImplementedError(f"The env {self.name!r} does not say how an episode is drawn.")
