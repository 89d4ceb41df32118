"""Engines: what works off the points of a sweep. Each is an adapter to a scheduler that is there already.

What makes them short is that a point is one idempotent call, `points.work`: it begins, goes on or finds itself done,
however often it was killed, and leaves all there is to know of it in its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable


@runtime_checkable
class Engine(Protocol):
    """Works off points of a sweep."""

    def run(self, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Begins or goes on with these points; calls `tick` now and then. What becomes of them is in their folders."""
        ...


def variables(cores: int, gpus: float) -> dict[str, str]:
    """The environment of a point with so many processors, and so much of a GPU."""
    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if 0 < gpus < 1 else {}
    return {"NPROC": str(cores), **shared}
