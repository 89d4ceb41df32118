"""`tutelage presets`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from tutelage.commands.options import Shown
from tutelage.commands.options import parse as parse_options
from tutelage.console import Terminal, plain_table
from tutelage.runs import config, presets


@dataclass(frozen=True)
class Presets:
    """List the presets, or print one in full: a file that `tutelage train --config FILE` takes."""

    name: Annotated[str | None, Shown("ENV/METHOD", by_place=True)] = None
    """A preset, as ENV/METHOD."""


def parse(args: list[str]) -> Presets:
    """From the words after `tutelage presets`."""
    return parse_options(Presets, args, "presets")


def run(command: Presets) -> None:
    """Prints."""
    if command.name is not None:
        env, _, method = command.name.partition("/")
        preset = presets.preset(env, method)
        print(json.dumps(config.to_json(preset, presets.method_name(preset.method)), indent=2))
        return
    table, terminal = plain_table("Presets", "name", "what it is", "updates"), Terminal()
    table.columns[1].justify = "left"
    for name, (what, preset) in presets.PRESETS.items():
        table.add_row(name, what, f"{preset.updates:,}")
    terminal.print(table)
    terminal.say("Train one with `tutelage train ENV METHOD`.")
