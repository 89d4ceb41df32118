"""What may befall the files of a run: by a disk, a crash, an editor, a copy that went wrong, or a careless hand."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tutelage.errors import UserError
from tutelage.runs.storage import read_arrays, write_arrays

DEEP = 20_000  # levels of nesting
SPARSE = 2**40  # bytes of a file that is larger than any memory

TOKENS = [
    b"\xef\xbb\xbf", "\u2028".encode(), b"\0" * 512, b"\xff", b"\xed\xa0\x80", b"\n", b"\n\n", b"\r\n", b"\x1b[31m",
    b"{", b"}", b'"', b",", b"[1]", b"{}", b"=1+1", b"[/a]", b"<script>", b"null", b"true",
    b"nan", b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"-1", b"x" * 3000, b"[" * DEEP, b'{"a":' * DEEP,
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 7, 2**31, 2**63, -(2**63), 2**64, 10**30, 10**400,
    0.1, -0.0, 1e308, float("inf"), float("nan"),
    "", "x" * 3000, "q[/a]", "\u2028", "\ud800", "\0", "\x1b[31m", "nan", "1e400", "=1+1", "../x",
    [], [1], [[]], {}, {"": {}}, {"name": []}, ["x"] * 999,
]  # fmt: skip
KEYS = ["", "x", "name", "__class__", "\ud800"]


# Of contents


def flip(rng: Random, data: bytes) -> bytes:
    """Some bits."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8, 64]) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: Random, data: bytes) -> bytes:
    """The beginning alone."""
    return data[: rng.randrange(len(data))] if data else data


def cut_end(rng: Random, data: bytes) -> bytes:
    """A few bytes less."""
    return data[: -rng.choice([1, 2, 3, 8])]


def empty(rng: Random, data: bytes) -> bytes:
    """Nothing."""
    return b""


def nuls(rng: Random, data: bytes) -> bytes:
    """Null bytes where something was, as a crash of the system leaves them."""
    n, size = rng.randrange(len(data) + 1), rng.choice([1, 8, 512, 4096])
    return data[:n] + bytes(size) + data[n + size :]


def put_in(rng: Random, data: bytes) -> bytes:
    """Something in between."""
    n = rng.choice([0, len(data), rng.randrange(len(data) + 1)])
    return data[:n] + rng.choice(TOKENS) + data[n:]


def put_over(rng: Random, data: bytes) -> bytes:
    """Something in place of what was there."""
    n, token = rng.randrange(len(data) + 1), rng.choice(TOKENS)
    return data[:n] + token + data[n + len(token) :]


def only(rng: Random, data: bytes) -> bytes:
    """Something else altogether."""
    return rng.choice([*TOKENS, rng.randbytes(rng.randrange(1, 4000))])


def twice(rng: Random, data: bytes) -> bytes:
    """Two copies."""
    return data + data


def lines(rng: Random, data: bytes) -> bytes:
    """Lines in another order, some of them twice or not at all."""
    found = data.split(b"\n")
    return b"\n".join(rng.choices(found, k=len(found)))


def text_of(value: Any) -> str:
    """JSON, also of numbers that Python refuses to print."""
    before = _digits(0)
    try:
        return json.dumps(value)
    finally:
        _digits(before)


def _digits(limit: int) -> int:
    """Sets how long a number may be that is printed or read; returns the limit until then."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    return before


def json_value(rng: Random, data: bytes) -> bytes:
    """A value of a JSON file, or of one of its lines, exchanged, removed or added."""
    rows = data.split(b"\n")
    n = rng.randrange(len(rows))
    try:
        return text_of(change(rng, json.loads(data))).encode()
    except ValueError:
        pass
    try:
        rows[n] = text_of(change(rng, json.loads(rows[n]))).encode()
    except ValueError:
        return flip(rng, data)
    return b"\n".join(rows)


def change(rng: Random, data: Any) -> Any:
    """Plain data with one value exchanged, removed or added somewhere within."""
    if isinstance(data, dict) and data and rng.random() < 0.8:
        name = rng.choice(sorted(data))
        how = rng.choice(["value", "value", "value", "gone", "more", "name"])
        if how == "value":
            return data | {name: change(rng, data[name])}
        rest = {k: v for k, v in data.items() if k != name or how == "more"}
        return rest if how == "gone" else {**rest, rng.choice(KEYS): rng.choice(VALUES)}
    if isinstance(data, list) and data and rng.random() < 0.8:
        n = rng.randrange(len(data))
        return [*data[:n], change(rng, data[n]), *data[n + 1 :]]
    return rng.choice(VALUES)


def cell(rng: Random, data: bytes) -> bytes:
    """A cell of a table."""
    rows = [row.split(b",") for row in data.split(b"\n")]
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = rng.choice([*TOKENS, b"-0", b"1e-400", b"0x1", b"\xd9\xa3", b"inf", b"7", b"''"])
    return b"\n".join(map(b",".join, rows))


CONTENTS: list[Callable[[Random, bytes], bytes]] = [
    flip, flip, cut, cut_end, empty, nuls, put_in, put_over, only, twice, lines, json_value, json_value, cell,
]  # fmt: skip


# Of files with a checksum: contents that are whole and wrong


def rewritten(rng: Random, path: Path) -> None:
    """Another array or another header, with the right checksum."""
    arrays, header = read_arrays(path)
    if rng.random() < 0.4:
        changed = change(rng, header)
        header = changed if isinstance(changed, dict) else {"x": changed}
    else:
        name = rng.choice(sorted(arrays))
        arrays = arrays | {name: another(rng, arrays[name])}
        if rng.random() < 0.2:
            arrays = {k: v for k, v in arrays.items() if k != name} | {
                rng.choice(["x", "", "__metadata__ "]): arrays[name]
            }
    write_arrays(path, arrays, json.loads(text_of(header)))


def another(rng: Random, array: np.ndarray) -> np.ndarray:
    """Of another shape or type, or with other numbers."""
    ways: list[Callable[[], np.ndarray]] = [
        lambda: array[:1],
        lambda: array[:0],
        lambda: array[None],
        lambda: array.reshape(-1),
        lambda: np.zeros((), array.dtype),
        lambda: array.astype(np.float64),
        lambda: array.astype(np.int16),
        lambda: np.zeros_like(array),
        lambda: np.full(array.shape, -1).astype(array.dtype),
        lambda: np.arange(array.size).reshape(array.shape).astype(array.dtype),
        lambda: np.full(array.shape, np.nan if array.dtype.kind == "f" else 1).astype(array.dtype),
        lambda: np.full(array.shape, np.inf if array.dtype.kind == "f" else 2**31 - 1).astype(array.dtype),
    ]
    with np.errstate(all="ignore"):
        return rng.choice(ways)()


# Of names


def gone(rng: Random, path: Path) -> None:
    """Not there."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def folder(rng: Random, path: Path) -> None:
    """A folder of that name, with something in it or without."""
    gone(rng, path)
    path.mkdir()
    if rng.random() < 0.5:
        (path / "x").write_text("x")


