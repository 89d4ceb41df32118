"""Files: whatever a run writes or reads goes through here.

A kill at any moment leaves a whole file or none, a failure leaves nothing half-written, and loading executes nothing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tutelage.errors import UserError, reason, shown

FORMAT = "tutelage-1"
LARGEST_TEXT = 2**26  # bytes of a JSON file that is read whole
LARGEST_INTEGER = 2**63


class Damaged(UserError):
    """A file that is not what it should be; the text says how, without a full stop."""


class Missing(Damaged):
    """A file that is not there."""


class Disk:
    """The system calls by which files change. Tests put one in its place that fails."""

    def open(self, path: Path, flags: int) -> int:
        """A file descriptor; what would block, such as a pipe that nobody reads, is an error."""
        return os.open(path, flags | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0), 0o666)

    def write(self, file: int, data: bytes | memoryview) -> int:
        """Writes some of the data, and returns how much."""
        return os.write(file, data)

    def read(self, file: int, count: int) -> bytes:
        """Reads at most so many bytes."""
        return os.read(file, count)

    def sync(self, file: int) -> None:
        """Waits until the contents of a file are on the disk."""
        os.fsync(file)

    def sync_folder(self, folder: Path) -> None:
        """Waits until the names in a folder are on the disk."""
        if os.name == "nt":  # where a folder cannot be opened
            return
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def truncate(self, file: int, size: int) -> None:
        """Cuts a file off."""
        os.ftruncate(file, size)

    def replace(self, path: Path, to: Path) -> None:
        """Gives a file another name, in place of what had it."""
        path.replace(to)

    def unlink(self, path: Path) -> None:
        """Removes a name."""
        path.unlink()

    def make_folder(self, path: Path) -> None:
        """Makes a folder."""
        path.mkdir()


disk = Disk()


def write_atomically(path: Path, data: bytes) -> None:
    """Temporary name, flush, rename. A folder, a pipe or a device is not replaced."""
    _check_replaceable(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            _write_all(file, data)
            disk.sync(file)
        disk.replace(temporary, path)
    except OSError:
        with suppress(OSError, ValueError):
            disk.unlink(temporary)
        raise
    disk.sync_folder(path.parent)


def _check_replaceable(path: Path) -> None:
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "this is no plain file, and is left as it is", str(path))


def append(path: Path, data: bytes) -> None:
    """Adds whole lines at a file's end, or none of them. A line that a kill cut short before them is ended."""
    new = not path.exists()
    with _opened(path, os.O_RDWR | os.O_CREAT) as file:
        size = os.lseek(file, 0, os.SEEK_END)
        try:
            if size and _byte_before(file, size) != b"\n":
                data = b"\n" + data
            _write_all(file, data)
            disk.sync(file)
        except OSError:
            with suppress(OSError):
                disk.truncate(file, size)
            raise
    if new:
        disk.sync_folder(path.parent)


def _byte_before(file: int, place: int) -> bytes:
    os.lseek(file, place - 1, os.SEEK_SET)
    return disk.read(file, 1)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    try:
        file = disk.open(path, flags)
    except ValueError as error:  # such as a null byte in the name
        raise OSError(errno.EINVAL, "no file can have this name", shown(str(path))) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        yield file
    except OSError as error:
        if error.filename is None:  # the system does not say which file a descriptor is of
            error.filename = str(path)
        raise
    finally:
        os.close(file)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[disk.write(file, rest) :]


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, where they are not there yet."""
    if path.is_dir():
        return
    make_folder(path.parent)
    with suppress(FileExistsError):  # another process was faster
        disk.make_folder(path)
        disk.sync_folder(path.parent)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "there is a file of this name", str(path))


def check_changeable(path: Path) -> None:
    """Raises what would keep a file, or the files of a folder, from being changed; changes nothing."""
    if path.is_dir():
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    elif os.path.lexists(path):  # a link that leads nowhere is an error here
        with _opened(path, os.O_RDWR):
            pass


def remove(path: Path) -> None:
    """Removes a file, if it is there; a folder that has its name gets another one."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            put_aside(path)
        else:
            disk.unlink(path)


def put_aside(path: Path) -> Path:
    """Gives a damaged file another name, for good."""
    to = _free_name(path)
    disk.replace(path, to)
    disk.sync_folder(path.parent)
    return to


def copy_aside(path: Path) -> Path:
    """Writes a damaged file under another name too, before what can be read of it takes its place."""
    to = _free_name(path)
    write_atomically(to, read(path))
    return to


def _free_name(path: Path) -> Path:
    to, n = path.with_suffix(".damaged"), 1
    while os.path.lexists(to):
        n += 1
        to = path.with_suffix(f".damaged-{n}")
    return to


def tidy(folder: Path) -> None:
    """Removes what a kill left half-written. Only for who holds the lock."""
    for path in folder.glob(".*.tmp") if folder.is_dir() else ():
        remove(path)


def numbered(folder: Path, suffix: str) -> dict[int, Path]:
    """The files of a folder whose names are numbers of eight digits or more, ascending."""
    if not os.path.lexists(folder):
        return {}
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder.")
    shape = re.compile(rf"(\d{{8}}|[1-9]\d{{8,15}}){re.escape(suffix)}", re.ASCII)
    found = (match for path in folder.iterdir() if (match := shape.fullmatch(path.name)))
    return {int(match[1]): folder / match[0] for match in sorted(found, key=lambda m: int(m[1]))}


