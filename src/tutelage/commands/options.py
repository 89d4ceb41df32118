"""How the words after a command become its dataclass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

RunPath = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
"""A run directory that is there."""

NewRunPath = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]
"""A run directory to be made."""

Number = Annotated[int | None, tyro.conf.arg(metavar="INT")]
Name = Annotated[str | None, tyro.conf.arg(metavar="NAME")]
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


def parse(shape: Any, args: list[str], command: str, *, default: Any = None) -> Any:
    """A command's dataclass from what was typed; what cannot be understood ends the program, with exit code 2."""
    given = {} if default is None else {"default": default}
    # Of what may be none, the default says whether it is: no subcommands.
    config = (tyro.conf.AvoidSubcommands,)
    return tyro.cli(shape, args=args, prog=f"tutelage {command}", config=config, **given)


def free_path(name: str) -> Path:
    """runs/name, or the first of runs/name-2, runs/name-3, … that is not there yet."""
    path, n = Path("runs") / name, 1
    while path.exists():
        n += 1
        path = Path("runs") / f"{name}-{n}"
    return path
