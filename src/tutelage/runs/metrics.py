"""Where metrics go: always `metrics.jsonl`, one row a seed and log point; TensorBoard or Weights & Biases if asked."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from tutelage.errors import UserError, reason
from tutelage.runs.settings import CHIEF
from tutelage.runs.storage import Damaged, append, copy_aside, read, read_json, read_rows, write_atomically

EXTRAS = {"tensorboard": "tensorboardX", "wandb": "wandb"}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Track:
    """Where metrics go besides `metrics.jsonl`, and under which names Weights & Biases has them."""

    to: Literal["none", "tensorboard", "wandb"] = field(default="none", metadata=CHIEF)
    """Where metrics go besides `metrics.jsonl`; needs the extra `track`."""
    project: str = ""
    """The project at Weights & Biases; what WANDB_PROJECT says, or tutelage, if not given."""
    entity: str = ""
    """The user or team; W&B's own default if not given."""
    group: str = ""
    """The group that the run is shown in, such as the runs of one experiment; none if not given."""
    name: str = ""
    """What the run is called; what WANDB_NAME says, or the name of the run directory, if not given."""

    def __post_init__(self):
        for said in ("project", "entity", "group", "name"):
            if getattr(self, said) and self.to != "wandb":
                raise ValueError(f"`{said}` goes with wandb alone, not with {self.to}.")


@runtime_checkable
class Sink(Protocol):
    """Takes rows as they come."""

    def write(self, rows: Sequence[Row]) -> None: ...

    def show(self, updates: int, pictures: Mapping[str, np.ndarray]) -> None:
        """Takes pictures by name, uint8 `[height, width, 3]`."""
        ...

    def close(self) -> None: ...


class JsonLines:
    """Appends to a file, a JSON object a line; what is not finite becomes null."""

    def __init__(self, path: Path):
        self._path = path
        append(path, b"")

    def write(self, rows: Sequence[Row]) -> None:
        """Appends all rows, or none."""
        append(self._path, "".join(json.dumps(_clean(row)) + "\n" for row in rows).encode())

    def show(self, updates: int, pictures: Mapping[str, np.ndarray]) -> None:
        """A file of numbers keeps no pictures."""

    def close(self) -> None:
        """The file is open only while rows are written."""


class TensorBoard:
    """Scalars of each seed under its own name. What an earlier process wrote of updates after `since` is hidden."""

    def __init__(self, folder: Path, since: int):
        from tensorboardX import SummaryWriter

        apart = f".{secrets.token_hex(4)}"  # two sessions in one second would have one file
        self._writer = SummaryWriter(str(folder), purge_step=since + 1, filename_suffix=apart)

    def write(self, rows: Sequence[Row]) -> None:
        """Every number of every row."""
        for row in rows:
            for name, value in _scalars(row):
                self._writer.add_scalar(f"{name}/seed{row['seed']}", value, row["updates"])
        self._writer.flush()

    def show(self, updates: int, pictures: Mapping[str, np.ndarray]) -> None:
        """As images."""
        for name, picture in pictures.items():
            self._writer.add_image(name, picture, updates, dataformats="HWC")
        self._writer.flush()

    def close(self) -> None:
        """Closes the event file."""
        self._writer.close()


class WeightsAndBiases:
    """One W&B run for the whole program; seeds are told apart by name."""

    def __init__(self, folder: Path, track: Track, config: Mapping[str, Any]):
        import wandb  # pyright: ignore[reportMissingImports]

        settings = {
            "project": track.project or os.environ.get("WANDB_PROJECT", "tutelage"),
            "name": track.name or os.environ.get("WANDB_NAME", folder.name),
            "entity": track.entity or None,  # where nothing is said, W&B asks its own variables
            "group": track.group or None,
            "dir": str(folder),
            "config": dict(config),
        }
        try:
            self._run = wandb.init(**settings, resume="allow", id=_wandb_id(folder))
        except wandb.errors.Error as error:
            raise UserError(f"Weights & Biases cannot be used: {reason(error)}") from error

    def write(self, rows: Sequence[Row]) -> None:
        """All rows of a log point at once."""
        numbers = {f"{name}/seed{row['seed']}": value for row in rows for name, value in _scalars(row)}
        self._run.log(numbers, step=int(rows[0]["updates"]))

    def show(self, updates: int, pictures: Mapping[str, np.ndarray]) -> None:
        """As images."""
        import wandb  # pyright: ignore[reportMissingImports]

        self._run.log({name: wandb.Image(picture) for name, picture in pictures.items()}, step=updates)

    def close(self) -> None:
        """Finishes the run."""
        self._run.finish()


