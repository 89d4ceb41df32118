"""What it is to learn: the ways in which a student may do so, and who learns by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, Key, PyTree

from tutelage.student.rollout import Episodes, Rollout
from tutelage.student.scaling import Scale


class Learner(eqx.Module):
    """A student, its optimiser's state, and the scale of its returns where rewards are normalised by it."""

    student: PyTree
    optimiser: PyTree
    scale: Scale | None = None


class Lesson(eqx.Module):
    """A rollout, and what is made of it before anything is learned from it."""

    rollout: Rollout
    episodes: Episodes
    advantage: Float[Array, "T P"]
    target: Float[Array, "T P"]
    imitated: PyTree = None  # another student's distributions over actions `[T, P]`, where it is to be imitated
    counts: Bool[Array, "T P"] | None = None  # the steps to learn from, where not all are


Noted = Mapping[str, Float[Array, ""]]


@runtime_checkable
class Learning(Protocol):
    """A way to learn from rollouts: a frozen dataclass of its settings."""

    name: ClassVar[str]
    """What it is called in configs, on the command line and in metrics."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Names of the quantities that each student update notes."""
        ...

    @property
    def next_values(self) -> bool:
        """Whether rollouts must say how the student values what comes after each step."""
        ...

    @property
    def has_critic(self) -> bool:
        """Whether the student learns to value what it sees, so that its rollouts say how much it is surprised."""
        ...

    def together(self, slots: int) -> int:
        """How many neighbouring slots of a rollout must play the same levels."""
        ...

    def check(self, student: PyTree, steps: int, slots: int) -> None:
        """Raises a `ValueError` that says what does not fit a student (of which shapes suffice) and its rollouts."""
        ...

    def begin(self, key: Key[Array, ""], student: PyTree) -> Learner:
        """A learner that has not learned yet."""
        ...

    def players(self, learner: Learner, slots: int) -> PyTree:
        """The student that plays in so many slots, or a `Crowd`, one for each."""
        ...

    def appraise(self, learner: Learner, r: Rollout) -> tuple[Learner, Float[Array, "T P"], Float[Array, "T P"]]:
        """Advantages and targets of values, `[T, P]` each, and the learner that has taken note of the rollout."""
        ...

    def learn(self, key: Key[Array, ""], learner: Learner, lesson: Lesson) -> tuple[Learner, Noted]:
        """One student update."""
        ...
