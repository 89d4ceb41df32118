"""The walker's terrain as the teacher meets it: ranges, edits, complexity metrics, pictures and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jaxtyping import Array, Float, Int, Key

from tutelage.envs.bipedal import render
from tutelage.envs.bipedal.level import NAMES, PAIRS, WalkerLevel, in_order, make_level
from tutelage.envs.bipedal.terrain import Rules
from tutelage.errors import check_choices, shown

Generator = Literal["full", "easy"]
Parameters = Literal[5, 8]

# By NAMES. The easy generator's are the first levels of ACCEL, in which only the roughness is left to chance.
FULL_LOW = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
FULL_HIGH = (10.0, 10.0, 10.0, 5.0, 5.0, 5.0, 5.0, 9.0)
EASY_LOW = (0.0, 0.0, 0.8, 0.0, 0.4, 0.0, 0.4, 1.0)
EASY_HIGH = (0.6, 0.0, 0.8, 0.0, 0.4, 0.0, 0.4, 1.0)
EDIT = (0.6, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 1.0)  # that of the roughness is the largest of a random edit
NO_STAIRS = (0.0, 0.0, 1.0)

# POET's mutations: the smallest high ends that obstacles of a kind have, and by how much either end of a range changes.
FIRST = {"pit": 0.8, "stump": 0.4, "stair": 0.4}
ROUGHER = 0.6
TENTH = 10.0  # parameters are whole tenths

CHALLENGES = ((0, 4.5), (2, 6.0), (4, 2.4))  # POET's: at least this rough, with pits so wide, with stumps so high
SEEDS = 2**32


@dataclass(frozen=True)
class WalkerDesign:
    """How terrains come about: eight parameters, or the first five, without stairs, as in POET; and a random seed.

    A new level's parameters are uniform in the generator's ranges, the two ends of a range then put in order.
    """

    parameters: Parameters = 8
    generator: Generator = "full"
    rules: Rules = "parametrised"
    terrain: tuple[float, ...] = ()
    """The parameters of every new level, if they are given, in place of the generator's ranges."""
    terrain_seed: int = -1
    """The seed of every new level; -1: drawn anew for each."""
    widest_pit: float = 10.0
    """The widest pits that a mutation makes."""

    def __post_init__(self) -> None:
        self._check_terrain()
        if not 0 <= self.widest_pit <= FULL_HIGH[1]:
            raise ValueError(f"The widest pit is 0 to {FULL_HIGH[1]:g} cells wide, not {self.widest_pit:g}.")
        check_choices(self, parameters=Parameters, generator=Generator, rules=Rules)

    def _check_terrain(self) -> None:
        """A terrain that is given must be one."""
        if not -1 <= self.terrain_seed < SEEDS // 2:
            raise ValueError(f"The seed of a terrain is 0 to {SEEDS // 2 - 1}, or -1, not {self.terrain_seed}.")
        if self.terrain and len(self.terrain) != self.parameters:
            raise ValueError(f"A terrain here has {self.parameters} parameters, not {len(self.terrain)}.")
        for name, value, low, high in zip(self.names, self.terrain, FULL_LOW, FULL_HIGH, strict=False):
            if not low <= value <= high:
                raise ValueError(f"The {_spoken(name)} of a terrain is {low:g} to {high:g}, not {value:g}.")

    @property
    def names(self) -> tuple[str, ...]:
        """What the parameters are called."""
        return NAMES[: self.parameters]

    @property
    def low(self) -> np.ndarray:
        """The smallest parameters of a new level."""
        return np.array((EASY_LOW if self.generator == "easy" else FULL_LOW)[: self.parameters], np.float32)

    @property
    def high(self) -> np.ndarray:
        """The largest parameters of a new level."""
        return np.array((EASY_HIGH if self.generator == "easy" else FULL_HIGH)[: self.parameters], np.float32)

    def sample(self, key: Key[Array, ""]) -> WalkerLevel:
        """The level of a uniformly random teacher."""
        key_vector, key_seed = random.split(key)
        if self.terrain:
            level = self._level(key_seed, jnp.asarray(self.terrain, jnp.float32))
        else:
            share = random.uniform(key_vector, (self.parameters,))
            level = self.from_vector(key_seed, share * (self.high - self.low) + self.low)
        return level if self.terrain_seed < 0 else level._replace(seed=jnp.uint32(self.terrain_seed))

    def from_vector(self, key: Key[Array, ""], vector: Float[Array, " parameters"]) -> WalkerLevel:
        """The level with these parameters, clipped to their ranges and put in order, and a random seed."""
        return self._level(key, jnp.clip(vector, self.low, self.high))

    def edit(self, key: Key[Array, ""], level: WalkerLevel, n: int) -> WalkerLevel:
        """Changes `n` times a random parameter by a step up, down or not at all, and draws a new seed."""
        key_which, key_direction, key_rough, key_seed = random.split(key, 4)
        which = random.randint(key_which, (n,), 0, self.parameters)
        direction = random.randint(key_direction, (n,), -1, 2)
        share = jnp.where(which == 0, random.uniform(key_rough, (n,)), 1.0)
        return self.apply_edits(key_seed, level, which, direction * share)

    def apply_edits(
        self, key: Key[Array, ""], level: WalkerLevel, which: Int[Array, " n"], steps: Float[Array, " n"]
    ) -> WalkerLevel:
        """Moves parameters in turn by so many of their steps, within the full ranges; their order comes last."""
        low, high, size = (jnp.asarray(x[: self.parameters], jnp.float32) for x in (FULL_LOW, FULL_HIGH, EDIT))

        def move(genes: Float[Array, " parameters"], change: tuple[Array, Array]):
            parameter, step = change
            moved = genes.at[parameter].add(step * size[parameter])
            return jnp.clip(moved, low, high), None

        genes, _ = lax.scan(move, level.genes[: self.parameters], (which, steps))
        return self._level(key, genes)

    def plainest(self, key: Key[Array, ""]) -> WalkerLevel:
        """Flat ground without obstacles."""
        return self._level(key, jnp.asarray(FULL_LOW[: self.parameters], jnp.float32))

    def mutate(self, key: Key[Array, ""], level: WalkerLevel) -> WalkerLevel:
        """POET's mutation: roughness and every kind of obstacle change at once, and the seed is another.

        Both ends of a range go up, down or stay, uniformly among the ways that keep them in order and within bounds and
        change something; where there is no such obstacle yet, the first ones come. Stairs, which have eight parameters,
        get a step more or less besides.
        """
        keys = random.split(key, 6)
        genes = level.genes
        rough = genes[0] + random.uniform(keys[0], minval=-ROUGHER, maxval=ROUGHER)
        new = [jnp.clip(_in_tenths(rough), FULL_LOW[0], FULL_HIGH[0])[None]]
        bounds = {"pit": min(self.widest_pit, FULL_HIGH[1]), "stump": FULL_HIGH[3], "stair": FULL_HIGH[5]}
        for n, (kind, most) in enumerate(bounds.items()):
            low, high = PAIRS[n]
            if high < self.parameters:
                new.append(_stretched(keys[1 + n], genes[low : high + 1], FIRST[kind], EDIT[low], most))
        if self.parameters == len(NAMES):
            steps = genes[-1] + random.randint(keys[4], (), -1, 2)
            new.append(jnp.clip(steps, FULL_LOW[-1], FULL_HIGH[-1])[None])
        return self._level(keys[5], jnp.concatenate(new))

    def traits(self, level: WalkerLevel) -> Float[Array, " 5"]:
        """Roughness, pits and stumps in cells, as POET measures novelty; stairs play no part."""
        return level.genes[:5]

    def _level(self, key: Key[Array, ""], vector: Float[Array, " parameters"]) -> WalkerLevel:
        rest = jnp.asarray(NO_STAIRS[: len(NAMES) - self.parameters], jnp.float32)
        return make_level(in_order(jnp.concatenate([vector, rest])), random.bits(key))

    def describe(self, level: WalkerLevel) -> Mapping[str, Float[Array, ""]]:
        """The parameters, and how many of POET's three challenges are met (difficulty)."""
        met = [level.genes[gene] >= threshold for gene, threshold in CHALLENGES]
        parameters = {name: level.genes[i] for i, name in enumerate(self.names)}
        return parameters | {"difficulty": jnp.stack(met).sum().astype(jnp.float32)}

    def render(self, level: WalkerLevel) -> np.ndarray:
        """The profile of the whole terrain."""
        return render.draw(level, self.rules)

    def to_json(self, level: WalkerLevel) -> dict[str, Any]:
        """The parameters by name, and the seed."""
        genes = {name: float(str(np.float32(level.genes[i]))) for i, name in enumerate(self.names)}
        return genes | {"seed": int(level.seed)}

    def from_json(self, data: Any) -> WalkerLevel:
        """The level that `to_json` wrote, checked."""
        if not isinstance(data, Mapping) or set(data) != {*self.names, "seed"}:
            raise ValueError(f"A walker's level of this design space has the keys {', '.join(self.names)} and seed.")
        for name, low, high in zip(self.names, FULL_LOW, FULL_HIGH, strict=False):
            if not _is_number(data[name]) or not low <= data[name] <= high:
                raise ValueError(
                    f"The {_spoken(name)} of a walker's level is {low:g} to {high:g}, not {shown(data[name])}."
                )
        for low, high in PAIRS:
            if high < self.parameters and data[NAMES[low]] > data[NAMES[high]]:
                raise ValueError(f"The {_spoken(NAMES[low])} of a walker's level cannot exceed its high end.")
        if self.parameters == len(NAMES) and data[NAMES[-1]] != round(data[NAMES[-1]]):
            raise ValueError(f"The {_spoken(NAMES[-1])} of a walker's level are whole, not {shown(data[NAMES[-1]])}.")
        if type(data["seed"]) is not int or not 0 <= data["seed"] < SEEDS:
            raise ValueError(f"The seed of a walker's level is 0 to {SEEDS - 1}, not {shown(data['seed'])}.")
        rest = NO_STAIRS[: len(NAMES) - self.parameters]
        return make_level([*(data[name] for name in self.names), *rest], data["seed"])


def _in_tenths(x: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.round(x * TENTH) / TENTH


def _stretched(
    key: Key[Array, ""], ends: Float[Array, "2"], first: float, step: float, most: float
) -> Float[Array, "2"]:
    """Another range, a step away at either end at most; the first one where there is none yet."""
    moves = jnp.array([(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)], jnp.float32)
    ways = _in_tenths(ends + step * moves)
    low, high = ways.T
    fine = (low >= 0) & (high >= first - 1e-3) & (low <= high) & (ways <= most + 1e-3).all(axis=1)
    chosen = ways[random.categorical(key, jnp.where(fine, 0.0, -jnp.inf))]
    stretched = jnp.where(fine.any(), chosen, ends)
    return jnp.where(ends[1] < first - 1e-3, _in_tenths(jnp.array([0.0, first])), stretched)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _spoken(name: str) -> str:
    return name.replace("_", " ")
