"""A sweep of tiny points, the same points by hand, and what must be the same of them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import tutelage as tut
from toys import tiny_maze
from tutelage.runs import sweep as sweeps
from tutelage.runs.sweep import Sweep
from tutelage.student.nets import StudentConfig

UPDATES = 240
FINAL = f"checkpoints/{UPDATES:08d}.safetensors"


def tiny_sweep(seeds: int = 2) -> Sweep:
    """So many points, which differ in their seed: their program is compiled once."""
    small = StudentConfig(memory=False, hidden=16, head=8)
    method = tut.DR(tut.BufferConfig(capacity=24))
    config = tiny_maze(method, student=small, updates=UPDATES, log_every=10, checkpoint_every=10)
    return Sweep({"dr": config}, {"seed": tuple(range(seeds))})


def write(sweep: Sweep, file: Path) -> Path:
    file.write_text(json.dumps(sweep.to_json()))
    return file


BY_HAND = """
import sys
from pathlib import Path
import tutelage as tut
from tutelage.runs import sweep as sweeps

sweep = sweeps.load(Path(sys.argv[1]))
for name in sweep.names:
    tut.train(sweep.config(name), Path(sys.argv[2]) / name)
"""


def train_by_hand(sweep: Sweep, folder: Path) -> Path:
    """Trains the points one after another, on one thread."""
    folder.mkdir()
    file = write(sweep, folder.parent / "by-hand.json")
    environment = {**os.environ, "NPROC": "1"}
    subprocess.run([sys.executable, "-c", BY_HAND, str(file), str(folder)], check=True, env=environment)
    return folder


def final_checkpoints(folder: Path, sweep: Sweep) -> dict[str, bytes]:
    return {name: (folder / name / FINAL).read_bytes() for name in sweep.names}


def wait_for(holds: Callable[[], bool], seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.02)


def is_midway(folder: Path, name: str) -> bool:
    """Whether a point has a checkpoint that is not its first; it must not be finished."""
    there = sorted((folder / name / "checkpoints").glob("0*.safetensors"))
    assert not (folder / name / FINAL).exists(), "it was too fast to be killed"
    return bool(there) and there[-1].stem > "00000000"


def opened(sweep: Sweep, folder: Path) -> Path:
    """The folder of a sweep, nothing begun."""
    with sweeps.opened(folder, sweep):
        return folder
