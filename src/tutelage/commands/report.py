"""`tutelage report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tutelage.commands import domains
from tutelage.commands.domains import DomainName
from tutelage.commands.options import Name, Shown
from tutelage.console import StatusLine, Terminal
from tutelage.report.pages.report import report


@dataclass(frozen=True)
class Report:
    """Compare runs on one page: held-out levels with honest statistics, learning curves, levels and their ancestry.

    Runs of the same settings pool their seeds. What cannot be used is said, and the rest is reported.
    """

    runs: Annotated[tuple[Path, ...], Shown("RUN", by_place=True)]
    """Run directories."""
    out: Annotated[Path, Shown("DIR")] = Path("report")
    """The folder that gets index.html, figures/ and tables/."""
    suite: Name = None
    """The held-out levels to compare on; the suite that most runs were evaluated on if not given."""
    film: Annotated[str | None, Shown("LEVEL")] = None
    """The held-out level to film students on; the hardest that the best method solves if not given."""
    domain: DomainName = None
    """The env of your own that runs were made with."""


def run(command: Report) -> None:
    """Writes the page."""
    terminal, domain = Terminal(), domains.load(command.domain)
    asked = {"suite": command.suite, "film": command.film, "domain": domain}
    with StatusLine(terminal) as status:
        gathered = report(command.runs, command.out, **asked, on_chapter=status.update)
    for note in gathered.notes:
        terminal.warn(note)
    terminal.say(f"Open {command.out / 'index.html'} in a browser; figures, tables and their data lie beside it.")
