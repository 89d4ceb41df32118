"""`tutelage presets`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tutelage.commands.options import Shown
from tutelage.console import Terminal, plain_table
from tutelage.runs import config, presets


@dataclass(frozen=True)
class Presets:
    """List the presets of all envs or of one, or print a preset: a file that `tutelage train --config FILE` takes."""

    name: Annotated[tuple[str, ...], Shown("NAME", by_place=True)] = ()
    """An env, or a preset: ENV/METHOD or ENV METHOD."""


def run(command: Presets) -> None:
    """Prints."""
    env, slash, method = "/".join(command.name).partition("/")
    if slash:
        preset = presets.preset(env, method)
        print(json.dumps(config.to_json(preset, presets.method_name(preset.method)), indent=2))
    else:
        envs = [env] if env else presets.DOMAINS
        _list([f"{name}/{method}" for name in envs for method in presets.methods_of(name)])


def _list(names: Sequence[str]) -> None:
    table, terminal = plain_table("Presets", "name", "what it is", "updates"), Terminal()
    table.columns[1].justify = "left"
    for name in names:
        what, preset = presets.PRESETS[name]
        table.add_row(name, what, f"{preset.updates:,}")
    terminal.print(table)
    terminal.say("Train one with `tutelage train ENV METHOD`.")
