"""`tutelage page`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tutelage.commands.options import Number, Shown
from tutelage.console import Terminal
from tutelage.page.page import write_page
from tutelage.runs.run import Run


@dataclass(frozen=True)
class Page:
    """Write one page in which a person draws levels and watches the students of runs on them. It needs no network.

    Each env gets a room: mazes, lava grids, walkers. Students of any method, seed and checkpoint play side by side.
    """

    runs: Annotated[tuple[Path, ...], Shown("RUN", by_place=True)]
    """Run directories, or folders of students."""
    out: Annotated[Path, Shown("FILE")] = Path("page.html")
    """The page."""
    students: Number = None
    """How many come into a room at most: first seeds of all runs, then other seeds, then earlier checkpoints. If not
    given, ten, or fewer where their weights would come to more than 5 MB."""


def run(command: Page) -> None:
    """Writes the page."""
    terminal = Terminal()
    with terminal.status("writing the page"):
        size = write_page([Run(path) for path in command.runs], command.out, most=command.students)
    terminal.say(f"Open {command.out} in a browser; it is {size / 1e6:.1f} MB and needs nothing else.")