def file(rng: Random, path: Path) -> None:
    """A file of that name."""
    gone(rng, path)
    path.write_bytes(rng.choice(TOKENS))


def pipe(rng: Random, path: Path) -> None:
    """A pipe to which nobody writes."""
    gone(rng, path)
    os.mkfifo(path)


def link(rng: Random, path: Path) -> None:
    """A link to itself, to nothing, to what never ends, to its own folder."""
    gone(rng, path)
    path.symlink_to(rng.choice([path, path.with_name("nowhere"), Path("/dev/zero"), Path("/dev/null"), path.parent]))


def moved(rng: Random, path: Path) -> None:
    """Another name, such as no training gives."""
    names = ["99.safetensors", "00000099.safetensors", "-0000001.safetensors", "٠٠٠٠٠٠٠٩.safetensors", "x", ".x.tmp"]
    names += ["0" * 200 + ".csv", "small-99999999999999999999.csv", "[b]", "a\nb", "small-00000099.csv"]
    path.rename(path.with_name(rng.choice(names)))


def exchanged(rng: Random, path: Path) -> None:
    """The contents of another file of the run."""
    others = [p for p in files(run_of(path)) if p != path]
    shutil.copy(rng.choice(others), path)


def forbidden(rng: Random, path: Path) -> None:
    """Not to be read, or not to be written to."""
    path.chmod(rng.choice([0o000, 0o444, 0o555, 0o200]))


def vast(rng: Random, path: Path) -> None:
    """Larger than any memory, all of it null bytes."""
    os.truncate(path, SPARSE)


NAMES: list[Callable[[Random, Path], None]] = [gone, folder, pipe, link, moved, exchanged, forbidden, vast]
FOLDERS: list[Callable[[Random, Path], None]] = [gone, file, pipe, link, forbidden, forbidden]


def files(run: Path) -> list[Path]:
    """All regular files of a run but its lock and those that are vast already."""
    found = (p for p in run.rglob("*") if p.is_file() and not p.is_symlink() and p.name != ".lock")
    return sorted(p for p in found if p.stat().st_size < SPARSE)


def run_of(path: Path) -> Path:
    """The run directory that a file belongs to."""
    return next(p for p in path.parents if p.name not in ("checkpoints", "levels", "evals"))


def stray(rng: Random, run: Path) -> str:
    """Something in a folder that does not belong there."""
    place = run / rng.choice(["", "checkpoints", "levels", "evals"])
    place = place if place.is_dir() else run
    path = place / rng.choice(
        ["99.safetensors", "00000009.safetensors", "x.csv", "small-00000009.csv", "q[b]", "000.csv"]
    )
    if os.path.lexists(path):
        gone(rng, path)
    rng.choice([lambda: os.mkfifo(path), path.mkdir, lambda: path.write_bytes(rng.choice(TOKENS)), path.touch])()
    return f"stray {path.relative_to(run)}"


def mutate(rng: Random, run: Path) -> str:
    """Does something to a run, and says what."""
    there = files(run)
    if rng.random() < 0.05 or not there:
        return stray(rng, run)
    if rng.random() < 0.08:
        path, way = rng.choice([run / name for name in ("checkpoints", "levels", "evals")] + [run]), rng.choice(FOLDERS)
        if not path.is_dir() or (path == run and way is not forbidden):
            return "nothing"
        way(rng, path)
        return f"{way.__name__} {path.relative_to(run)}"
    path = rng.choice([*there, *(p for p in there if p.parent == run)])
    if rng.random() < 0.2:
        way = rng.choice(NAMES)
        way(rng, path)
    elif path.suffix == ".safetensors" and rng.random() < 0.5:
        way = rewritten
        try:
            rewritten(rng, path)
        except (ValueError, OSError, UserError):  # it was harmed before, or its new header is none
            return "nothing"
    else:
        way = rng.choice(CONTENTS)
        path.write_bytes(way(rng, path.read_bytes()))
    return f"{way.__name__} {path.relative_to(run)}"
