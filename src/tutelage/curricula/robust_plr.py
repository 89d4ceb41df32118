"""Robust prioritised level replay: the student learns from replayed levels only."""

from __future__ import annotations

from dataclasses import dataclass

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated, explore_or_replay
from tutelage.curricula.state import State


@dataclass(frozen=True)
class RobustPLR(Curated):
    """Robust PLR, PLR⊥ (Jiang et al. 2021b): new levels are only scored, never trained on. "PLR" in the ACCEL paper."""

    def cycle(self, room: Classroom, s: State) -> State:
        """Explore without learning, or replay and learn."""
        return explore_or_replay(self, room, s)

    def explore(self, room: Classroom, s: State) -> State:
        """Score new levels and keep those of high regret."""
        s, key = s.next_key()
        levels = self.generate(room, key)
        s, trial = self.play(room, s, levels, "explore")
        return self.offer(s, levels, trial, "explore")

    def replay(self, room: Classroom, s: State) -> State:
        """Roll out on levels of the buffer, renew their scores, learn."""
        s, trial, _ = self.play_buffer(room, s)
        return self.learn(room, s, trial)
