"""The paper's ablation of ACCEL's editor."""

from __future__ import annotations

from dataclasses import dataclass

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.robust_plr import RobustPLR
from tutelage.curricula.state import State


@dataclass(frozen=True)
class NoEditor(RobustPLR):
    """ACCEL with its editor replaced by the generator: as many new levels as there would have been children."""

    def replay(self, room: Classroom, s: State) -> State:
        """Replay and learn; then score another batch of new levels."""
        return self.explore(room, super().replay(room, s))
