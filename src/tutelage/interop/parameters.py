"""Levels that are parameters of an environment from elsewhere: numbers between bounds, and a seed if it has worlds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jaxtyping import Array, Float, Int32, Key

from tutelage.env import Box, Discrete, Env, Measure, TestLevel
from tutelage.envs.own import OwnDomain
from tutelage.errors import UserError, check_choices, shown

Generator = Literal["uniform", "default"]
SEEDS = 2**31 - 1
PIXELS = (12, 120)  # of a bar, high and wide


class Parameter(NamedTuple):
    """One number that the teacher sets."""

    name: str
    low: float
    high: float
    default: float


class ParameterLevel(NamedTuple):
    """One setting of all parameters."""

    values: Float[Array, " n"]
    seed: Int32[Array, ""]  # 0 where worlds are not drawn from one


@dataclass(frozen=True)
class Parameters:
    """The design space. An edit moves a random parameter by up to a `step` of its range, and draws another seed.

    A new level's parameters are uniform between their bounds, or the environment's own (`default`), from which ACCEL
    finds its way by edits.
    """

    parameters: tuple[Parameter, ...]
    generator: Generator = "uniform"
    step: float = 0.1
    seeded: bool = False
    """Whether a level's seed, and not chance, says how an episode begins."""

    def __post_init__(self) -> None:
        check_choices(self, generator=Generator)
        if not self.parameters and not self.seeded:
            raise ValueError("Levels must differ in something: name a parameter and its bounds, or have them seeded.")
        if len({p.name for p in self.parameters} | {"seed"}) <= len(self.parameters):
            raise ValueError("Parameters have different names, of which none is seed.")
        for name, low, high, default in self.parameters:
            if not low < high or not low <= default <= high:
                raise ValueError(f"{name} lies between {low:g} and {high:g}, and so must its default, {default:g}.")

    @property
    def low(self) -> np.ndarray:
        """The smallest value of each parameter."""
        return np.array([p.low for p in self.parameters], np.float32)

    @property
    def high(self) -> np.ndarray:
        """The largest value of each parameter."""
        return np.array([p.high for p in self.parameters], np.float32)

    def default(self, key: Key[Array, ""]) -> ParameterLevel:
        """The environment as it is published."""
        return self._level(key, jnp.array([p.default for p in self.parameters], jnp.float32))

    def uniform(self, key: Key[Array, ""]) -> ParameterLevel:
        """Every parameter drawn evenly between its bounds."""
        key_values, key_seed = random.split(key)
        share = random.uniform(key_values, (len(self.parameters),))
        return self.from_vector(key_seed, share * (self.high - self.low) + self.low)

    def sample(self, key: Key[Array, ""]) -> ParameterLevel:
        """A new level of the generator."""
        return self.uniform(key) if self.generator == "uniform" else self.default(key)

    def from_vector(self, key: Key[Array, ""], vector: Float[Array, " n"]) -> ParameterLevel:
        """The level with these parameters, clipped to their bounds, and a random seed if it has one."""
        return self._level(key, jnp.clip(vector, self.low, self.high))

    def edit(self, key: Key[Array, ""], level: ParameterLevel, n: int) -> ParameterLevel:
        """Moves `n` times a random parameter by up to a step."""
        key_which, key_by, key_seed = random.split(key, 3)
        if not self.parameters:
            return self._level(key_seed, level.values)
        which = random.randint(key_which, (n,), 0, len(self.parameters))
        reach = jnp.asarray(self.step * (self.high - self.low))[which]
        by = random.uniform(key_by, (n,), minval=-1.0) * reach

        def move(values: Float[Array, " n"], change: tuple[Array, Array]):
            return jnp.clip(values.at[change[0]].add(change[1]), self.low, self.high), None

        return self._level(key_seed, lax.scan(move, level.values, (which, by))[0])

    def _level(self, key: Key[Array, ""], values: Float[Array, " n"]) -> ParameterLevel:
        seed = random.randint(key, (), 0, SEEDS, jnp.int32) if self.seeded else jnp.zeros((), jnp.int32)
        return ParameterLevel(values, seed)

    def describe(self, level: ParameterLevel) -> Mapping[str, Float[Array, ""]]:
        """The parameters by name."""
        return {p.name: level.values[i] for i, p in enumerate(self.parameters)}

    def render(self, level: ParameterLevel) -> np.ndarray:
        """A bar for each parameter, from its lowest value to its highest; the default is a dark line."""
        height, width = PIXELS
        picture = np.full((max(1, len(self.parameters)) * height, width, 3), 235, np.uint8)
        for i, (p, value) in enumerate(zip(self.parameters, np.asarray(level.values), strict=True)):
            rows = slice(i * height + 2, (i + 1) * height - 2)
            picture[rows, : round((float(value) - p.low) / (p.high - p.low) * width)] = (70, 110, 180)
            mark = min(width - 1, round((p.default - p.low) / (p.high - p.low) * width))
            picture[rows, mark] = (20, 20, 20)
        return picture

    def to_json(self, level: ParameterLevel) -> dict[str, Any]:
        """The parameters by name, and the seed if there is one."""
        values = {p.name: float(str(np.float32(level.values[i]))) for i, p in enumerate(self.parameters)}
        return values | ({"seed": int(level.seed)} if self.seeded else {})

    def from_json(self, data: Any) -> ParameterLevel:
        """The level that `to_json` wrote, checked."""
        names = [p.name for p in self.parameters] + ["seed"] * self.seeded
        if not isinstance(data, Mapping) or set(data) != set(names):
            raise ValueError(f"A level of this design space has the keys {', '.join(names)}.")
        for name, low, high, _ in self.parameters:
            if isinstance(data[name], bool) or not isinstance(data[name], int | float) or not low <= data[name] <= high:
                raise ValueError(f"{name} lies between {low:g} and {high:g}, and is not {shown(data[name])}.")
        seed = data.get("seed", 0)
        if type(seed) is not int or not 0 <= seed < SEEDS:
            raise ValueError(f"The seed of a level is 0 to {SEEDS - 1}, not {shown(seed)}.")
        values = jnp.array([data[p.name] for p in self.parameters], jnp.float32)
        return ParameterLevel(values, jnp.asarray(seed, jnp.int32))


def parameters_of(bounds: Mapping[str, tuple[float, float]], defaults: Mapping[str, float]) -> tuple[Parameter, ...]:
    """Named bounds with the values that the environment has by itself."""
    return tuple(
        Parameter(name, float(low), float(high), float(defaults[name])) for name, (low, high) in bounds.items()
    )


def actions_of(space: Any) -> Discrete | Box:
    """Whole numbers, or vectors in [−1, 1] that are stretched to the space's own bounds."""
    if hasattr(space, "n") and np.ndim(space.n) == 0:
        return Discrete(int(space.n))
    if all(hasattr(space, end) and np.isfinite(getattr(space, end)).all() for end in ("low", "high")):
        return Box(math.prod(space.shape))
    raise UserError(f"Actions must be whole numbers or vectors between bounds, not {space}.")


def domain_of(name: str, env: Env, space: Parameters, solved_above: float | None) -> OwnDomain:
    """A domain whose students are held out on the environment as it is published, and on parameters evenly drawn.

    They are compared by their solved rate, or by their return where nothing says what is solved.
    """
    levels = (TestLevel("as published", env, space.default),)
    levels += (TestLevel("uniform", env, space.uniform),) if space.parameters else ()
    measure = Measure("mean_return", "return") if solved_above is None else Measure()
    return OwnDomain(name, env, space, levels, measure)
