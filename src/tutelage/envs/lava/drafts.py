"""Lava grids in the making: the maze's procedures with lava for walls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Bool, Int, Key

from tutelage.env import Discrete
from tutelage.envs.grid import LAVA_CODE, EditDraft, OnGrid, Plan, edit_tile, empty_plan, place, place_both, put
from tutelage.envs.lava.level import SIDE, TILES, LavaLevel, make_level

NOTHING, LAVA = 0, 1

Draft = tuple[Plan, Bool[Array, " placements"]]  # and which placements may be lava


class InRoom(OnGrid):
    """The room and the stone around it."""

    height = width = SIDE
    block_code = LAVA_CODE


@dataclass(frozen=True)
class LavaDesigning(InRoom):
    """So many placements, then the goal, then the start, a tile a step.

    Where the teacher has the `choice`, action = 49·object + tile, and a placement may be of nothing; otherwise an
    action is a tile, and chance says which placements count.
    """

    steps: int
    choice: bool
    draw_lava: Callable[[Key[Array, ""]], Bool[Array, " placements"]]
    """Which placements are lava where the teacher has no choice."""

    @property
    def actions(self) -> Discrete:
        """A tile, and what to put there where there is a choice."""
        return Discrete(TILES * (2 if self.choice else 1))

    def begin(self, key: Key[Array, ""], level: None) -> Draft:
        """An empty room."""
        placements = self.steps - 2
        return empty_plan(TILES), jnp.ones(placements, bool) if self.choice else self.draw_lava(key)

    def act(self, draft: Draft, step: Int[Array, ""], action: Int[Array, ""]) -> Draft:
        """Sets the chosen tile."""
        plan, counts = draft
        placements = self.steps - 2
        lava = jnp.any(counts & (jnp.arange(placements) == step))
        if self.choice:
            lava &= action // TILES == LAVA
        return put(plan, action % TILES, lava, step == placements, step == placements + 1), counts

    def finish(self, key: Key[Array, ""], draft: Draft) -> LavaLevel:
        """A start that was chosen on the goal goes to a random free tile."""
        plan, _ = draft
        lava, agent = place(key, plan.blocks, plan.agent, plan.goal)
        return make_level(lava.reshape(SIDE, SIDE), agent, plan.goal)


@dataclass(frozen=True)
class LavaEditing(InRoom):
    """`steps` edits of a room, each putting nothing or lava on a tile: action = 49·object + tile."""

    steps: int

    actions = Discrete(2 * TILES)
    """What to put, and on which tile."""

    def begin(self, key: Key[Array, ""], level: LavaLevel) -> EditDraft:
        """The parent."""
        return EditDraft(Plan(level.lava.reshape(-1), level.goal, level.agent), jnp.zeros(TILES, bool))

    def act(self, draft: EditDraft, step: Int[Array, ""], action: Int[Array, ""]) -> EditDraft:
        """One edit."""
        no = jnp.bool_(False)
        return edit_tile(draft, action % TILES, action // TILES == LAVA, no, no)

    def finish(self, key: Key[Array, ""], draft: EditDraft) -> LavaLevel:
        """A goal or start left without a tile goes to a random free one."""
        key_goal, key_agent = random.split(key)
        lava, goal, agent = place_both(key_goal, key_agent, draft.plan)
        return make_level(lava.reshape(SIDE, SIDE), agent, goal)
