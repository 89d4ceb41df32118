"""What must be so after a command, whatever was done to a run before it."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soak.originals import WANTED
from tutelage.errors import UserError
from tutelage.runs import checkpoint
from tutelage.runs.evaluate import Result, read_csv
from tutelage.runs.storage import read_arrays

LARGE = 2**26  # bytes from which on only the size of a file is noted


@dataclass(frozen=True)
class Entry:
    """A file, folder or link, as it lies on the disk."""

    kind: int
    content: bytes = b""


NOTHING = Entry(stat.S_IFREG)


def entries(run: Path) -> dict[str, Entry]:
    """All that a run directory holds, by relative name, but its lock."""
    found = {}
    for folder, folders, names in os.walk(run):
        for path in (Path(folder) / name for name in [*folders, *names]):
            if path.name != ".lock":
                found[os.fsdecode(path.relative_to(run))] = _entry(path)
    return found


def _entry(path: Path) -> Entry:
    info = path.lstat()
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFLNK:
        return Entry(kind, os.fsencode(path.readlink()))
    if kind != stat.S_IFREG:
        return Entry(kind)
    return Entry(kind, path.read_bytes() if info.st_size < LARGE else str(info.st_size).encode())


def rows_in(content: bytes) -> list[dict[str, Any]]:
    """The rows of metrics that can be read by a slow reader of our own."""
    found = []
    for line in content.split(b"\n"):
        try:
            row = json.loads(line.strip(b"\0\r\t ").removeprefix(b"\xef\xbb\xbf").decode(), parse_int=_integer)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and all(type(row.get(k)) is int for k in ("updates", "seed")):
            found.append(row)
    return found


def _integer(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError("no number of a run is so large")
    return int(text)


def unchanged(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Complaints about whatever is not as it was; what is new is no complaint."""
    return [
        f"{name!r} is {'gone' if name not in after else 'changed'}"
        for name in before
        if before[name] != after.get(name)
    ]


def untouched(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Complaints about whatever is not as it was, or new."""
    return unchanged(before, after) + [f"{name!r} is new" for name in after if name not in before]


def after_evaluation(run: Path, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """An evaluation may take the place of one of fewer episodes of the same subject, and keeps what it cannot read."""
    found = []
    for name in before:
        if before[name] in (after.get(name), NOTHING):
            continue
        if not _kept_aside(before[name], after) and not (name in after and _fewer(before[name], run / name)):
            found.append(f"{name!r} is {'changed' if name in after else 'gone'}")
    return found


def _kept_aside(entry: Entry, after: Mapping[str, Entry]) -> bool:
    """Whether a file still exists under a name that says that it is damaged."""
    return any(".damaged" in name and entry == other for name, other in after.items())


def _fewer(entry: Entry, now: Path) -> bool:
    old, new = _results(entry.content, now), _results(now.read_bytes(), now)
    return bool(old and new) and min(r.episodes for r in old) <= max(r.episodes for r in new)


def _results(content: bytes, beside: Path) -> list[Result]:
    copy = beside.parent / ".looked-at.csv"
    copy.write_bytes(content)
    try:
        return read_csv(copy)
    except UserError:
        return []
    finally:
        copy.unlink()


def after_resuming(run: Path, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Whatever could be read of what was done before can still be read; what could not is kept."""
    since = _since(after)
    found = _lost_rows(before, after, since)
    for name, entry in before.items():
        place, _, file = name.rpartition("/")
        if name in ("metrics.jsonl", "history.jsonl") or entry == after.get(name) or entry.kind == stat.S_IFDIR:
            continue
        if file.startswith(".") and file.endswith(".tmp"):
            continue
        if entry == NOTHING or (place == "levels" and _number(file) > since):
            continue  # is made again
        if not _kept_aside(entry, after):
            found.append(f"{name!r} is {'changed' if name in after else 'gone'} (went on from {since})")
    return found


def _number(file: str) -> int:
    return int(file[:8]) if file[:8].isdecimal() else -1


def _since(after: Mapping[str, Entry]) -> int:
    """From which student update training went on; a finished run is not gone on with."""
    begins = [r for r in _objects(after.get("history.jsonl", Entry(0)).content) if r.get("event") == "begin"]
    return int(begins[-1]["updates"]) if begins else WANTED


def _objects(content: bytes) -> list[dict[str, Any]]:
    found = []
    for line in content.split(b"\n"):
        try:
            found.append(json.loads(line.strip(b"\0\r\t ")))
        except (ValueError, RecursionError):
            continue
    return [row for row in found if isinstance(row, dict)]


def _lost_rows(before: Mapping[str, Entry], after: Mapping[str, Entry], since: int) -> list[str]:
    there = before.get("metrics.jsonl", Entry(0))
    if there.kind != stat.S_IFREG or len(there.content) > LARGE:
        return []
    now = [json.dumps(row) for row in rows_in(after["metrics.jsonl"].content)]
    old = [row for row in rows_in(there.content) if row["updates"] <= since]
    lost = [row for row in old if json.dumps(row) not in now]
    found = [f"the row of update {row['updates']}, seed {row['seed']} is gone" for row in lost]
    kept = after["metrics.jsonl"].content.split(b"\n")
    rest = [line for line in there.content.split(b"\n") if line.strip() and line not in kept and not rows_in(line)]
    if rest and there.content.endswith(rest[-1]) and _is_done_again(rest[-1], since):
        rest.pop()
    if rest and not _kept_aside(there, after):
        found.append("unreadable metrics are gone")
    return found


def _is_done_again(line: bytes, since: int) -> bool:
    """Whether a line that a kill cut short is of an update that comes again."""
    if match := re.match(rb'{"updates": (\d+),', line):
        return int(match[1]) > since
    return b'{"updates": '.startswith(line)


def ends_as_it_should(run: Path, updates: int, arrays: Mapping[str, bytes]) -> list[str]:
    """Whether the last checkpoint is bit for bit that of a run to which nothing happened."""
    there = {
        name: array.tobytes()
        for name, array in read_arrays(checkpoint.path_of(run / "checkpoints", updates))[0].items()
    }
    return [] if there == arrays else ["the last checkpoint is another one"]
