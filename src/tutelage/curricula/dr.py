"""Domain randomisation: train on whatever the generator makes."""

from __future__ import annotations

from dataclasses import dataclass

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated
from tutelage.curricula.state import State


@dataclass(frozen=True)
class DR(Curated):
    """Domain randomisation (Tobin et al. 2017), as the paper runs it: each new level is repeated for a whole rollout.

    The buffer only keeps the levels of highest score for you to look at; nothing is replayed from it.
    """

    def cycle(self, room: Classroom, s: State) -> State:
        """Generate levels, roll out, learn."""
        s, key = s.next_cycle().next_key()
        levels = self.generate(room, key)
        s, trial = self.play(room, s, levels, "explore")
        s = self.learn(room, s, trial)
        return self.offer(s, levels, trial, "explore")
