"""How a directory becomes a run: of several processes that begin in it at one moment, one does. Needs no JAX."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tutelage.errors import UserError, reason
from tutelage.runs.lock import Lock
from tutelage.runs.storage import make_folder, tidy, write_atomically

FOLDERS = ("checkpoints", "levels", "evals")


def is_free(path: Path) -> bool:
    """Whether a run may begin here: nothing is there, or what a start leaves that was cut off before its config."""
    try:
        entries = list(path.iterdir())
    except FileNotFoundError:
        return True
    return all(is_left_over(entry) for entry in entries)


def is_left_over(path: Path) -> bool:
    """Whether this is an empty folder of a run, its lock, or a file that was never finished."""
    if path.name in FOLDERS:
        return path.is_dir() and not any(path.iterdir())
    return path.name == ".lock" or (path.name.startswith(".") and path.name.endswith(".tmp"))


def check_free(path: Path) -> None:
    """Refuses a directory in which no run may begin."""
    try:
        free = is_free(path)
    except OSError as error:
        raise UserError(f"{path} cannot be made a run directory ({reason(error)}): choose another --out.") from error
    if not free:
        how = f"go on with `tutelage resume {shlex.quote(str(path))}`, or choose another --out."
        raise UserError(f"{path} is already in use: {how}")


@contextmanager
def claimed(path: Path, config: bytes) -> Iterator[None]:
    """A new run directory, locked, with its config in it; if that cannot be written, nothing is left behind."""
    existed = path.exists()
    try:
        make_folder(path)
    except OSError as error:
        if not existed:
            _undo(path, existed)
        raise UserError(f"{path} cannot be made a run directory ({reason(error)}): choose another --out.") from error
    with Lock(path):
        check_free(path)  # another process may have been faster
        try:
            tidy(path)
            furnish(path)
            write_atomically(path / "config.json", config)
        except (Exception, KeyboardInterrupt):
            _undo(path, existed)
            raise
        yield


def furnish(path: Path) -> None:
    """The folders of a run; empty ones are lost where runs are copied file by file."""
    for folder in FOLDERS:
        make_folder(path / folder)


def _undo(path: Path, existed: bool) -> None:
    """Removes what was made of a run directory, if its config is not in it."""
    if (path / "config.json").exists():
        return
    for name in FOLDERS:
        with suppress(OSError):
            (path / name).rmdir()
    with suppress(OSError):
        (path / ".lock").unlink(missing_ok=True)
        if not existed:
            path.rmdir()