def _wandb_id(folder: Path) -> str:
    """The name of this run at W&B: drawn once, kept in the run directory, where a resumed run finds it again."""
    path = folder / "wandb.json"
    try:
        return str(read_json(path)["id"])
    except (Damaged, KeyError, TypeError):
        drawn = f"tutelage-{secrets.token_hex(8)}"
        write_atomically(path, (json.dumps({"id": drawn}) + "\n").encode())
        return drawn


def check_extra(track: Track) -> None:
    """Refuses what is not installed, before anything is written."""
    if track.to in EXTRAS and find_spec(EXTRAS[track.to]) is None:
        raise UserError(f"--track {track.to} needs the extra: pip install 'tutelage[track]'.")


def open_sinks(folder: Path, track: Track, config: Mapping[str, Any], since: int = 0) -> list[Sink]:
    """The sinks a run writes to from the student update `since` on."""
    sinks: list[Sink] = [JsonLines(folder / "metrics.jsonl")]
    if track.to == "tensorboard":
        sinks.append(TensorBoard(folder / "tensorboard", since))
    elif track.to == "wandb":
        sinks.append(WeightsAndBiases(folder, track, config))
    return sinks


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All rows that can be read and say of which update and seed they are."""
    return rows_and_lost(path)[0]


def rows_and_lost(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows that can be read, and how many lines cannot."""
    found = read_rows(path)
    rows = [row for row in found.rows if _is_row(row)]
    return rows, found.lost + len(found.rows) - len(rows)


Place = tuple[int, int]
"""The student update and the seed that a row is of."""


def truncate(path: Path, updates: int, warn: Callable[[str], None] = lambda text: None) -> list[Place]:
    """Forgets the rows after a checkpoint, and says of what those before are. Lines that cannot be read go to a copy of
    the file, and that is said.
    """
    found = read_rows(path, _place)
    both = [(place, line) for place, line in zip(found.rows, found.lines, strict=True) if place is not None]
    kept = [(place, line) for place, line in both if place[0] <= updates]
    lost = found.lost + len(found.lines) - len(both) + _is_lost(found.cut, updates)
    if lost:
        beside = copy_aside(path)
        word = "line" if lost == 1 else "lines"
        warn(f"{lost} {word} of {path.name} cannot be read and were left out; the file as it was is {beside.name}.")
    data = b"".join(line + b"\n" for _, line in kept)
    if path.exists() and read(path) != data:
        write_atomically(path, data)
    return [place for place, _ in kept]


def _place(row: Row) -> Place | None:
    return (row["updates"], row["seed"]) if _is_row(row) else None


def _is_lost(cut: bytes, updates: int) -> bool:
    """Whether a line that was cut short is of an update that is not done again, or of nothing that is known.

    One that is too short to tell has nothing in it; `check_whole` says if it is missed.
    """
    if match := re.match(rb'{"updates": (\d{1,18}),', cut):
        return int(match[1]) <= updates
    return not re.fullmatch(rb'{"updates": \d*', cut) and not b'{"updates": '.startswith(cut)


def check_whole(there: Sequence[Place], seeds: Sequence[int], updates: int, warn: Callable[[str], None]) -> None:
    """Says if there are no rows of the checkpoint that a run goes on from, which are written before it."""
    known = set(there)
    if missing := [seed for seed in seeds if (updates, seed) not in known]:
        of = "any seed" if len(missing) == len(seeds) else f"seed {missing[0]}"
        warn(f"metrics.jsonl has no row of student update {updates:,} of {of}: what was logged up to there is lost.")


def _is_row(row: Mapping[str, Any]) -> bool:
    return all(type(row.get(name)) is int for name in ("updates", "seed"))


def _scalars(row: Row) -> list[tuple[str, float | int]]:
    return [(k, v) for k, v in row.items() if isinstance(v, int | float) and k not in ("seed", "updates")]


def _clean(row: Row) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
