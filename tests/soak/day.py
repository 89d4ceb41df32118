"""A day's worth of student updates in fast motion: whether memory, open files and the run directory stay as they are.

The env is the strip with pits of examples/ and the student is tiny, but stops, rows, checkpoints and resumptions are
as many as a full-size run has.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import compiling  # noqa: F401 - before JAX is imported
import tutelage as tut
from soak.calls import memory
from soak.harm import Hasty
from toys import jumper
from tutelage.runs import storage, trainer
from tutelage.runs.trainer import KEPT_CHECKPOINTS

DAY = 288_000  # student updates of ten walkers on a GPU, at 0.3 s each
RESUMED = 12  # times
CADENCE = dict(log_every=25, checkpoint_every=250, archive_every=5_000)  # as in every preset


def config(updates: int) -> tut.Config[Any, Any]:
    """Three seeds of the smallest student."""
    student = tut.StudentConfig(memory=False, hidden=4, head=4)
    ppo = tut.PPO(epochs=1, minibatches=1)
    return jumper(updates=updates, seeds=3, slots=2, steps=20, student=student, ppo=ppo, **CADENCE)


def figures(run: Path) -> dict[str, float]:
    """What must not grow, and what grows by what is written down."""
    gc.collect()
    files = [p for p in run.rglob("*") if p.is_file()]
    return {
        "resident_mb": round(memory(), 1),
        "handles": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
        "checkpoints": sum(p.parent.name == "checkpoints" for p in files),
        "level_files": sum(p.parent.name == "levels" for p in files),
        "other_files": sum(p.parent.name not in ("checkpoints", "levels") for p in files),
        "disk_mb": round(sum(p.stat().st_size for p in files) / 1e6, 1),
    }


@dataclass
class Watch:
    """Figures of a run, printed as they are taken."""

    run: Path
    found: list[dict[str, float]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def look(self, updates: int) -> None:
        """Takes the figures after so many updates."""
        minutes = round((time.monotonic() - self.began) / 60, 1)
        self.found.append({"updates": updates, "minutes": minutes, **figures(self.run)})
        print(json.dumps(self.found[-1]), flush=True)

    def straight(self, updates: int, pieces: int) -> None:
        """Trains without a stop; figures after each piece."""

        def progress(at: trainer.Progress) -> None:
            if at.updates >= updates * (len(self.found) + 1) // pieces:
                self.look(at.updates)

        tut.train(config(updates), self.run, on_progress=progress)

    def resumed(self, updates: int, pieces: int) -> None:
        """Trains in so many pieces, each a resumption of the one before; figures after each."""
        for n in range(1, pieces + 1):
            until = updates * n // pieces
            if n == 1:
                tut.train(config(until), self.run)
            else:
                tut.resume(self.run, domain=config(until).env, updates=until)
            self.look(until)


def slope(found: list[dict[str, float]], name: str) -> float:
    """By how much something grows in 1,000 updates, from the second quarter of the figures to the last."""
    first, last = found[len(found) // 4], found[-1]
    return (last[name] - first[name]) / (last["updates"] - first["updates"]) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m soak.day", description=__doc__)
    parser.add_argument("--updates", type=int, default=DAY)
    parser.add_argument("--pieces", type=int, default=RESUMED)
    parser.add_argument("--straight", action="store_true", help="one training, without resumptions between pieces")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        with patch.object(storage, "disk", Hasty()):
            watch = Watch(folder / "run")
            train = watch.straight if options.straight else watch.resumed
            train(options.updates, options.pieces)
    finally:
        shutil.rmtree(folder)
    most = KEPT_CHECKPOINTS + 1 + options.updates // CADENCE["archive_every"]
    assert watch.found[-1]["checkpoints"] <= most, "old checkpoints are removed"
    print(
        json.dumps(
            {f"{name} in 1,000 updates": round(slope(watch.found, name), 4) for name in ("resident_mb", "handles")}
        )
    )


if __name__ == "__main__":
    main()
