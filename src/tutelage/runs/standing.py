"""What state a run directory is in, and what therefore may be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tutelage.env import Domain
from tutelage.errors import UserError, reason
from tutelage.runs import archive, checkpoint, students
from tutelage.runs.claim import FOLDERS, is_free, is_left_over
from tutelage.runs.run import Run

Kind = Literal["nothing", "begun", "going", "finished", "lost", "unreadable"]


@dataclass(frozen=True)
class Standing:
    """How far a run is.

    A directory holds nothing; or a run has begun, but nothing of it would be lost by beginning anew; or it can go on
    from the checkpoint after so many updates; or it is finished; or something of it was lost without which it cannot
    go on; or it cannot be read.
    """

    kind: Kind
    updates: int = 0
    why: str = ""


def look(path: Path, domain: Domain | None = None) -> Standing:
    """The state of a directory; nothing is changed."""
    try:
        return _look(path, domain)
    except UserError as error:
        return Standing("unreadable", why=str(error))
    except OSError as error:
        return Standing("unreadable", why=f"{path} cannot be read ({reason(error)}).")


def _look(path: Path, domain: Domain | None) -> Standing:
    if is_free(path):
        return Standing("nothing")
    config = Run(path, domain).config
    total = config.updates
    there = checkpoint.available(path / "checkpoints")
    if there:
        return Standing("finished" if there[-1] >= total else "going", there[-1])
    if something := _to_lose(path, inherits=bool(config.start)):
        why = f"{path} holds {something}, but no checkpoint to go on from: start the run again with another --out."
        return Standing("lost", why=why)
    return Standing("begun")


def _to_lose(path: Path, *, inherits: bool) -> str | None:
    """What would be lost if the run began anew; not the levels that it inherits, which it writes first of all."""
    if students.are_there(path):
        return "students"
    if (path / "metrics.jsonl").exists() and (path / "metrics.jsonl").stat().st_size:
        return "rows of metrics"
    if archive.segments(path / "levels") and not inherits:
        return "levels"
    for folder in FOLDERS:
        if folder == "levels" and inherits:
            continue
        if (path / folder).is_dir() and any(not is_left_over(p) for p in (path / folder).iterdir()):
            return f"files in {folder}/"
    return None
