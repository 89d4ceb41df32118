"""The bipedal domain: gymnasium's BipedalWalker on terrain that a teacher sets, with the physics of Box2D."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Array, Key

from tutelage.env import Classes, Measure, Suite
from tutelage.envs.bipedal import render, suite
from tutelage.envs.bipedal.design import Generator, Parameters, WalkerDesign
from tutelage.envs.bipedal.env import Walker, WalkerState
from tutelage.envs.bipedal.level import WalkerLevel
from tutelage.envs.bipedal.physics.ground import unpaved
from tutelage.envs.bipedal.physics.step import TOLERANCE
from tutelage.envs.bipedal.terrain import Rules
from tutelage.errors import check_choices
from tutelage.student.nets import Flatten

__all__ = ["TOLERANCE", "PoetDomain", "Walker", "WalkerDesign", "WalkerDomain", "WalkerLevel", "WalkerState"]

Stumps = Literal["keep", "shorten"]

# A step is mostly loops over little data. On CPUs XLA makes one function of each that has no more bytes than this; of
# others, hundreds, each of which it calls by way of a queue. For networks, which it has good functions for, less is
# better, so that it is not for all envs.
SMALL_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=4000000"

CHALLENGES_MET: Classes = {"difficulty": ("easy", "challenging", "very challenging", "extremely challenging")}

FORMER_SOLVERS = {"prompt": TOLERANCE, "exact": 0.0, "reduced": TOLERANCE}  # and the tolerances that stand for them
REDUCED = "The run was trained with the reduced velocity solver, which is no more; the default one stands in for it."


@dataclass(frozen=True)
class WalkerDomain:
    """Terrains of eight parameters, the student that walks them and the teacher that designs them."""

    generator: Generator = "full"
    """The ranges of a new level's parameters: all there is, or ACCEL's first levels (easy)."""

    stumps: Stumps = "keep"
    """Whether the stretch that a stump begins stays flat to its end (keep, as in ACCEL) or ends with it (shorten)."""

    max_steps: int = 2000
    """Steps until an episode is cut off."""

    tolerance: float = TOLERANCE
    """By how much, in metres or radians a second, six of Box2D's iterations may still change velocities for the rest to
    be left out; 0: all 180 are made."""

    terrain: tuple[float, ...] = ()
    """The parameters of every new level, if they are given, in place of the generator's ranges."""

    terrain_seed: int = -1
    """The seed of every new level, so that with `terrain` there is but one; -1: drawn anew for each."""

    widest_pit: float = 10.0
    """The widest pits that POET's mutations make, in cells: 10 in its paper, 8 as released."""

    name = "bipedal"
    xla_flags = (SMALL_LOOPS,)
    """On CPUs steps are up to four times as fast so with JAX 0.10; JAX 0.12 does much of it by itself."""

    parameters: ClassVar[Parameters] = 8
    """How many numbers the teacher sets."""

    measure = Measure("mean_return", "return", 0.0, 300.0, digits=1)
    """The return, which the paper aggregates over [0, 300]."""

    classes = CHALLENGES_MET
    """How many of POET's challenges a level meets: stump height ≥ 2.4, pit gap ≥ 6 and roughness ≥ 4.5."""

    def __post_init__(self) -> None:
        check_choices(self, stumps=Stumps)
        self.env()  # these two check the rest
        self.design()

    @classmethod
    def from_former(cls, fields: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Fields of a version that named its solvers, and what is to be said of them."""
        rest = {name: value for name, value in fields.items() if name != "solver"}
        if "solver" not in fields or fields["solver"] not in FORMER_SOLVERS:
            return dict(fields), ""
        return {**rest, "tolerance": FORMER_SOLVERS[fields["solver"]]}, REDUCED if fields["solver"] == "reduced" else ""

    @property
    def rules(self) -> Rules:
        """How a level becomes terrain."""
        return "parametrised" if self.stumps == "keep" else "poet"

    def env(self) -> Walker:
        """The walker that the student trains."""
        return Walker(self.rules, self.max_steps, self.tolerance)

    def design(self) -> WalkerDesign:
        """The terrains that the teacher may design."""
        return WalkerDesign(
            self.parameters, self.generator, self.rules, self.terrain, self.terrain_seed, self.widest_pit
        )

    def encoder(self, key: Key[Array, ""]) -> Flatten:
        """The 24 numbers of the observation, as they are."""
        return Flatten(24)

    def suites(self) -> Mapping[str, Suite]:
        """The paper's test levels, those of POET, far harder ones, and gymnasium's two to validate on."""
        return suite.suites(partial(Walker, tolerance=self.tolerance), self.rules)

    def real_suites(self) -> Mapping[str, Suite]:
        """These suites in gymnasium's Box2D."""
        from tutelage.envs.bipedal.real import RealWalker

        return suite.suites(RealWalker, self.rules)

    def film(self, level: WalkerLevel, states: WalkerState) -> list[np.ndarray]:
        """Pictures of an episode; the camera follows the walker."""
        bodies = states.bodies
        poses = np.stack([np.asarray(bodies.x), np.asarray(bodies.y), np.asarray(bodies.angle)], axis=-1)
        return render.film(unpaved(states.ground[0]), poses)


@dataclass(frozen=True)
class PoetDomain(WalkerDomain):
    """Terrains of POET's five parameters: no stairs."""

    name = "bipedal-poet"
    parameters = 5

    def suites(self) -> Mapping[str, Suite]:
        """POET's levels come first."""
        return _poet_first(super().suites())

    def real_suites(self) -> Mapping[str, Suite]:
        """These suites in gymnasium's Box2D."""
        return _poet_first(super().real_suites())


def _poet_first(suites: Mapping[str, Suite]) -> Mapping[str, Suite]:
    return {"bipedal-poet": suites["bipedal-poet"], **suites}
