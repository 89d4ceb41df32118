"""`tutelage train`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutelage.commands.options import Folder, free_path
from tutelage.commands.options import parse as parse_options
from tutelage.console import Terminal, progress
from tutelage.errors import UserError
from tutelage.runs import bench, presets
from tutelage.runs import config as configs
from tutelage.runs import train as training
from tutelage.runs.config import Config
from tutelage.runs.flags import tell_xla


@dataclass(frozen=True)
class Train:
    """Train students with one of the presets, changed as you like.

    The run directory gets the config, metrics, checkpoints and every level that entered the buffer. A run that was
    stopped, however it was stopped, goes on with `tutelage resume RUN` as if nothing had happened.
    """

    config: Config[Any, Any]
    out: Folder = None
    """The run directory, new or empty; runs/ENV-METHOD if not given."""


def parse(args: list[str]) -> Train:
    """From the words after `tutelage train`: a preset or a file, and what is changed in it."""
    name, config, rest = _starting_point(args)
    return parse_options(Train, rest, f"train {name}", config)


def run(command: Train) -> None:
    """Trains a new run."""
    config, terminal, began = command.config, Terminal(), time.monotonic()
    name = f"{config.env.name}-{presets.method_name(config.method)}"
    path = command.out or free_path(name)
    tell_xla(config.env)
    terminal.say(f"{name} → {path}, on {bench.device_name()}")
    with progress(terminal, config) as line:
        training.train(config, path, on_progress=line, warn=terminal.warn)
    terminal.done(path, began)


def _starting_point(args: list[str]) -> tuple[str, Config[Any, Any], list[str]]:
    """The configuration that the settings change: a preset, or a file."""
    if args[:1] == ["--config"] and len(args) > 1:
        path = Path(args[1])
        return f"--config {path}", configs.load(path, presets.DOMAINS, presets.METHODS), args[2:]
    if len(args) < 2 or args[0].startswith("-") or args[1].startswith("-"):
        if {"-h", "--help"} & set(args):
            print(_HELP)
            raise SystemExit(0)
        raise UserError("`tutelage train` wants an env and a method, as in `tutelage train maze accel`.")
    return f"{args[0]} {args[1]}", presets.preset(args[0], args[1]), args[2:]


_HELP = f"""usage: tutelage train ENV METHOD [SETTINGS]
       tutelage train --config FILE [SETTINGS]

{Train.__doc__}
Envs and methods: {", ".join(presets.PRESETS)}.
`tutelage train ENV METHOD --help` lists every setting with its value in that preset.
A FILE is what `tutelage presets ENV/METHOD` prints, or a run's config.json."""
