"""ACCEL with an editor that learns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from tutelage.curricula.accel import ACCEL
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.drafting import editing
from tutelage.curricula.state import State
from tutelage.curricula.teacher import Cast, Teacher, noted
from tutelage.env import StepEdit

GAIN = "editor/score"


@dataclass(frozen=True)
class LearnedEditor(ACCEL):
    """ACCEL whose edits are the actions of a policy, trained by PPO to make children of high positive value loss.

    An episode of the editor is `edits` steps from a parent; it sees what a teacher sees, and an action is a kind of
    edit and a tile. It learns after every editing, from the rollout that scores its children.
    """

    needs: ClassVar[type | tuple[type, ...]] = StepEdit

    editor: Teacher = Teacher()
    """The agent that edits."""

    notes = noted(GAIN)
    """The positive value loss of the children, and the entropy of the editor's policy."""

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student, a fresh editor."""
        s, key = super().init(room, key).next_key()
        return replace(s, own=Cast(self.editor.new(key, editing(room.design, self.edits), room.slots)))

    def edit(self, room: Classroom, s: State, parents: Int[Array, " P"]) -> State:
        """Let the editor make children, score them, keep those of high regret; the editor learns from their scores."""
        s, key = s.next_key()
        levels = s.buffer.record.at(parents).level
        work = self.editor.make(key, s.own.teacher, editing(room.design, self.edits), room.slots, levels)
        s, trial = self.play(room, s, work.levels, "edit")
        s = self.offer(s, work.levels, trial, "edit", parents)
        return self.editor.reward(s, work.rollout, positive_value_loss(trial.advantage), GAIN)


def positive_value_loss(advantage: Float[Array, "T P"]) -> Float[Array, " P"]:
    """Each slot's mean_t max(A_t, 0), Equation 5, over all steps of the rollout; clipped to [−1, 1]."""
    return jnp.clip(jnp.maximum(advantage, 0.0).mean(axis=0), -1.0, 1.0)
