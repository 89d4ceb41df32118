"""A disk that fails: at one system call of a run's life, in one of the ways that disks do."""

import errno
import os
import sys
from pathlib import Path

from tutelage.runs import storage

CHANGES = ("open", "write", "sync", "sync_folder", "truncate", "replace", "unlink", "make_folder")


class PowerCut(BaseException):
    """The machine goes down at this call; nothing of the program goes on."""


class FaultyDisk(storage.Disk):
    """Counts the calls that change files and fails at one of them.

    `way` is an error's number, "short" for a write of one byte, or a power cut: "kept" and "lost" say whether names
    that no one has waited for are on the disk after it.
    """

    def __init__(self, at: int, way: int | str):
        self.at, self.way, self.calls = at, way, 0
        self._undo: list[tuple[Path, object]] = []  # of changes of names that are not on the disk yet

    def _fails(self, path: Path | None = None) -> bool:
        """Counts a call. Whether it is the one that writes too little; the other ways of failing end it here."""
        self.calls += 1
        if self.calls != self.at:
            return False
        if isinstance(self.way, int):
            raise OSError(self.way, os.strerror(self.way), None if path is None else str(path))
        if self.way in ("kept", "lost"):
            self._go_down()
        return self.way == "short"

    def _go_down(self) -> None:
        for _, undo in reversed(self._undo if self.way == "lost" else []):
            undo()
        raise PowerCut

    def open(self, path: Path, flags: int) -> int:
        new = bool(flags & os.O_CREAT) and not path.exists()
        if flags & (os.O_WRONLY | os.O_RDWR):
            self._fails(path)
        file = super().open(path, flags)
        if new:
            self._undo.append((path.parent, lambda: path.unlink(missing_ok=True)))
        return file

    def write(self, file: int, data) -> int:
        return super().write(file, data[:1] if self._fails() else data)

    def sync(self, file: int) -> None:
        self._fails()
        super().sync(file)

    def truncate(self, file: int, size: int) -> None:
        self._fails()
        super().truncate(file, size)

    def sync_folder(self, folder: Path) -> None:
        self._fails(folder)
        super().sync_folder(folder)
        self._undo = [(where, undo) for where, undo in self._undo if where != folder]

    def replace(self, path: Path, to: Path) -> None:
        self._fails(path)
        before = to.read_bytes() if to.exists() else None
        super().replace(path, to)

        def undo() -> None:
            to.rename(path)
            if before is not None:
                to.write_bytes(before)

        self._undo.append((to.parent, undo))

    def unlink(self, path: Path) -> None:
        self._fails(path)
        before = path.read_bytes()
        super().unlink(path)
        self._undo.append((path.parent, lambda: path.write_bytes(before)))

    def make_folder(self, path: Path) -> None:
        self._fails(path)
        super().make_folder(path)


class Unreadable(storage.Disk):
    """Counts the calls by which files are read, and fails at one of them."""

    def __init__(self, at: int):
        self.at, self.calls = at, 0

    def read(self, file: int, count: int) -> bytes:
        self.calls += 1
        if self.calls == self.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(file, min(count, 2**15))  # and never gives all at once


class Watched(storage.Disk):
    """Says of each change of files whether it came through the seam."""

    EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")

    def __init__(self, folder: Path):
        self.folder, self.inside, self.seen, self.past = str(folder), False, 0, []
        for name in CHANGES:
            setattr(self, name, self._passing(getattr(super(), name)))
        sys.addaudithook(self._hear)  # which nothing takes away again

    def _passing(self, call):
        def passed(*args):
            self.inside = True
            try:
                return call(*args)
            finally:
                self.inside = False

        return passed

    def _hear(self, event: str, args: tuple) -> None:
        if not self.folder or event not in self.EVENTS or not str(args[0]).startswith(self.folder):
            return
        if event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR):
            return
        self.seen += self.inside
        if not self.inside:
            self.past.append((event, str(args[0])))
