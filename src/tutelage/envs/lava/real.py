"""The same lava grids in the real MiniHack: NetHack's own engine behind the env's interface.

`Lava` agrees with it step for step in position, glyphs, status line, reward and end. What needed a decision:

- The hero. NetHack rolls the rogue's attributes anew for each game, and they show in the status line. Here every game
  has the seed 0, and with it the rogue of `env.BLSTATS`.
- The last observation. MiniHack leaves the game before it returns it, so that its screen is blank. Here it is what
  NetHack showed before the game was left: for a student that burnt, itself on the lava. One number of it may differ
  from `Lava`'s: NetHack redraws the status line of a dying hero only in the first turn of a game, and then it says
  0 hit points. Nobody acts on this observation.
- The time limit. MiniHack reports a game it has cut off as terminated. Here that is what it is, truncated.

And what may surprise, but is the same in both: a goal reached at the very last step pays nothing, as MiniHack looks at
the time limit first; a step into stone takes no game time; the turn in which the student dies is never completed.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32, Key

from tutelage.env import Discrete, Timestep
from tutelage.envs.lava.env import CROP, LEFT, MAP_HEIGHT, MAP_WIDTH, TOP, Lava, LavaObs, Penalty
from tutelage.envs.lava.level import FLOOR, GOAL, SIDE, START, LavaLevel, level_to_rows
from tutelage.errors import UserError

PENALTY_MODES = {"frozen": "constant", "every-step": "always"}  # MiniHack's names
HERO = 0

Rows = tuple[str, ...]


class Moment(NamedTuple):
    """What NetHack shows, on its whole map, and what MiniHack says of the step that led here."""

    glyphs: Int[np.ndarray, "21 79"]
    crop: Int[np.ndarray, "9 9"]
    blstats: Int[np.ndarray, "27"]
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.terminated or self.truncated

    def timestep(self) -> Timestep:
        """The student's part of it."""
        room = self.glyphs[TOP : TOP + SIDE, LEFT : LEFT + SIDE]
        obs = LavaObs(np.int16(room), np.int16(self.crop), np.int32(self.blstats))  # pyright: ignore[reportArgumentType]
        return Timestep(obs, np.float32(self.reward), np.bool_(self.terminated), np.bool_(self.truncated))  # pyright: ignore[reportArgumentType]


NOTHING = Moment(np.zeros((MAP_HEIGHT, MAP_WIDTH), int), np.zeros((CROP, CROP), int), np.zeros(27, int))


class RealState(NamedTuple):
    """A game is determined by its level and the actions so far: NetHack with a given seed is deterministic."""

    level: LavaLevel
    actions: Int32[Array, " max_steps"]
    time: Int32[Array, ""]
    over: Bool[Array, ""]


@dataclass(frozen=True)
class RealLava:
    """`Lava`, played by MiniHack on the host. As an env it is a pure function too, so that it can stand in for it.

    Every episode under way holds an engine, of about 4 MB and two open files.
    """

    max_steps: int = 100
    penalty: Penalty = "frozen"

    def __post_init__(self) -> None:
        self._rules()
        minihack()  # or say now that it is missing

    def _rules(self) -> Lava:
        return Lava(self.max_steps, self.penalty)

    @property
    def actions(self) -> Discrete:
        """MiniHack's eight compass moves."""
        return self._rules().actions

    def reset(self, key: Key[Array, ""], level: LavaLevel) -> tuple[RealState, LavaObs]:
        """A new game on the level. The key is not used."""
        time = jnp.zeros_like(level.agent)
        state = RealState(level, jnp.zeros(self.max_steps, jnp.int32), time, jnp.zeros_like(time, bool))
        return state, self._look(state).obs

    def step(self, key: Key[Array, ""], state: RealState, action: Int[Array, ""]) -> tuple[RealState, Timestep]:
        """One action in MiniHack. The key is not used; after the end nothing happens any more."""
        actions = state.actions.at[state.time].set(action, mode="drop")
        state = state._replace(actions=actions, time=state.time + 1)
        after = self._look(state)
        return state._replace(over=state.over | after.done), after

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """Whether the goal was reached."""
        return self._rules().solved(episode_return)

    def _look(self, state: RealState) -> Timestep:
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), NOTHING.timestep())
        return jax.pure_callback(self._look_on_host, shapes, state, vmap_method="broadcast_all")

    def _look_on_host(self, states: RealState) -> Timestep:
        states = jax.tree.map(np.asarray, states)
        shape = states.time.shape
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[len(shape) :]), states)
        games = [jax.tree.map(lambda x, i=i: x[i], flat) for i in range(flat.time.size)]
        engines = _engines(self.max_steps, self.penalty)
        seen = [(NOTHING if game.over else engines.moment(*_history(game))).timestep() for game in games]
        return jax.tree.map(lambda *x: np.stack(x).reshape(shape + x[0].shape), *seen)


