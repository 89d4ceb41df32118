"""Held-out terrains: those of the ACCEL paper, POET's, and extremes of the design space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Key

from tutelage.env import Env, Suite, TestLevel
from tutelage.envs.bipedal.design import NO_STAIRS
from tutelage.envs.bipedal.level import NAMES, WalkerLevel, make_level
from tutelage.envs.bipedal.terrain import Rules

BASIC_STEPS, STEPS = 1600, 2000

Range = tuple[float, float]


@dataclass(frozen=True)
class Drawn:
    """Levels with parameters uniform between `low` and `high`, and random seeds."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __call__(self, key: Key[Array, ""]) -> WalkerLevel:
        key_genes, key_seed = random.split(key)
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        return make_level(low + (high - low) * random.uniform(key_genes, low.shape), random.bits(key_seed))


THRESHOLDS = (4.5, 6.0, 2.4)  # POET's challenges: roughness, width of pits, height of stumps
HARDEST = (8.0, 8.0, 3.0)  # that its environments come to


@dataclass(frozen=True)
class Challenging:
    """Levels that meet so many of POET's three challenges, whichever they are, and random seeds."""

    met: int

    def __call__(self, key: Key[Array, ""]) -> WalkerLevel:
        key_which, key_much, key_seed = random.split(key, 3)
        met = random.permutation(key_which, 3) < self.met
        threshold, share = jnp.array(THRESHOLDS), random.uniform(key_much, (3,))
        hard = threshold + share * (jnp.array(HARDEST) - threshold)
        roughness, pit, stump = jnp.where(met, hard, share * threshold)
        return make_level(jnp.stack([roughness, 0 * pit, pit, 0 * stump, stump, *NO_STAIRS]), random.bits(key_seed))


def terrain(
    *,
    roughness: float | Range = 0.0,
    pit: tuple[float, float | Range] = (0.0, 0.0),
    stump: tuple[float, float | Range] = (0.0, 0.0),
    stair: tuple[float, float | Range] = (0.0, 0.0),
    steps: int = 1,
) -> Drawn:
    """Levels of these parameters; one given as a pair is uniform in between."""
    values = (roughness, *pit, *stump, *stair, steps)
    ends = [value if isinstance(value, tuple) else (value, value) for value in values]
    assert len(ends) == len(NAMES)
    low, high = zip(*ends, strict=True)
    return Drawn(low, high)


BASIC = terrain(roughness=1.0)
HARDCORE = terrain()  # whose rules need no parameters

PAPER = {
    "Stairs": terrain(stair=(2.0, 2.0), steps=5),
    "PitGap": terrain(pit=(5.0, 5.0)),
    "Stump": terrain(stump=(2.0, 2.0)),
    "Roughness": terrain(roughness=5.0),
}
HIGH = {
    "StairsHigh": terrain(stair=(5.0, 5.0), steps=9),
    "PitGapHigh": terrain(pit=(10.0, 10.0)),
    "StumpHigh": terrain(stump=(5.0, 5.0)),
    "RoughnessHigh": terrain(roughness=9.0),
    "Insane": terrain(roughness=9.0, pit=(10.0, 10.0), stump=(5.0, 5.0), stair=(5.0, 5.0), steps=9),
}
POET = {
    "Extreme": terrain(roughness=(4.5, 8.0), pit=(0.0, (6.0, 8.0)), stump=(0.0, (2.4, 3.0))),
    "Rose1a": terrain(roughness=5.6, stump=(2.4, 2.82), pit=(4.48, 6.4)),
    "Rose1b": terrain(roughness=5.44, stump=(1.8, 2.82), pit=(4.48, 6.72)),
    "Rose2a": terrain(roughness=7.2, stump=(1.98, 2.82), pit=(5.6, 7.2)),
    "Rose2b": terrain(roughness=5.76, stump=(2.16, 2.76), pit=(1.6, 7.2)),
    "Rose3a": terrain(roughness=5.28, stump=(1.98, 2.76), pit=(4.8, 7.2)),
    "Rose3b": terrain(roughness=4.8, stump=(2.4, 2.76), pit=(4.48, 4.8)),
}
CLASSES = {
    "Challenging": Challenging(1),
    "VeryChallenging": Challenging(2),
    "ExtremelyChallenging": Challenging(3),
}


def suites(play: Callable[[Rules, int], Env], rules: Rules) -> Mapping[str, Suite]:
    """All suites, in envs that `play` makes of rules and a limit of steps; parametrised levels under the given rules.

    `bipedal` is the paper's, `bipedal-poet` the extremely challenging levels and six more of POET's, `bipedal-high` far
    harder ones; `validation` is short. `poet` is on POET's own terrain, whatever the rules of the training: levels of
    its three classes of difficulty, and its six.
    """
    gymnasiums = (
        TestLevel("Basic", play("parametrised", BASIC_STEPS), BASIC),
        TestLevel("Hardcore", play("hardcore", STEPS), HARDCORE),
    )
    env, poets = play(rules, STEPS), play("poet", STEPS)

    def of(draws: Mapping[str, Any], env: Env = env) -> Suite:
        return tuple(TestLevel(name, env, draw) for name, draw in draws.items())

    return {
        "bipedal": (*gymnasiums, *of(PAPER)),
        "bipedal-poet": of(POET),
        "bipedal-high": of(HIGH),
        "poet": of(CLASSES | {name: draw for name, draw in POET.items() if name.startswith("Rose")}, poets),
        "validation": gymnasiums,
    }
