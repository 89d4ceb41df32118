"""Any gymnasium environment as a domain, played on the host: its parameters and its seed are what the teacher designs.

    import gymnasium
    from tutelage.interop.gymnasium import domain

    def make():
        return gymnasium.make("CartPole-v1").unwrapped

    cartpole = domain("cartpole", make, {"gravity": (2, 30), "length": (0.2, 2)}, max_steps=200, solved_above=195)

An environment is played in Python, one step at a time, so this is far slower than an environment in JAX; everything
else is as with any domain. Episodes must be repeatable: the same seed, parameters and actions give the same episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Bool, Float, Int32, Key

from tutelage.env import Box, Discrete, Obs, Timestep
from tutelage.envs.hosted import HostedEnv, seen
from tutelage.envs.own import OwnDomain
from tutelage.errors import UserError
from tutelage.interop.parameters import (
    SEEDS,
    Generator,
    ParameterLevel,
    Parameters,
    actions_of,
    domain_of,
    parameters_of,
)

Make = Callable[[], Any]
Prepare = Callable[[Any, Mapping[str, float]], None]


def set_attributes(env: Any, parameters: Mapping[str, float]) -> None:
    """Gives an environment's attributes these values."""
    for name, value in parameters.items():
        setattr(env, name, value)


class Opening(NamedTuple):
    """How an episode begins."""

    values: Float[Array, " n"]
    seed: Int32[Array, ""]


@dataclass(frozen=True, eq=False)
class GymnasiumEnv(HostedEnv):
    """The student's side."""

    make: Make
    names: tuple[str, ...]
    actions: Discrete | Box
    """Whole numbers, or vectors in [−1, 1] that are stretched to the environment's own bounds."""
    nothing: Obs
    max_steps: int
    seeded: bool = False
    solved_above: float | None = None
    prepare: Prepare = set_attributes

    def opening(self, key: Key[Array, ""], level: ParameterLevel) -> Opening:
        """The level's parameters, and its seed or one of chance."""
        seed = level.seed if self.seeded else random.randint(key, (), 0, SEEDS, jnp.int32)
        return Opening(level.values, seed)

    def new_engine(self, opening: Opening) -> Player:
        """Another copy of the environment."""
        return Player(self)

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """A return above the one that was named; never, if none was."""
        return jnp.zeros_like(episode_return, bool) if self.solved_above is None else episode_return > self.solved_above


class Player:
    """One copy of an environment, for one episode at a time."""

    def __init__(self, kind: GymnasiumEnv) -> None:
        self.kind, self.env, self.time = kind, kind.make(), 0

    def begin(self, opening: Opening) -> Timestep:
        """A new episode."""
        values = dict(zip(self.kind.names, np.asarray(opening.values).tolist(), strict=True))
        self.kind.prepare(self.env, values)
        self.time = 0
        return seen(plain(self.env.reset(seed=int(opening.seed))[0]))

    def act(self, action: Any) -> Timestep:
        """One step; time runs out after `max_steps` if not before."""
        self.time += 1
        obs, reward, terminated, truncated, _ = self.env.step(stretched(self.env.action_space, action))
        late = (bool(truncated) or self.time >= self.kind.max_steps) and not terminated
        return seen(plain(obs), float(reward), bool(terminated), late)


def domain(
    name: str,
    make: Make,
    bounds: Mapping[str, tuple[float, float]],
    *,
    max_steps: int,
    solved_above: float | None = None,
    seeded: bool = False,
    generator: Generator = "default",
    step: float = 0.1,
    defaults: Mapping[str, float] | None = None,
    prepare: Prepare = set_attributes,
) -> OwnDomain:
    """A domain of a gymnasium environment.

    `make` gives a new copy of it; without gymnasium's wrappers (`.unwrapped`) it is faster. The teacher sets the
    parameters that `bounds` names, each between its two numbers; `seeded`, it also chooses the seed that an episode is
    reset with. Before each episode, `prepare` is given the environment and the parameters, which are attributes of it
    unless it does something else with them; then `defaults` says what they are by themselves. All else is as for
    `tutelage.interop.gymnax.domain`.
    """
    one = make()
    actions, observation = actions_of(one.action_space), plain(one.reset(seed=0)[0])
    known = {n: float(getattr(one, n)) for n in bounds if hasattr(one, n)} | {**(defaults or {})}
    if unknown := [n for n in bounds if n not in known]:
        raise UserError(
            f"{type(one).__name__} has no attribute {unknown[0]!r}: say in `defaults` what it is by itself."
        )
    space = Parameters(parameters_of(bounds, known), generator, step, seeded)
    nothing = jax.tree.map(np.zeros_like, observation)
    env = GymnasiumEnv(make, tuple(bounds), actions, nothing, max_steps, seeded, solved_above, prepare)
    return domain_of(name, env, space, solved_above)


def stretched(space: Any, action: Any) -> Any:
    """A student's action as the space has it."""
    if hasattr(space, "n"):
        return int(action) + int(getattr(space, "start", 0))
    share = (np.clip(action, -1.0, 1.0).reshape(space.shape) + 1) / 2
    return (space.low + share * (space.high - space.low)).astype(space.dtype)


def plain(obs: Any) -> Obs:
    """An observation in numbers that JAX has."""
    if isinstance(obs, Mapping):
        return {name: plain(part) for name, part in obs.items()}
    if isinstance(obs, tuple):
        return tuple(plain(part) for part in obs)
    array = np.asarray(obs)
    small = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32, np.dtype(np.uint64): np.uint32}
    return array.astype(small.get(array.dtype, array.dtype))
