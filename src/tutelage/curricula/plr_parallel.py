"""PLR‖: new and replayed levels in one batched rollout, the student learning from the replayed ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Int

from tutelage.curricula import buffer as buffers
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated, explore_or_replay
from tutelage.curricula.state import State
from tutelage.env import Level


@dataclass(frozen=True)
class ParallelPLR(Curated):
    """PLR‖ (Jiang et al. 2023): robust PLR with one rollout of 2P slots, P of new and P of replayed levels.

    Where robust PLR either explores or replays, this does both at once: every rollout is followed by a student update.
    A cycle that may not replay yet puts new levels into all slots and teaches nothing.
    """

    after_episode: Literal["repeat"] = "repeat"
    """A slot plays its level for the whole rollout."""

    groups = 2
    """Groups of P slots in a rollout."""

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """One for each group, in a cycle that may not replay."""
        return cycles * self.groups

    def cycle(self, room: Classroom, s: State) -> State:
        """All new levels, or new and replayed ones and an update on the latter."""
        return explore_or_replay(self, room, s)

    def explore(self, room: Classroom, s: State) -> State:
        """Score new levels in all slots and keep those of high regret."""
        s, key = s.next_key()
        levels = self.generate(room, key, self.groups * room.slots)
        s, trial = self.play(room, s, levels, "explore")
        return self.offer(s, levels, trial, "explore")

    def replay(self, room: Classroom, s: State) -> State:
        """Roll out on replayed and new levels at once, score all, learn from the replayed ones."""
        s, drawn, replayed = self.draw(room, s)
        s, key = s.next_key()
        new = self.generate(room, key)
        s, trial = self.play_together(room, s, {"replay": replayed, "explore": new}, self.known_returns(room, s, drawn))
        s = self.renew(s, drawn, trial.part(0, room.slots).first_marks)
        s = self.offer(s, new, trial.part(room.slots, room.slots), "explore")
        return self.learn(room, s, trial.part(0, room.slots))

    def draw(self, room: Classroom, s: State) -> tuple[State, Int[Array, " P"], Level]:
        """P slots of the buffer, and the levels in them."""
        s, key = s.next_key()
        drawn, buffer = buffers.sample(key, s.buffer, self.buffer, room.slots)
        return replace(s, buffer=buffer), drawn, buffer.record.at(drawn).level

    def known_returns(self, room: Classroom, s: State, drawn: Int[Array, " P"]) -> Array:
        """The best return on each level of a rollout so far, the replayed ones first; nothing is known of the rest."""
        return jnp.full(self.groups * room.slots, -jnp.inf).at[: room.slots].set(s.buffer.best_return[drawn])
