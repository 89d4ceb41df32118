"""Sweep engines: what works off the points of a sweep. Each is an adapter to a scheduler that is there already.

What makes them short is that a point is one idempotent call, `points.work`: it begins, goes on or finds itself done,
however often it was killed, and leaves all there is to know of it in its folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from tutelage.runs.sweep import Sweep


@runtime_checkable
class SweepEngine(Protocol):
    """Works off points of a sweep."""

    def check(self, sweep: Sweep) -> None:
        """Refuses what it cannot do with a sweep, or not here, before anything is made."""
        ...

    def run(self, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Begins or goes on with these points; calls `tick` now and then. What becomes of them is in their folders."""
        ...


def begin_with(cores: int, gpus: float = 1.0) -> None:
    """Tells JAX, which must not have begun, how many processors this process has, and whether a GPU is its alone."""
    os.environ["NPROC"] = str(cores)
    if 0 < gpus < 1:
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
