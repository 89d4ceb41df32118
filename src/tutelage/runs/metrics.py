"""Where metrics go: always `metrics.jsonl`, one row a seed and log point; TensorBoard or Weights & Biases if asked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tutelage.errors import UserError
from tutelage.runs.storage import write_atomically

Row = Mapping[str, Any]


@runtime_checkable
class Sink(Protocol):
    """Takes rows as they come."""

    def write(self, rows: Sequence[Row]) -> None: ...

    def show(self, updates: int, pictures: Mapping[str, np.ndarray]) -> None:
        """Takes pictures by name, uint8 `[height, width, 3]`."""
        ...

    def close(self) -> None: ...


class JsonLines:
    """Appends to a file, a JSON object a line; NaN becomes null."""

    def __init__(self, path: Path):
        self._file = path.open("a")

    def write(self, rows: Sequence[Row]) -> None:
        """Appends and flushes."""
        self._file.write("".join(json.dumps(_clean(row)) + "\n" for row in rows))
        self._file.flush()

    def show(self, updates: int, pictures: Mapping[str, np.ndarray]) -> None:
        """A file of numbers keeps no pictures."""

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class TensorBoard:
    """Scalars of each seed under its own name."""

    def __init__(self, folder: Path):
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise UserError("--track tensorboard needs the extra: pip install 'tutelage[track]'.") from error
        self._writer = SummaryWriter(str(folder))

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

    def __init__(self, folder: Path, config: Mapping[str, Any]):
        try:
            import wandb  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise UserError("--track wandb needs the extra: pip install 'tutelage[track]'.") from error
        self._run = wandb.init(project="tutelage", dir=str(folder), config=dict(config), resume="allow", id=folder.name)

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


def open_sinks(folder: Path, track: str, config: Mapping[str, Any]) -> list[Sink]:
    """The sinks a run writes to."""
    sinks: list[Sink] = [JsonLines(folder / "metrics.jsonl")]
    if track == "tensorboard":
        sinks.append(TensorBoard(folder / "tensorboard"))
    elif track == "wandb":
        sinks.append(WeightsAndBiases(folder, config))
    return sinks


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """All whole rows; a last line that a kill cut short is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows


def truncate(path: Path, updates: int) -> None:
    """Forgets the rows after a checkpoint."""
    rows = [row for row in read_jsonl(path) if row["updates"] <= updates]
    write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def _scalars(row: Row) -> list[tuple[str, float | int]]:
    return [(k, v) for k, v in row.items() if isinstance(v, int | float) and k not in ("seed", "updates")]


def _clean(row: Row) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
