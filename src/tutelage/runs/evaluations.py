"""The files of a run's `evals/`: their names say what they are of, and are built and taken apart here alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["suite", "levels", "worst"]


@dataclass(frozen=True)
class Subject:
    """What was played, and by which students."""

    name: str
    """The suite; the file of levels and a mark of its contents; or the generator of random levels, "" for the run's."""
    updates: int
    """The student update whose students played."""
    kind: Kind = "suite"
    """A suite of held-out levels, the levels of a file, or the worst of many random levels."""
    count: int = 0
    """How many random levels."""
    greedy: bool = False
    """Whether students took the most probable action."""
    real: bool = False
    """Whether they played in the original environment."""

    @property
    def file_name(self) -> str:
        """The name of the table: different for whatever has other results."""
        manner = "-greedy" * self.greedy + "-real" * self.real
        if self.kind == "worst":
            source = f"-{self.name.replace('/', '-')}" if self.name else ""
            return f"cvar-{self.updates:08d}-{self.count}-levels{source}{manner}.csv"
        return f"{'file-' * (self.kind == 'levels')}{self.name}-{self.updates:08d}{manner}.csv"

    @staticmethod
    def of(file_name: str) -> Subject | None:
        """What a table of this name is of; None if it is no evaluation."""
        if match := _WORST.fullmatch(file_name):
            source, manner = _manner(match["rest"])
            return Subject(source.removeprefix("-"), int(match["updates"]), "worst", int(match["count"]), **manner)
        if match := _PLAYED.fullmatch(file_name):
            kind = "levels" if match["file"] else "suite"
            return Subject(match["name"], int(match["updates"]), kind, **_manner(match["rest"])[1])
        return None


_WORST = re.compile(r"cvar-(?P<updates>\d{8,16})-(?P<count>\d{1,16})-levels(?P<rest>(-[\w.-]+)?)\.csv", re.ASCII)
_PLAYED = re.compile(
    r"(?P<file>file-)?(?P<name>[^/]+)-(?P<updates>\d{8,16})(?P<rest>(-greedy)?(-real)?)\.csv", re.ASCII
)


def _manner(text: str) -> tuple[str, dict[str, bool]]:
    """What stands before the marks of how it was played, and those."""
    marks = {}
    for mark in ("real", "greedy"):
        marks[mark] = text.endswith(f"-{mark}")
        text = text.removesuffix(f"-{mark}") if marks[mark] else text
    return text, marks


def levels_name(stem: str, digest: str) -> str:
    """What the levels of a file are called: by the file's name, as far as file names can have it, and its contents."""
    return f"{re.sub(r'[^A-Za-z0-9_]+', '-', stem)[:40].strip('-') or 'levels'}-{digest[:8]}"
