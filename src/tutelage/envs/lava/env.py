"""The lava grid as the student meets it: what MiniHack shows, pays and ends, as pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Int16, Int32, Key

from tutelage.env import Discrete, Timestep
from tutelage.envs.lava.hero import roll, shown
from tutelage.envs.lava.level import SIDE, TILES, LavaLevel
from tutelage.envs.lava.paths import shortest_path
from tutelage.errors import check_choices

# The eight compass moves (dx, dy) in MiniHack's order: N, E, S, W, NE, SE, SW, NW.
MOVES = np.array([(0, -1), (1, 0), (0, 1), (-1, 0), (1, -1), (1, 1), (-1, 1), (-1, -1)], np.int32)

# NetHack's glyphs of what there is: a human rogue, solid stone, floor, stairs up and down, lava.
ROGUE, STONE, FLOOR, STAIRS_UP, STAIRS_DOWN, LAVA = 337, 2359, 2378, 2382, 2383, 2393
GLYPHS = np.array([ROGUE, STONE, FLOOR, STAIRS_UP, STAIRS_DOWN, LAVA], np.int16)

# NetHack's map and where the room is in it.
MAP_HEIGHT, MAP_WIDTH, TOP, LEFT = 21, 79, 7, 36
CROP = 9
BEFORE = {"centred": 4, "off-centre": 5}  # tiles of the crop to the left of the student and above it

# NetHack's status line of the rogue that the seed 0 rolls: x, y, strength (twice), dexterity, constitution,
# intelligence, wisdom, charisma, score, hit points (now, at most), depth, gold, energy (now, at most), armour class,
# monster level, experience level, experience points, turn, hunger, load, dungeon, level, condition, alignment. All but
# x, y and turn stay as they are for as long as an episode may last. Another seed rolls other attributes: strength to
# charisma.
BLSTATS = np.array([0, 0, 14, 14, 18, 14, 11, 11, 8, 0, 12, 12, 1, 0, 2, 2, 7, 0, 1, 0, 0, 1, 0, 0, 1, 0, -1], np.int32)
X, Y, TURN = 0, 1, 20
HERO = slice(2, 9)

GOAL_REWARD, PENALTY = 1.0, 0.01
LONGEST = 100

Penalty = Literal["frozen", "every-step"]
Crop = Literal["centred", "off-centre"]
Hero = Literal["fixed", "drawn"]


class LavaState(NamedTuple):
    """One moment of an episode."""

    lava: Bool[Array, "7 7"]
    start: Int32[Array, ""]
    goal: Int32[Array, ""]
    x: Int32[Array, ""]
    y: Int32[Array, ""]
    turn: Int32[Array, ""]  # of the game; it stands still when the student walks into stone
    time: Int32[Array, ""]  # steps taken
    hero: Int32[Array, "7"]  # attributes, as the status line shows them


class LavaObs(NamedTuple):
    """What NetHack shows of the room: glyphs of its tiles, of the tiles around the student, and the status line.

    Everything else on NetHack's map is solid stone throughout and left out (see `full_map`).
    """

    glyphs: Int16[Array, "7 7"]
    crop: Int16[Array, "9 9"]
    blstats: Int32[Array, "27"]


@dataclass(frozen=True)
class Lava:
    """Reach the stairs down without stepping on lava. The goal pays 1; lava pays nothing and ends the episode.

    Under the penalty `frozen` a step costs 0.01 if the game's time stands still, which is when the student walks into
    stone: MiniHack's rule. Under `every-step` each step costs 0.01, as the ACCEL paper writes. As in MiniHack the time
    limit comes first: a goal reached at the last step pays nothing.

    The crop of the map has the student in its middle, as MiniHack's own; or, `off-centre`, it reaches from five tiles
    to its left and above to three to its right and below, as in the network of the NetHack Learning Environment. The
    hero has the same attributes in every game, or has them `drawn` anew, as NetHack does it without a seed.
    """

    max_steps: int = LONGEST
    penalty: Penalty = "frozen"
    crop: Crop = "centred"
    hero: Hero = "fixed"

    actions = Discrete(len(MOVES))
    """A step to one of the eight neighbouring tiles."""

    def __post_init__(self) -> None:
        # With more steps, penalties could use up what the goal pays, and a return would not tell who reached it.
        if not 2 <= self.max_steps <= LONGEST:
            raise ValueError(f"`max_steps` must be 2 to {LONGEST}, not {self.max_steps}.")
        check_choices(self, penalty=Penalty, crop=Crop, hero=Hero)

    def reset(self, key: Key[Array, ""], level: LavaLevel) -> tuple[LavaState, LavaObs]:
        """Puts the student on the level's start tile, which are the stairs up. The key is for the hero."""
        x, y = level.agent % SIDE, level.agent // SIDE
        hero = jnp.asarray(BLSTATS[HERO]) if self.hero == "fixed" else shown(roll(key))
        state = LavaState(level.lava, level.agent, level.goal, x, y, jnp.ones_like(x), jnp.zeros_like(x), hero)
        return state, self.observe(state)

    def step(self, key: Key[Array, ""], state: LavaState, action: Int[Array, ""]) -> tuple[LavaState, Timestep]:
        """Moves unless stone is in the way. Deterministic: the key is not used."""
        dx, dy = jnp.asarray(MOVES)[action]
        x, y = state.x + dx, state.y + dy
        free = (x >= 0) & (x < SIDE) & (y >= 0) & (y < SIDE)
        x, y, time = jnp.where(free, x, state.x), jnp.where(free, y, state.y), state.time + 1
        late = time >= self.max_steps
        burnt, arrived = state.lava[y, x], (y * SIDE + x == state.goal) & ~late
        state = state._replace(x=x, y=y, time=time, turn=state.turn + (free & ~burnt))  # death cuts its turn short
        costs = PENALTY * (~free if self.penalty == "frozen" else jnp.ones_like(free))
        reward = GOAL_REWARD * arrived - costs
        terminated = burnt | arrived
        return state, Timestep(self.observe(state), reward, terminated, late & ~terminated)

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """Whether the goal was reached: if so the return is at least 1 − 0.01·99, if not at most 0."""
        return episode_return > PENALTY / 2

    def exports(self) -> Mapping[str, tuple[Literal["level", "state"], Callable[[Any], Any]]]:
        """A shortest path."""
        return {"path": ("level", shortest_path)}

    def observe(self, state: LavaState) -> LavaObs:
        """The room, its surroundings as far as the crop reaches, and the status line."""
        glyphs = room_glyphs(state)
        before = BEFORE[self.crop]
        around = jnp.pad(glyphs, (before, CROP - 1 - before), constant_values=STONE)
        crop = lax.dynamic_slice(around, (state.y, state.x), (CROP, CROP))
        return LavaObs(glyphs, crop, status_line(state))


