"""TRACED: ACCEL that asks besides how hard transitions are to predict, and what learning on a level does for others.

Cho et al. 2026, in our words. A model f learns to predict what the student sees next. A level's difficulty is

    D = PVL + α · ATPL,  ATPL = mean_t |f(o_≤t, a_≤t) − o_{t+1}|

and a level on which the student has just learned is credited with how much easier the levels played next have become:

    CL_i(k) = mean of D(j, before) − D(j, now) over the levels j replayed for update k + 1,  i replayed for update k

Levels are ranked by D + β · CL. A level that is played again loses its credit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.curricula.accel import ACCEL
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.scores import Evidence, Marks, Score, mark
from tutelage.curricula.state import State
from tutelage.student.prediction import Prediction, Predictor
from tutelage.student.rollout import running_sum


class Tracing(eqx.Module):
    """The model, and what is known of the levels in the buffer's slots."""

    predictor: Predictor
    difficulty: Float[Array, " K"]  # D, without credit, as of the slot's latest replay
    id: Int[Array, " K"]  # of the level that this was
    taught: Bool[Array, " K"]  # whether the latest update was on it


@dataclass(frozen=True)
class TRACED(ACCEL):
    """TRACED (Cho et al. 2026): ACCEL by regret, by how well transitions are predicted, and by co-learnability."""

    prediction: float = 1.0
    """α, the weight of the prediction error beside positive value loss (or another score of your choice)."""
    co_learnability: float = 1.0
    """β, the weight of how much easier the next levels have become."""
    model: Prediction = Prediction()
    """The model, and how it learns."""

    notes = ("traced/error", "traced/easier")
    """The model's error, and how much easier replayed levels have become."""

    def __post_init__(self):
        super().__post_init__()
        if min(self.prediction, self.co_learnability) < 0:
            raise ValueError("`prediction` and `co_learnability` must not be negative.")
        if self.admission != "score":
            raise ValueError("`admission` must be score: the model has learned from all episodes when it is asked.")

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student, and a model that has seen nothing."""
        if room.slots % self.model.steps:
            raise ValueError(f"`method.model.steps` = {self.model.steps} does not divide `slots` = {room.slots}.")
        s, key = super().init(room, key).next_key()
        obs = jax.eval_shape(room.env.reset, key, jax.eval_shape(room.design.sample, key))[1]
        known = (jnp.zeros(self.buffer.capacity), s.buffer.id, jnp.zeros(self.buffer.capacity, bool))
        return replace(s, own=Tracing(self.model.new(key, obs, room.env.actions), *known))

    def judge(
        self, room: Classroom, s: State, evidence: Evidence, best: Float[Array, "P Q"] | None, entries: int
    ) -> tuple[State, Marks]:
        """D: the score and α times the error of the model, which learns from the rollout."""
        s, marks = super().judge(room, s, evidence, best, entries)
        predictor, error = self.model.learn(s.own.predictor, evidence.rollout, room.env.actions)
        atpl = mark(Score(lambda e: mean_before_end(e, error)), self.score_over, evidence, None, entries)
        number = marks.finished.sum(dtype=jnp.float32)
        s = s.note({"traced/error": (atpl.score.sum(), number)})
        s = replace(s, own=replace(s.own, predictor=predictor))
        return s, replace(marks, score=marks.score + self.prediction * atpl.score)

    def renew(self, s: State, slots: Int[Array, " N"], marks: Marks) -> State:
        """New difficulties for the levels replayed now, credit for those that the last update was on."""
        before = s.own
        same = before.id == s.buffer.id
        known = jnp.where(same, before.difficulty, s.buffer.score)  # a level not replayed yet has no credit
        s = super().renew(s, slots, marks)
        replayed = jnp.zeros_like(before.taught).at[slots].max(marks.finished)
        difficulty = jnp.where(replayed, s.buffer.score, known)
        easier = (known - difficulty).sum() / jnp.maximum(replayed.sum(), 1)
        credit = jnp.where(before.taught & same, self.co_learnability * easier, 0.0)
        s = s.note({"traced/easier": (easier, jnp.ones(()))})
        own = replace(before, difficulty=difficulty, id=s.buffer.id, taught=replayed)
        return replace(s, own=own, buffer=replace(s.buffer, score=s.buffer.score + credit))


def mean_before_end(e: Evidence, error: Float[Array, "T P"]) -> Float[Array, "T P"]:
    """The mean error over the steps of the episode so far that another one of it follows."""
    return running_sum(error, e.rollout.start) / jnp.maximum(e.episodes.length - 1, 1)
