"""`tutelage train`."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from tutelage.commands import domains, training
from tutelage.commands.options import Folder, free_path, wrapped
from tutelage.commands.options import parse as parse_options
from tutelage.errors import UserError
from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs import train as runs
from tutelage.runs.config import Config


@dataclass(frozen=True)
class Train:
    """Train students with one of the presets, changed as you like.

    The run directory gets the config, metrics, checkpoints and every level that entered the buffer. A run that was
    stopped, however it was stopped, goes on with `tutelage resume RUN` as if nothing had happened.
    """

    config: Config[Any, Any]
    out: Folder = None
    """The run directory, new or empty; runs/ENV-METHOD if not given, or the first of that name that is free."""
    resume: bool = False
    """Begin, or go on with what there is of this training in the run directory: one command to be given again and again
    until it says that the run is finished."""
    devices: int = 1
    """Devices of this host that the seeds are spread over, evenly."""
    yes: bool = False
    """Train for however long it takes; without, a training of more than a day asks first."""
    print_config: bool = False
    """Print the config instead of training: a file that `--config` takes."""


def parse(args: list[str]) -> Train:
    """From the words after `tutelage train`: a preset or a file, and what is changed in it."""
    name, config, rest = _starting_point(args)
    command = parse_options(Train, rest, f"train {name}", config)
    if name.startswith("--config"):
        name = f"{config.env.name} {presets.method_name(config.method)}"
    folder = name.replace(" ", "-")
    return replace(command, out=command.out or (Path("runs") / folder if command.resume else free_path(folder)))


def run(command: Train) -> None:
    """Trains a new run, or goes on with one."""
    config, path = command.config, command.out
    assert path is not None
    if command.print_config:
        print(json.dumps(configs.to_json(config, presets.method_name(config.method)), indent=2))
        return
    with training.Watch(config, path, asks=not command.yes) as watch:
        options = {"resume": command.resume, "devices": command.devices}
        runs.train(config, path, on_progress=watch, warn=watch.terminal.warn, **options)


def _starting_point(args: Sequence[str]) -> tuple[str, Config[Any, Any], list[str]]:
    """The configuration that the settings change, how it was called, and the words of the settings."""
    file, rest = _taken(args, "--config")
    domain, rest = _taken(rest, "--domain")
    if file is not None:
        return f"--config {file}", _from_file(file, domain), rest
    if domain is not None:
        raise UserError("--domain goes with --config: the settings of an env of your own are in no preset.")
    words = list(takewhile(lambda word: not word.startswith("-"), rest[:2]))
    if "/" in "".join(words[:1]):
        words = words[:1]
    env, _, method = "/".join(words).partition("/")
    if not method:
        _explain(env, rest)
    return f"{env} {method}", presets.preset(env, method), rest[len(words) :]


def _taken(args: Sequence[str], option: str) -> tuple[str | None, list[str]]:
    """The value of an option, wherever it stands, and the other words."""
    for n, word in enumerate(args):
        if word == option and n + 1 < len(args):
            return args[n + 1], [*args[:n], *args[n + 2 :]]
        if word.startswith(f"{option}="):
            return word.partition("=")[2], [*args[:n], *args[n + 1 :]]
    return None, list(args)


def _from_file(file: str, domain: str | None) -> Config[Any, Any]:
    tables = presets.DOMAINS, presets.METHODS
    if file == "-":
        return configs.parse(sys.stdin.read(), "What was piped in", *tables, domains.load(domain))
    return configs.load(Path(file), *tables, domains.load(domain))


def _explain(env: str, args: Sequence[str]) -> NoReturn:
    if {"-h", "--help"} & set(args):
        print(_help())
        raise SystemExit(0)
    if env:
        raise UserError(f"`tutelage train {env}` wants a method too: {', '.join(presets.methods_of(env))}.")
    raise UserError("`tutelage train` wants an env and a method, as in `tutelage train maze accel`.")


def _help() -> str:
    return f"""usage: tutelage train ENV METHOD [OPTIONS]
       tutelage train --config FILE [OPTIONS]

{wrapped(inspect.getdoc(Train) or "")}

ENV is one of {", ".join(presets.DOMAINS)}; `tutelage presets` lists the
methods of each. `tutelage train ENV METHOD --help` lists every setting with its
value there, and whatever else can be said.

options:
  --config FILE         Begin with the settings of a file: what `tutelage
                        presets ENV/METHOD` or --print-config prints, or a run's
                        config.json. With -, of what is piped in.
  --domain MODULE:NAME  With --config: the env of your own that it is for."""
