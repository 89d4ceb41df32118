"""`tutelage resume`."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tutelage.commands.options import RunPath
from tutelage.commands.options import parse as parse_options
from tutelage.console import Terminal, progress
from tutelage.runs import train
from tutelage.runs.flags import tell_xla
from tutelage.runs.run import Run


@dataclass(frozen=True)
class Resume:
    """Go on with a run from its newest whole checkpoint. It ends as if it had never been stopped."""

    run: RunPath
    """A run directory."""


def parse(args: list[str]) -> Resume:
    """From the words after `tutelage resume`."""
    return parse_options(Resume, args, "resume")


def run(command: Resume) -> None:
    """Trains on."""
    run, terminal, began = Run(command.run), Terminal(), time.monotonic()
    tell_xla(run.config.env)
    with progress(terminal, run.config) as line:
        train.resume(command.run, on_progress=line, warn=terminal.warn)
    terminal.done(command.run, began)
