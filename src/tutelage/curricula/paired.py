"""PAIRED: a teacher that wants one student to do better than another on its levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Trial
from tutelage.curricula.state import State
from tutelage.curricula.teacher import Cast, Taught, max_return
from tutelage.student.distributions import Distribution
from tutelage.student.learning import Learner
from tutelage.student.ppo import PPO
from tutelage.student.rollout import Episodes, mean_return


class Rivals(Cast):
    """The teacher, and the student that it roots for; or several such, stacked."""

    antagonist: Learner


@dataclass(frozen=True)
class PAIRED(Taught):
    """Protagonist antagonist induced regret environment design (Dennis et al. 2020).

    Protagonist (the student that is evaluated) and antagonist play the same levels and both learn; the teacher gains
    their regret. With `ppo.imitation_coef`, each stays near what the other would do (Mediratta et al. 2023).
    """

    gain: ClassVar[str] = "teacher/regret"
    imitates: ClassVar[bool] = True

    flexible: bool = False
    """On each level, whichever of the two has the better best episode counts as the antagonist."""
    antagonists: int = 1
    """Antagonists. Of several, the best on a level counts; they all learn, and none imitates."""

    def __post_init__(self):
        if self.antagonists < 1:
            raise ValueError(f"`antagonists` must be at least 1, not {self.antagonists}.")
        if self.antagonists > 1 and self.flexible:
            raise ValueError("`flexible` is for two students: `antagonists` must be 1.")

    @property
    def notes(self) -> tuple[str, ...]:
        """The teacher's regret and entropy, and the antagonists' return."""
        return (*super().notes, "antagonist/return")

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student, a teacher and antagonists."""
        if self.antagonists > 1 and isinstance(room.learning, PPO) and room.learning.imitation_coef:
            raise ValueError("`ppo.imitation_coef` is for two students: `method.antagonists` must be 1.")
        return super().init(room, key)

    def cast(self, room: Classroom, key: Key[Array, ""]) -> Rivals:
        """A teacher and antagonists."""
        key_teacher, key_antagonist = jax.random.split(key)
        teacher = super().cast(room, key_teacher).teacher
        new = lambda key: room.learning.begin(key, room.new_student(key))  # noqa: E731
        if self.antagonists == 1:
            return Rivals(teacher, new(key_antagonist))
        return Rivals(teacher, jax.vmap(new)(jax.random.split(key_antagonist, self.antagonists)))

    def cycle(self, room: Classroom, s: State) -> State:
        """The teacher designs, all students play and learn, the teacher learns from their regret."""
        s, work = self.design(room, s.next_cycle())

        def attend(s: State, other: Learner) -> tuple[State, Trial]:
            s, trial = self.play(room, s, work.levels, "explore")
            trial = replace(trial, imitated=self.imitated(room, other, trial))
            return self.learn(room, s, trial), trial

        s, protagonist = attend(s, s.own.antagonist)
        s, antagonist = self.as_antagonist(s, partial(attend, other=s.learner))
        s = self.offer(s, work.levels, protagonist, "explore")
        return self.reward(s, work.rollout, self.regret(protagonist.episodes, antagonist.episodes))

    def imitated(self, room: Classroom, other: Learner, trial: Trial) -> Distribution | None:
        """What another student would have done at each step of a rollout, where it is imitated."""
        if not isinstance(room.learning, PPO) or not room.learning.imitation_coef:
            return None
        return other.student.evaluate(trial.rollout.obs, trial.rollout.start)[0]

    def as_antagonist(self, s: State, act: Callable[[State], tuple[State, Trial]]) -> tuple[State, Trial]:
        """Lets the antagonist act in the student's place, or each of several. Its rollouts and updates are not counted.

        Where there are several, the trial is theirs, stacked.
        """
        if self.antagonists == 1:
            its, trial = act(self.enter(s))
        else:
            s, key = s.next_key()
            one = lambda key, it: act(self.enter(replace(s, key=key, own=replace(s.own, antagonist=it))))  # noqa: E731
            every, trial = jax.vmap(one)(jax.random.split(key, self.antagonists), s.own.antagonist)
            its = replace(s, learner=every.learner)
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
        best = max_return(antagonist) if self.antagonists == 1 else jax.vmap(max_return)(antagonist).max(axis=0)
        other = mean_return(protagonist)
        if self.flexible:
            swap = max_return(protagonist) >= best
            best = jnp.where(swap, max_return(protagonist), best)
            other = jnp.where(swap, mean_return(antagonist), other)
        return jnp.maximum(best - other, 0.0)
