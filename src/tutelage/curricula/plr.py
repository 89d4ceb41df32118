"""Prioritised level replay, with gradients on new levels too."""

from __future__ import annotations

from dataclasses import dataclass

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated, explore_or_replay
from tutelage.curricula.state import State


@dataclass(frozen=True)
class PLR(Curated):
    """Prioritised level replay (Jiang et al. 2021a): the student learns from new and from replayed levels."""

    def cycle(self, room: Classroom, s: State) -> State:
        """Explore or replay; learn either way."""
        return explore_or_replay(self, room, s)

    def explore(self, room: Classroom, s: State) -> State:
        """Roll out on new levels, keep those of high regret, learn."""
        s, key = s.next_key()
        levels = self.generate(room, key)
        s, trial = self.play(room, s, levels, "explore")
        s = self.offer(s, levels, trial, "explore")
        return self.learn(room, s, trial)

    def replay(self, room: Classroom, s: State) -> State:
        """Roll out on levels of the buffer, renew their scores, learn."""
        s, trial, _ = self.play_buffer(room, s)
        return self.learn(room, s, trial)
