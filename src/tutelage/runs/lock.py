"""Keeps a second process out of a run directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tutelage.errors import UserError, reason


class Occupied(UserError):
    """Another process is writing to the run."""


def is_held(path: Path) -> bool:
    """Whether a process is writing to a run, as far as this machine can tell."""
    try:
        file = os.open(path / ".lock", os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        _lock(file)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


class Lock:
    """Held while a run is written to; the system lets go of it when this process ends, however it ends."""

    def __init__(self, path: Path):
        self._path = path
        self._file = -1

    def __enter__(self) -> None:
        try:
            self._file = os.open(self._path / ".lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
        except OSError as error:
            raise UserError(f"{self._path} cannot be written to ({reason(error)}).") from error
        try:
            _lock(self._file)
        except (BlockingIOError, PermissionError) as error:
            os.close(self._file)
            raise Occupied(f"Another process is training in {self._path}; wait for it or stop it first.") from error
        except OSError as error:
            os.close(self._file)
            raise UserError(f"{self._path} cannot be locked ({reason(error)}): choose another --out.") from error
        if not self._is_there():
            os.close(self._file)
            raise UserError(f"{self._path} was removed by another process in this moment.")

    def _is_there(self) -> bool:
        """Whether the locked file is still the one that others would lock."""
        try:
            return os.path.samestat(os.fstat(self._file), (self._path / ".lock").stat())
        except FileNotFoundError:
            return False

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def _lock(file: int) -> None:
    """Locks an open file, or raises at once because another process holds it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
