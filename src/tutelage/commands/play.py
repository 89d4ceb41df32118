"""`tutelage play`."""

from __future__ import annotations

import os
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tutelage.commands.options import File, Number, Shown
from tutelage.console import Terminal
from tutelage.page.page import write_page
from tutelage.runs.run import Run


@dataclass(frozen=True)
class Play:
    """Play the teacher for the students of runs: writes a page, as `tutelage page` does, and opens the browser."""

    runs: Annotated[tuple[Path, ...], Shown("RUN", by_place=True)]
    """Run directories, or folders of students."""
    out: File = None
    """The page; page.html in the first run's directory if not given."""
    students: Number = None
    """How many come into a room at most: first seeds of all runs, then other seeds, then earlier checkpoints. If not
    given, ten, or fewer where their weights would come to more than 5 MB."""


def run(command: Play) -> None:
    """Writes the page and shows it."""
    terminal, runs = Terminal(), [Run(path) for path in command.runs]
    page = command.out or command.runs[0] / "page.html"
    with terminal.status("writing the page"):
        write_page(runs, page, most=command.students)
    if _has_screen() and webbrowser.open(page.absolute().as_uri()):
        terminal.say(f"{page} is open in the browser.")
    else:
        terminal.say(f"Open {page} in a browser.")


def _has_screen() -> bool:
    """Whether a browser has somewhere to open; without a screen some begin to draw on the terminal."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
