"""PAIRED: a teacher that wants one student to do better than another on its levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Trial
from tutelage.curricula.state import State
from tutelage.curricula.teacher import Cast, Taught, max_return
from tutelage.student.learning import Learner
from tutelage.student.rollout import Episodes, mean_return


class Rivals(Cast):
    """The teacher, and the student that it roots for."""

    antagonist: Learner


@dataclass(frozen=True)
class PAIRED(Taught):
    """Protagonist antagonist induced regret environment design (Dennis et al. 2020).

    Protagonist (the student that is evaluated) and antagonist play the same levels and both learn; the teacher gains
    their regret.
    """

    gain: ClassVar[str] = "teacher/regret"

    flexible: bool = False
    """On each level, whichever of the two has the better best episode counts as the antagonist."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The teacher's regret and entropy, and the antagonist's return."""
        return (*super().notes, "antagonist/return")

    def cast(self, room: Classroom, key: Key[Array, ""]) -> Rivals:
        """A teacher and an antagonist."""
        key_teacher, key_antagonist = jax.random.split(key)
        antagonist = room.learning.begin(key_antagonist, room.new_student(key_antagonist))
        return Rivals(super().cast(room, key_teacher).teacher, antagonist)

    def cycle(self, room: Classroom, s: State) -> State:
        """The teacher designs, both students play and learn, the teacher learns from their regret."""
        s, work = self.design(room, s.next_cycle())

        def attend(s: State) -> tuple[State, Trial]:
            s, trial = self.play(room, s, work.levels, "explore")
            return self.learn(room, s, trial), trial

        s, protagonist = attend(s)
        s, antagonist = self.as_antagonist(s, attend)
        s = self.offer(s, work.levels, protagonist, "explore")
        return self.reward(s, work.rollout, self.regret(protagonist.episodes, antagonist.episodes))

    def as_antagonist(self, s: State, act: Callable[[State], tuple[State, Trial]]) -> tuple[State, Trial]:
        """Lets the antagonist act in the student's place. Its rollouts and updates are not counted."""
        its, trial = act(self.enter(s))
        ended = trial.episodes.ended
        total = jnp.where(ended, trial.episodes.returns, 0.0).sum()
        s = s.note({"antagonist/return": (total, ended.sum(dtype=jnp.float32))})
        return self.leave(s, its), trial

    def enter(self, s: State) -> State:
        """The state with the antagonist for the student."""
        return replace(s, learner=s.own.antagonist, log=None)

    def leave(self, s: State, its: State) -> State:
        """The state with the student again, and an antagonist that has acted."""
        return replace(s, key=its.key, own=replace(s.own, antagonist=its.learner))

    def regret(self, protagonist: Episodes, antagonist: Episodes) -> Float[Array, " P"]:
        """max(0, the antagonist's best return − the protagonist's mean return) on each level."""
        best, other = max_return(antagonist), mean_return(protagonist)
        if self.flexible:
            swap = max_return(protagonist) >= best
            best = jnp.where(swap, max_return(protagonist), best)
            other = jnp.where(swap, mean_return(antagonist), other)
        return jnp.maximum(best - other, 0.0)