def room_glyphs(state: LavaState) -> Int16[Array, "7 7"]:
    """The room's tiles: lava or floor, on it the stairs, on them the student."""
    loc = jnp.arange(TILES).reshape(SIDE, SIDE)
    glyphs = jnp.where(state.lava, LAVA, FLOOR)
    glyphs = jnp.where(loc == state.start, STAIRS_UP, glyphs)
    glyphs = jnp.where(loc == state.goal, STAIRS_DOWN, glyphs)
    return jnp.where(loc == state.y * SIDE + state.x, ROGUE, glyphs).astype(jnp.int16)


def status_line(state: LavaState) -> Int32[Array, "27"]:
    """NetHack's `blstats`: where the student is on NetHack's map, the hero's attributes, the turn, and constants."""
    index = np.arange(BLSTATS.size)
    stats = jnp.where(index == X, LEFT + state.x, jnp.asarray(BLSTATS).at[HERO].set(state.hero))
    stats = jnp.where(index == Y, TOP + state.y, stats)
    return jnp.where(index == TURN, state.turn, stats)


def full_map(glyphs: Int16[Array, "7 7"]) -> Int16[Array, "21 79"]:
    """NetHack's whole map: the room in solid stone."""
    below, right = MAP_HEIGHT - TOP - SIDE, MAP_WIDTH - LEFT - SIDE
    return jnp.pad(glyphs, ((TOP, below), (LEFT, right)), constant_values=STONE)
