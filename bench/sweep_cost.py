"""What an engine costs: tiny points, two at a time, by hand and by each engine.

    python bench/sweep_cost.py 12 hand local ray slurm

Counted is the processor time of all processes that had a part in it, so that other work on the machine changes little.
Every way has compiled programs to begin with. Linux only.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TINY = {
    "env.size": 5,
    "env.max_steps": 20,
    "student.memory": False,
    "student.hidden": 16,
    "student.head": 8,
    "method.buffer.capacity": 24,
    "slots": 8,
    "steps": 24,
    "updates": 60,
    "log_every": 10,
    "eval_every": 0,
    "checkpoint_every": 30,
    "archive_every": 0,
}
CHILD_SUBREAPER = 36  # of prctl: processes whose parent has ended become this process's children


def main() -> None:
    """Measures every way in a process of its own."""
    ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as folder:
        points, *ways = sys.argv[1:]
        measure("hand", 1, Path(folder) / "first")  # compiles
        for way in ways:
            seconds, processor = (x / int(points) for x in measure(way, int(points), Path(folder) / way))
            print(f"{way:6} {processor:6.2f} s of processor a point, {seconds:6.2f} s a point", flush=True)


def measure(way: str, points: int, folder: Path) -> tuple[float, float]:
    began, before = time.monotonic(), _processor()
    subprocess.run([sys.executable, __file__, "do", way, str(points), str(folder)], check=True)
    seconds = time.monotonic() - began
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return seconds, _processor() - before


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def do(way: str, points: int, folder: Path) -> None:
    """Trains the points in one way."""
    from tutelage.runs import sweep as sweeps
    from tutelage.runs.engines.local import Local
    from tutelage.runs.engines.ray import Ray
    from tutelage.runs.engines.slurm import Slurm
    from tutelage.runs.points import Watch
    from tutelage.runs.sweep import Sweep

    sweep = Sweep.of_presets("maze", ["dr"], TINY, {"seed": tuple(range(points))})
    if way == "hand":
        by_hand({name: sweep.config(name) for name in sweep.names}, folder)
        return
    with sweeps.opened(folder, sweep):
        if way == "slurm":
            jobs = Slurm().submitted(folder, sweep.names, "local")
            for job in jobs:
                job.wait()
        else:
            {"local": Local(), "ray": Ray()}[way].run(folder, sweep.names, lambda: None)
    assert all(point.state == "finished" for point in Watch(folder).look())


def by_hand(configs: dict, folder: Path) -> None:
    """A command a point, on two processors."""
    from tutelage.runs.config import to_json

    folder.mkdir()
    waiting, working = list(configs), []
    while waiting or working:
        working = [process for process in working if process.poll() is None]
        if waiting and len(working) < 2:
            name = waiting.pop(0)
            file = folder / f"{name}.json"
            file.write_text(json.dumps(to_json(configs[name], "dr")))
            words = [sys.executable, "-m", "tutelage", "train", "--config", str(file), "--out", str(folder / name)]
            environment = {**os.environ, "NPROC": "1"}
            working.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL))
        time.sleep(0.1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["do"]:
        do(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        main()