def read(path: Path, largest: int | None = None) -> bytes:
    """The contents of a regular file, or `Damaged`."""
    try:
        with _opened(path, os.O_RDONLY) as file:
            size = os.fstat(file).st_size
            if size > (_memory() // 2 if largest is None else largest):
                raise Damaged(f"{path.name} is too large, with {size:,} bytes")
            return b"".join(iter(partial(disk.read, file, min(2**24, size + 1)), b""))
    except FileNotFoundError as error:
        raise Missing(f"{path.name} is not there") from error
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {reason(error)}") from error


def _memory() -> int:
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 2**36


def read_json(path: Path) -> Any:
    """What a JSON file holds, or `Damaged`."""
    data = read(path, LARGEST_TEXT)
    try:
        return parse_json(data.decode("utf-8-sig"))
    except ValueError as error:
        raise Damaged(f"{path.name} cannot be read as JSON ({reason(error)})") from error


def parse_json(text: str) -> Any:
    """JSON, or a `ValueError`, also for what is nested too deeply or has numbers that nothing here could be."""
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _integer(text: str) -> int:
    if len(text) > 20 or not -LARGEST_INTEGER <= int(text) < LARGEST_INTEGER:
        raise ValueError(f"a number of {len(text)} digits is too large")
    return int(text)


@dataclass(frozen=True)
class Rows:
    """The lines of a file of JSON objects that can be read: what is wanted of each object, and as they stand there."""

    rows: list[Any]
    lines: list[bytes]
    lost: int  # lines that cannot be read, but for one at the end that a kill may have cut short
    cut: bytes = b""  # that one


def read_rows(path: Path, pick: Callable[[dict[str, Any]], Any] = lambda row: row) -> Rows:
    """Every line that is an object, of which `pick` is kept; long files are larger as objects than memory may be.

    A line is what ends with a line feed, whatever else is in it.
    """
    try:
        *whole, rest = read(path).split(b"\n")
    except Missing:
        return Rows([], [], 0)
    cut = rest if _is_cut(rest) else b""
    lines = [(_picked(line, pick), line) for line in [*whole, *([] if cut else [rest])] if line.strip()]
    lost = sum(picked is None for picked, _ in lines)
    found = [(picked[0], line) for picked, line in lines if picked is not None]
    return Rows([row for row, _ in found], [line for _, line in found], lost, cut)


def _is_cut(rest: bytes) -> bool:
    """Whether what follows the last line feed is the beginning of an object, as a kill leaves it."""
    return rest.startswith(b"{") and _row(rest) is None


def _picked(line: bytes, pick: Callable[[dict[str, Any]], Any]) -> tuple[Any] | None:
    row = _row(line)
    return None if row is None else (pick(row),)


def _row(line: bytes) -> dict[str, Any] | None:
    """What a line says, but for the null bytes that a crash of the system may leave, and a mark of byte order."""
    try:
        row = parse_json(line.strip(b"\0\r\t ").removeprefix(b"\xef\xbb\xbf").decode())
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Saves named arrays with a JSON header and a checksum over all of it."""
    tensors = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    text = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "header": text, "sha256": _checksum(tensors, text)}
    # One entry: several would be written in an order that changes from process to process.
    write_atomically(path, save(tensors, {"tutelage": json.dumps(metadata)}))


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Loads what `write_arrays` saved, or raises `Damaged`. Executes nothing."""
    data = read(path)
    try:
        metadata = _metadata(data)
        tensors = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise Damaged(f"{path.name} is truncated or not a checkpoint ({reason(error)})") from error
    if metadata.get("format") != FORMAT or not isinstance(metadata.get("header"), str):
        raise Damaged(f"{path.name} was not written by this program")
    if metadata.get("sha256") != _checksum(tensors, metadata["header"]):
        raise Damaged(f"{path.name} is corrupted: its checksum does not match")
    try:
        header = parse_json(metadata["header"])
    except ValueError as error:
        raise Damaged(f"{path.name} has a header that cannot be read ({reason(error)})") from error
    if not isinstance(header, dict):
        raise Damaged(f"{path.name} has a header that is no object")
    return tensors, header


def _metadata(data: bytes) -> dict[str, Any]:
    """This program's entry in the header of a safetensors file; nothing if there is none."""
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= len(data) - 8:
        raise ValueError("the header is longer than the file")
    header = parse_json(data[8 : 8 + length].decode())
    said = header.get("__metadata__") if isinstance(header, dict) else None
    ours = said.get("tutelage") if isinstance(said, dict) else None
    entry = parse_json(ours) if isinstance(ours, str) else None
    return entry if isinstance(entry, dict) else {}


def _checksum(tensors: Mapping[str, np.ndarray], header: str) -> str:
    digest = hashlib.sha256(header.encode(errors="surrogatepass"))
    for name in sorted(tensors):
        a = tensors[name]
        digest.update(f"{name}:{a.dtype}:{a.shape}".encode(errors="surrogatepass"))
        digest.update(np.ascontiguousarray(a).tobytes())
    return digest.hexdigest()
