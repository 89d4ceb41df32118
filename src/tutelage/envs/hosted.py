"""Envs that engines play on the host, outside JAX, and that consist of pure functions all the same.

An episode is determined by how it opens and the actions so far: this is its state. Engines wait at some point of some
episode for the next action; where none is waiting, one plays the episode again from its opening.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, PyTree, Shaped

from tutelage.env import Action, Box, Discrete, Level, Obs, Timestep, bits_of


@runtime_checkable
class Engine(Protocol):
    """Plays one game at a time, and the same game whenever it opens the same way and sees the same actions."""

    def begin(self, opening: Any) -> Timestep:
        """A new game, in place of the one before; `seen` of its first observation."""
        ...

    def act(self, action: Any) -> Timestep:
        """What is `seen` after one more action."""
        ...


def seen(obs: Obs, reward: float = 0.0, terminated: bool = False, truncated: bool = False) -> Timestep:
    """A time step on the host: its leaves are NumPy's."""
    return Timestep(obs, np.float32(reward), np.bool_(terminated), np.bool_(truncated))  # pyright: ignore[reportArgumentType]


class Game(NamedTuple):
    """An episode's state."""

    opening: PyTree
    actions: Shaped[Array, "max_steps ..."]  # those that have not been taken yet are zero
    time: Int32[Array, ""]
    over: Bool[Array, ""]


class HostedEnv(ABC):
    """An env whose episodes are played by engines. Every episode under way holds one.

    A kind of env is a frozen dataclass of this class. It says what its engines are, how a game opens on a level, and
    what observations look like; the keys of an episode's steps are not used.
    """

    max_steps: int
    actions: Discrete | Box
    """What the engines understand."""
    nothing: Obs
    """An observation of zeros, in NumPy: what is seen once an episode is over."""

    @abstractmethod
    def new_engine(self, opening: Any) -> Engine:
        """Another engine, whose first game will open like this."""

    def opening(self, key: Key[Array, ""], level: Level) -> PyTree:
        """What an engine is given to begin a game on the level: arrays. They tell any two games apart."""
        return level

    def reset(self, key: Key[Array, ""], level: Level) -> tuple[Game, Obs]:
        """A new game on the level."""
        game = Game(self.opening(key, level), self._no_actions(), jnp.zeros((), jnp.int32), jnp.zeros((), bool))
        return game, self._look(game).obs

    def step(self, key: Key[Array, ""], state: Game, action: Action) -> tuple[Game, Timestep]:
        """One action of an engine; after the end nothing happens any more."""
        actions = state.actions.at[state.time].set(action, mode="drop")
        state = state._replace(actions=actions, time=state.time + 1)
        after = self._look(state)
        return state._replace(over=state.over | after.done), after

    def _no_actions(self) -> Shaped[Array, "max_steps ..."]:
        space = self.actions
        if isinstance(space, Discrete):
            return jnp.zeros(self.max_steps, jnp.int32)
        return jnp.zeros((self.max_steps, space.size), jnp.float32)

    def _look(self, game: Game) -> Timestep:
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), seen(self.nothing))
        return jax.pure_callback(self._look_on_host, shapes, game, vmap_method="broadcast_all")

    def _look_on_host(self, games: Game) -> Timestep:
        games = jax.tree.map(np.asarray, games)
        shape = games.time.shape
        flat = jax.tree.map(lambda x: x.reshape(games.time.size, *x.shape[len(shape) :]), games)
        engines, over = engines_of(self), seen(self.nothing)
        one_by_one = (jax.tree.map(lambda x, i=i: x[i], flat) for i in range(flat.time.size))
        after = [over if game.over else engines.play(game) for game in one_by_one]
        return jax.tree.map(lambda *x: np.stack(x).reshape(shape + x[0].shape), *after)


class Engines:
    """The engines of an env: some waiting at some point of some game for the next action, others idle."""

    def __init__(self, env: HostedEnv) -> None:
        self.env = env
        self.waiting: dict[tuple[bytes, bytes], list[Engine]] = defaultdict(list)  # by opening and actions
        self.idle: dict[bytes, list[Engine]] = defaultdict(list)  # by the opening of the last game

    def play(self, game: Game) -> Timestep:
        """What the game has come to: of an engine that is one action short of it."""
        opening, time = bits_of(game.opening), int(game.time)
        if time == 0:
            engine, after = self._begin(opening, game)
        else:
            engine = _take(self.waiting, (opening, bits_of(game.actions[: time - 1]))) or self._replay(opening, game)
            after = engine.act(game.actions[time - 1])
        if after.terminated or after.truncated:
            self.idle[opening].append(engine)
        else:
            self.waiting[opening, bits_of(game.actions[:time])].append(engine)
        return after

    def _begin(self, opening: bytes, game: Game) -> tuple[Engine, Timestep]:
        """Takes an idle engine, best one whose last game opened the same way and left it prepared; or a new one."""
        other = next(iter(self.idle), opening)
        engine = _take(self.idle, opening) or _take(self.idle, other) or self.env.new_engine(game.opening)
        return engine, engine.begin(game.opening)

    def _replay(self, opening: bytes, game: Game) -> Engine:
        """An engine that has played all but the last action."""
        engine, _ = self._begin(opening, game)
        for action in game.actions[: game.time - 1]:
            engine.act(action)
        return engine


engines_of = lru_cache(Engines)
"""The engines of an env, by value."""


def _take(engines: dict[Any, list[Engine]], where: Any) -> Engine | None:
    if where not in engines:
        return None
    engine = engines[where].pop()
    if not engines[where]:
        del engines[where]
    return engine
