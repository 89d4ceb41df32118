"""`tutelage levels`."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tutelage.commands import domains
from tutelage.commands.domains import DomainName
from tutelage.commands.options import File, Folder, Number, RunPath
from tutelage.console import Terminal, levels_table
from tutelage.env import DesignSpace
from tutelage.runs.browse import Found, ancestors, best
from tutelage.runs.storage import make_folder, write_atomically


@dataclass(frozen=True)
class Levels:
    """Show the levels a run found: those of highest score in the buffer, or the ancestors of one level."""

    run: RunPath
    """A run directory."""
    top: int = 20
    """How many levels of highest score."""
    lineage: Number = None
    """Show the ancestors of the level with this id instead."""
    seed: Number = None
    """Only this seed's levels; for a lineage the run's first seed if not given."""
    checkpoint: Number = None
    """The student update whose buffer is shown; the newest checkpoint's if not given."""
    png: Folder = None
    """Write a picture of each level shown into this folder."""
    json: File = None
    """Write the levels shown to this file, as JSON."""
    domain: DomainName = None
    """The env of your own that the run was made with."""


def run(command: Levels) -> None:
    """Prints a table, and writes what is asked for besides."""
    run, terminal = domains.open_run(command.run, command.domain), Terminal()
    if command.lineage is None:
        shown = best(run, command.top, command.seed, command.checkpoint)
    else:
        shown = ancestors(run, command.lineage, command.seed)
    terminal.print(levels_table(str(run.path), shown, terminal.width))
    terminal.say("gen: edits since the first ancestor; born: student update of admission; score: estimate of regret")
    if command.png is not None:
        _draw(shown, run.config.env.design(), command.png)
        terminal.say(f"{len(shown)} pictures in {command.png}")
    if command.json is not None:
        _write(shown, run.config.env.design(), command.json)
        terminal.say(f"{len(shown)} levels in {command.json}")


def _draw(shown: Sequence[Found], design: DesignSpace, folder: Path) -> None:
    make_folder(folder)
    for n, level in enumerate(shown):
        picture = io.BytesIO()
        Image.fromarray(design.render(level.level)).save(picture, format="png")
        write_atomically(folder / f"{n:03d}-seed{level.seed}-{level.id}.png", picture.getvalue())


def _write(shown: Sequence[Found], design: DesignSpace, file: Path) -> None:
    data = [{**level.facts(), "level": design.to_json(level.level)} for level in shown]
    write_atomically(file, (json.dumps(data, indent=1) + "\n").encode())
