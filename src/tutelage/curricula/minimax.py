"""Minimax: a teacher that wants the student to fail."""

from __future__ import annotations

from dataclasses import dataclass

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.state import State
from tutelage.curricula.teacher import Taught, max_return


@dataclass(frozen=True)
class Minimax(Taught):
    """Minimax adversary (Dennis et al. 2020): the teacher gains what the student's best episode on a level loses."""

    def cycle(self, room: Classroom, s: State) -> State:
        """The teacher designs, the student plays and learns, the teacher learns from the student's return."""
        s, work = self.design(room, s.next_cycle())
        s, trial = self.play(room, s, work.levels, "explore")
        s = self.learn(room, s, trial)
        s = self.offer(s, work.levels, trial, "explore")
        return self.reward(s, work.rollout, -max_return(trial.episodes))
