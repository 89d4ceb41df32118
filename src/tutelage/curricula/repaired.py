"""REPAIRED: PAIRED whose students learn from the best of the teacher's levels, kept in a buffer each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from tutelage.curricula.buffer import Buffer
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Trial, explore_or_replay
from tutelage.curricula.paired import PAIRED, Rivals
from tutelage.curricula.state import State
from tutelage.student.rollout import Rollout


class RivalsWithBuffer(Rivals):
    """The teacher and the antagonist with its own level buffer; the teacher's last rollout, if it is needed again."""

    buffer: Buffer
    last: Rollout | None


@dataclass(frozen=True)
class REPAIRED(PAIRED):
    """Replay-enhanced PAIRED (Jiang et al. 2021b): robust PLR with two students, each with a buffer of its own.

    New levels are the teacher's and are only scored; both students learn from levels that they replay. The protagonist
    decides when.
    """

    imitates: ClassVar[bool] = False

    teacher_learns: Literal["new", "always"] = "new"
    """When the teacher learns: from the regret of new levels; or in replay cycles too, where the regret of what was
    replayed is credited to the levels it designed last (the reference implementation)."""

    def __post_init__(self):
        super().__post_init__()
        if self.antagonists > 1:
            raise ValueError("`antagonists` must be 1: repaired has a buffer for one antagonist.")

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """Both buffers start empty."""
        s = super().init(room, key)
        last = jax.eval_shape(lambda: self.design(room, s)[1].rollout) if self.teacher_learns == "always" else None
        last = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), last)
        return replace(s, own=RivalsWithBuffer(s.own.teacher, s.own.antagonist, s.buffer, last))

    def cycle(self, room: Classroom, s: State) -> State:
        """Score new levels and teach the teacher, or replay and teach the students."""
        return explore_or_replay(self, room, s)

    def explore(self, room: Classroom, s: State) -> State:
        """Both students try the teacher's levels and keep those of high regret; the teacher learns."""
        s, work = self.design(room, s)

        def attend(s: State) -> tuple[State, Trial]:
            s, trial = self.play(room, s, work.levels, "explore")
            return self.offer(s, work.levels, trial, "explore"), trial

        s, protagonist = attend(s)
        s, antagonist = self.as_antagonist(s, attend)
        if self.teacher_learns == "always":
            s = replace(s, own=replace(s.own, last=work.rollout))
        return self.reward(s, work.rollout, self.regret(protagonist.episodes, antagonist.episodes))

    def replay(self, room: Classroom, s: State) -> State:
        """Each student replays levels of its buffer, renews their scores and learns."""

        def attend(s: State) -> tuple[State, Trial]:
            s, trial, _ = self.play_buffer(room, s)
            return self.learn(room, s, trial), trial

        s, protagonist = attend(s)
        s, antagonist = self.as_antagonist(s, attend)
        if self.teacher_learns == "always":
            s = self.reward(s, s.own.last, self.regret(protagonist.episodes, antagonist.episodes))
        return s

    def enter(self, s: State) -> State:
        """The state with the antagonist for the student, and its buffer."""
        return replace(super().enter(s), buffer=s.own.buffer)

    def leave(self, s: State, its: State) -> State:
        """The state with the student again, and an antagonist that has acted."""
        s = super().leave(s, its)
        return replace(s, own=replace(s.own, buffer=its.buffer))