def _history(game: RealState) -> tuple[Rows, tuple[int, ...]]:
    return tuple(level_to_rows(game.level)), tuple(game.actions[: game.time].tolist())


class Engines:
    """NetHack engines at work, each waiting at some point of some game for the next action."""

    def __init__(self, max_steps: int, penalty: Penalty) -> None:
        self.settings = dict(max_episode_steps=max_steps, penalty_mode=PENALTY_MODES[penalty])
        self.waiting: dict[tuple[Rows, tuple[int, ...]], list[Any]] = defaultdict(list)
        self.idle: list[Any] = []

    def moment(self, rows: Rows, actions: tuple[int, ...]) -> Moment:
        """What the game on a level comes to after some actions: of an engine that is one action short, or a new one."""
        if not actions:
            engine = self._take(rows)
            moment = engine.begin()
        else:
            engine = self._at(rows, actions[:-1])
            moment = engine.act(actions[-1])
        (self.idle if moment.over else self.waiting[rows, actions]).append(engine)
        return moment

    def _at(self, rows: Rows, actions: tuple[int, ...]) -> Any:
        """An engine at this point of the game, brought there by playing it again if none is waiting."""
        if not self.waiting.get((rows, actions)):
            self.moment(rows, actions)
        engines = self.waiting[rows, actions]
        engine = engines.pop()
        if not engines:
            del self.waiting[rows, actions]
        return engine

    def _take(self, rows: Rows) -> Any:
        """An engine with the level loaded: an idle one, best one that has it already, or another."""
        if not self.idle:
            return minihack()(rows, **self.settings)
        same = [i for i, engine in enumerate(self.idle) if engine.rows == rows]
        engine = self.idle.pop(same[0] if same else -1)
        engine.load(rows)
        return engine


_engines = lru_cache(Engines)


def des_file(rows: Rows) -> str:
    """The level in NetHack's language: a lit room in stone, all of it known from the start."""
    from minihack import LevelGenerator  # pyright: ignore[reportMissingImports]

    text = "\n".join(rows)
    where = {mark: divmod(text.replace("\n", "").index(mark), SIDE)[::-1] for mark in (START, GOAL)}
    room = text.replace(START, FLOOR).replace(GOAL, FLOOR)  # `.` and `L` are NetHack's own marks
    level = LevelGenerator(map=room, lit=True, flags=("hardfloor", "premapped"))
    level.set_start_pos(where[START])
    level.add_stair_down(where[GOAL])
    return level.get_des()


@lru_cache
def minihack() -> Any:
    """MiniHack's navigation task as a class of engines; a `UserError` if MiniHack is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MiniHack imports what setuptools has deprecated
            from minihack import MiniHackNavigation  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(f"This needs MiniHack ({error}): pip install 'tutelage[real]'") from error

    class Engine(MiniHackNavigation):
        """One NetHack process image, for one game at a time."""

        def __init__(self, rows: Rows, **settings: Any) -> None:
            keys = ("glyphs", "blstats")
            super().__init__(des_file=des_file(rows), observation_keys=keys, fix_moon_phase=True, **settings)
            self.rows = rows

        def load(self, rows: Rows) -> None:
            """Replaces the level."""
            if rows != self.rows:
                self.update(des_file(rows))
                self.rows = rows

        def begin(self) -> Moment:
            """A new game."""
            self.seed(HERO, HERO, reseed=False)
            self.shown = self.reset()[0]
            return self._moment()

        def act(self, action: int) -> Moment:
            """One step."""
            _, reward, _, _, info = self.step(action)
            status = info["end_status"]
            cut_off = status == self.StepStatus.ABORTED
            return self._moment(reward, status != self.StepStatus.RUNNING and not cut_off, cut_off)

        def _moment(self, *outcome: Any) -> Moment:
            glyphs, blstats = (np.array(self.shown[key]) for key in ("glyphs", "blstats"))
            return Moment(glyphs, self._crop_observation(glyphs, blstats[:2]), blstats, *outcome)

        def _perform_known_steps(self, observation: Any, done: bool, exceptions: bool = True) -> Any:
            # Called after every action, before MiniHack answers what a finished game asks and its screen goes blank.
            indices = {"glyphs": self._glyph_index, "blstats": self._blstats_index}
            self.shown = {key: observation[index].copy() for key, index in indices.items()}
            return super()._perform_known_steps(observation, done, exceptions)

    return Engine
