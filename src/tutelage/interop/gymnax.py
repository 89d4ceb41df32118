"""Any environment with gymnax's interface as a domain: its parameters are what the teacher designs.

    import gymnax
    from tutelage.interop.gymnax import domain

    game, _ = gymnax.make("CartPole-v1")
    cartpole = domain("cartpole", game, {"gravity": (2, 30), "force_mag": (4, 20)}, max_steps=200, solved_above=195)

What it calls is `default_params`, `reset_env`, `step_env` and `action_space`, of any version of gymnax, or of an
environment of one's own that has these; gymnax itself is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Bool, Float, Int32, Key, PyTree

from tutelage.env import Action, Box, Discrete, Obs, Timestep
from tutelage.envs.own import OwnDomain
from tutelage.errors import UserError
from tutelage.interop.parameters import Generator, ParameterLevel, Parameters, actions_of, domain_of, parameters_of

NEVER = 2**30  # a limit of steps that no episode reaches

Derive = Callable[[Any], Any]


@runtime_checkable
class Game(Protocol):
    """What is asked of an environment."""

    @property
    def default_params(self) -> Any: ...

    def reset_env(self, key: Key[Array, ""], params: Any) -> tuple[Obs, PyTree]: ...

    def step_env(
        self, key: Key[Array, ""], state: PyTree, action: Any, params: Any
    ) -> tuple[Obs, PyTree, Array, Array, Any]: ...

    def action_space(self, params: Any) -> Any: ...


class GymnaxState(NamedTuple):
    """An episode's state: the environment's own, the parameters it is played with, and the steps taken."""

    own: PyTree
    level: ParameterLevel
    time: Int32[Array, ""]


@dataclass(frozen=True, eq=False)
class GymnaxEnv:
    """The student's side. Time runs out here, after `max_steps`, and never in the environment itself."""

    game: Game
    names: tuple[str, ...]
    """The parameters that levels set."""
    actions: Discrete | Box
    max_steps: int
    seeded: bool = False
    solved_above: float | None = None
    derive: Derive = field(default=lambda params: params)

    def params(self, level: ParameterLevel) -> Any:
        """The environment's parameters on a level."""
        changes = dict(zip(self.names, level.values, strict=True))
        default = self.game.default_params
        limit = {"max_steps_in_episode": NEVER} if hasattr(default, "max_steps_in_episode") else {}
        return self.derive(default.replace(**changes, **limit))

    def reset(self, key: Key[Array, ""], level: ParameterLevel) -> tuple[GymnaxState, Obs]:
        """Begins an episode: by chance, or as the level's seed says."""
        key = random.key(level.seed) if self.seeded else key
        obs, own = self.game.reset_env(key, self.params(level))
        return GymnaxState(own, level, jnp.zeros((), jnp.int32)), obs

    def step(self, key: Key[Array, ""], state: GymnaxState, action: Action) -> tuple[GymnaxState, Timestep]:
        """One step."""
        params, time = self.params(state.level), state.time + 1
        obs, own, reward, terminated, *_ = self.game.step_env(key, state.own, self._stretched(action), params)
        after = Timestep(obs, jnp.asarray(reward, jnp.float32), jnp.asarray(terminated, bool), time >= self.max_steps)
        return GymnaxState(_like(own, state.own), state.level, time), after

    def _stretched(self, action: Action) -> Any:
        if isinstance(self.actions, Discrete):
            return action
        space = self.game.action_space(self.game.default_params)
        share = (jnp.clip(action, -1.0, 1.0).reshape(space.shape) + 1) / 2
        return space.low + share * (space.high - space.low)

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """A return above the one that was named; never, if none was."""
        return jnp.zeros_like(episode_return, bool) if self.solved_above is None else episode_return > self.solved_above


def domain(
    name: str,
    game: Game,
    bounds: Mapping[str, tuple[float, float]],
    *,
    max_steps: int,
    solved_above: float | None = None,
    seeded: bool = False,
    generator: Generator = "default",
    step: float = 0.1,
    derive: Derive = lambda params: params,
) -> OwnDomain:
    """A domain of an environment with gymnax's interface.

    The teacher sets the parameters that `bounds` names, each between its two numbers; `seeded`, it also chooses the key
    that an episode begins with, which is the world of many games. New levels are the environment as it is published,
    or are drawn between the bounds (`generator="uniform"`), and an edit moves a parameter by up to `step` of its range.
    `derive` mends what follows from parameters that were set, such as a total mass. Students are compared by the share
    of episodes with a return above `solved_above`, or by their return if that is not given.
    """
    default = game.default_params
    if unknown := [name for name in bounds if not hasattr(default, name)]:
        raise UserError(f"{type(game).__name__} has no parameter {unknown[0]!r}.")
    space = Parameters(parameters_of(bounds, {n: getattr(default, n) for n in bounds}), generator, step, seeded)
    actions = actions_of(game.action_space(default))
    env = GymnaxEnv(game, tuple(bounds), actions, max_steps, seeded, solved_above, derive)
    return domain_of(name, env, space, solved_above)


def _like(tree: PyTree, before: PyTree) -> PyTree:
    """Arrays of the types that they have at the beginning of an episode, whatever a step makes of them."""
    return jax.tree.map(lambda x, b: jnp.asarray(x, jnp.asarray(b).dtype), tree, before)
