"""Lava grids in the real MiniHack: NetHack's own engine behind the env's interface.

`Lava` agrees with it step for step in position, glyphs, status line, reward and end. What needed a decision:

- The hero. NetHack rolls the rogue's attributes anew for each game, and they show in the status line. Here every game
  has the seed 0, and with it the rogue of `env.BLSTATS`; or, if the hero is drawn, a seed of its own.
- The crop. MiniHack's has the student in its middle; one that is off-centre is MiniHack's around a tile beside it.
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
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Array, Bool, Float, Int32, Key

from tutelage.env import Timestep
from tutelage.envs.grid import FLOOR, GOAL, START
from tutelage.envs.hosted import HostedEnv, seen
from tutelage.envs.lava.env import BEFORE, CROP, LEFT, TOP, Crop, Hero, Lava, LavaObs, Penalty
from tutelage.envs.lava.level import SIDE, LavaLevel, level_to_rows
from tutelage.errors import UserError

PENALTY_MODES = {"frozen": "constant", "every-step": "always"}  # MiniHack's names
THE_HERO = 0  # the seed of games whose hero is not drawn

Rows = tuple[str, ...]

NOTHING = LavaObs(
    np.zeros((SIDE, SIDE), np.int16),  # pyright: ignore[reportArgumentType]
    np.zeros((CROP, CROP), np.int16),  # pyright: ignore[reportArgumentType]
    np.zeros(27, np.int32),  # pyright: ignore[reportArgumentType]
)


class Opening(NamedTuple):
    """How a game begins."""

    level: LavaLevel
    seed: Int32[Array, ""]


@dataclass(frozen=True)
class RealLava(HostedEnv):
    """`Lava`, played by MiniHack on the host. An engine takes about 4 MB and two open files."""

    max_steps: int = 100
    penalty: Penalty = "frozen"
    crop: Crop = "centred"
    hero: Hero = "fixed"

    actions = Lava.actions
    nothing = NOTHING

    def __post_init__(self) -> None:
        self._rules()
        minihack()  # or say now that it is missing

    def _rules(self) -> Lava:
        return Lava(self.max_steps, self.penalty, self.crop, self.hero)

    def opening(self, key: Key[Array, ""], level: LavaLevel) -> Opening:
        """The level, and the seed that NetHack rolls the hero by."""
        seed = THE_HERO if self.hero == "fixed" else random.randint(key, (), 0, np.iinfo(np.int32).max)
        return Opening(level, jnp.asarray(seed, jnp.int32))

    def new_engine(self, opening: Opening) -> Any:
        """A NetHack engine."""
        mode = PENALTY_MODES[self.penalty]
        settings = {"max_episode_steps": self.max_steps, "penalty_mode": mode}
        return minihack()(opening.level, BEFORE[self.crop] - BEFORE["centred"], **settings)

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """Whether the goal was reached."""
        return self._rules().solved(episode_return)


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

        def __init__(self, level: LavaLevel, aside: int, **settings: Any) -> None:
            self.rows, self.aside = tuple(level_to_rows(level)), aside
            keys = ("glyphs", "blstats")
            super().__init__(des_file=des_file(self.rows), observation_keys=keys, fix_moon_phase=True, **settings)

        def begin(self, opening: Opening) -> Timestep:
            """A new game on a level, which is loaded if the one before was on another."""
            rows, seed = tuple(level_to_rows(opening.level)), int(opening.seed)
            if rows != self.rows:
                self.update(des_file(rows))
                self.rows = rows
            self.seed(seed, seed, reseed=False)
            self.shown = {key: value.copy() for key, value in self.reset()[0].items()}
            return self._seen()

        def act(self, action: Any) -> Timestep:
            """One step."""
            _, reward, _, _, info = self.step(int(action))
            status = info["end_status"]
            cut_off = status == self.StepStatus.ABORTED
            return self._seen(reward, status != self.StepStatus.RUNNING and not cut_off, cut_off)

        def _seen(self, *outcome: Any) -> Timestep:
            glyphs, blstats = (self.shown[key] for key in ("glyphs", "blstats"))
            room = glyphs[TOP : TOP + SIDE, LEFT : LEFT + SIDE]
            crop = self._crop_observation(glyphs, blstats[:2] - self.aside)
            obs = LavaObs(np.int16(room), np.int16(crop), np.int32(blstats))  # pyright: ignore[reportArgumentType]
            return seen(obs, *outcome)

        def _perform_known_steps(self, observation: Any, done: bool, exceptions: bool = True) -> Any:
            # Called after every action, before MiniHack answers what a finished game asks and its screen goes blank.
            indices = {"glyphs": self._glyph_index, "blstats": self._blstats_index}
            self.shown = {key: observation[index].copy() for key, index in indices.items()}
            return super()._perform_known_steps(observation, done, exceptions)

    return Engine
