"""The command line: finds the command, runs it, and words what went wrong. Nothing here waits for JAX."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import tutelage
from tutelage import commands
from tutelage.errors import UserError, explain, unknown
from tutelage.runs.signals import Interrupted

OVERVIEW = f"""\
Unsupervised environment design in JAX: a teacher evolves levels at the frontier of what a student can do.

{commands.overview()}

Every command explains itself with --help."""


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line. 0: done; 2: something must be put right; 128 + n: ended by signal n."""
    _keep_compiled_programs()
    _print_anything()
    try:
        _dispatch(list(sys.argv[1:] if args is None else args))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        return 128 + stop.number
    except KeyboardInterrupt:
        print("Stopped. `tutelage resume RUN` goes on from the last checkpoint.", file=sys.stderr)
        return 130
    except (UserError, OSError, MemoryError, RuntimeError, UnicodeEncodeError) as error:
        if (sentence := explain(error)) is None:
            raise
        print(f"tutelage: {sentence}", file=sys.stderr)
        return 2
    return 0


def _dispatch(args: list[str]) -> None:
    if not args or args[0] in ("-h", "--help"):
        print(OVERVIEW)
    elif args[0] == "--version":
        print(f"tutelage {tutelage.__version__}")
    elif args[0] in commands.COMMANDS:
        command = commands.module(args[0])
        command.run(command.parse(args[1:]))
    else:
        raise UserError(unknown(f"command {args[0]!r}", args[0], commands.COMMANDS))


def _keep_compiled_programs() -> None:
    """Programs compiled once are found again by the next process, which makes a resumed run start at once."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(home / "tutelage"))


def _print_anything() -> None:
    """Names of files may hold bytes that are no text, and not every terminal has every character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
