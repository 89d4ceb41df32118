"""ACCEL‖: new levels, replayed levels and their children in one batched rollout."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.plr_parallel import ParallelPLR
from tutelage.curricula.state import State


@dataclass(frozen=True)
class ParallelACCEL(ParallelPLR):
    """ACCEL‖ (Jiang et al. 2023): PLR‖ with P more slots, which play edits of the very levels that are replayed.

    The children are therefore scored by the student as it is before the update that their parents bring about.
    """

    edits: int = 5
    """Edits between a parent and its child."""

    groups = 3
    """Groups of P slots in a rollout."""

    def __post_init__(self):
        if self.edits < 1:
            raise ValueError(f"`edits` must be at least 1, not {self.edits}.")

    def replay(self, room: Classroom, s: State) -> State:
        """Roll out on replayed, edited and new levels at once, score all, learn from the replayed ones."""
        s, drawn, replayed = self.draw(room, s)
        s, key = s.next_key()
        key_new, key_edit = jax.random.split(key)
        new = self.generate(room, key_new)
        keys = jax.random.split(key_edit, room.slots)
        children = jax.vmap(lambda k, level: room.design.edit(k, level, self.edits))(keys, replayed)
        groups = {"replay": replayed, "edit": children, "explore": new}
        s, trial = self.play_together(room, s, groups, self.known_returns(room, s, drawn))
        of_replayed, of_children, of_new = (trial.part(n * room.slots, room.slots) for n in range(3))
        s = self.renew(s, drawn, of_replayed.first_marks)
        s = self.offer(s, children, of_children, "edit", drawn)  # first: a new level might take a parent's place
        s = self.offer(s, new, of_new, "explore")
        return self.learn(room, s, of_replayed)
