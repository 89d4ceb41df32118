"""Who is taught, where, and what a method of teaching is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Array, Key, PyTree

from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.state import State
from tutelage.env import DesignSpace, Env
from tutelage.student.learning import Learning


@dataclass(frozen=True)
class Classroom:
    """The fixed surroundings of a curriculum: who is taught, where, and in what portions."""

    env: Env
    design: DesignSpace
    learning: Learning
    new_student: Callable[[Key[Array, ""]], PyTree]
    slots: int
    steps: int


@runtime_checkable
class Curriculum(Protocol):
    """A UED method, for one seed."""

    needs: ClassVar[type | tuple[type, ...]]
    """What the design space must be: a protocol of `env.py`, or one of several."""

    teaches: ClassVar[tuple[type, ...]]
    """The ways to learn that its students may have."""

    @property
    def buffer(self) -> BufferConfig: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Names of the quantities that only this method notes in the log."""
        ...

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """The most rows of P levels that so many cycles can write into the journal."""
        ...

    def init(self, room: Classroom, key: Key[Array, ""]) -> State: ...

    def cycle(self, room: Classroom, s: State) -> State: ...
