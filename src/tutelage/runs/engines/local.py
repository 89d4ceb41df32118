"""Sweep engine `local`: processes of this machine, side by side on its GPUs, or on so many of its processors each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tutelage.errors import UserError
from tutelage.runs.lock import Occupied
from tutelage.runs.points import work
from tutelage.runs.signals import Interrupted, Requests
from tutelage.runs.sweep import Sweep

LOOK_EVERY = 0.1  # seconds
MOST_BESIDE = 60  # processes on one GPU; more of them would be a mistake of typing
TRY_AGAIN = 75  # exit code of a process whose run another process is at (EX_TEMPFAIL)


@dataclass(frozen=True)
class Place:
    """Where a process runs: its environment variables, and the processors it is kept to, if it is."""

    variables: Mapping[str, str]
    processors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Local:
    """One process a point; when one ends, the next begins. If this process ends, they do too, at their next stop."""

    side_by_side: int = 1
    """Processes on each GPU."""
    cores: int = 1
    """Processors of a process, where there is no GPU. How many they are, not which, may change how numbers round."""

    def __post_init__(self):
        if not 1 <= self.side_by_side <= MOST_BESIDE or self.cores < 1:
            raise ValueError(f"`side_by_side` must be from 1 to {MOST_BESIDE}, `cores` at least 1.")

    def check(self, sweep: Sweep) -> None:
        """Refuses more processors than there are."""
        self.places()

    def run(self, folder: Path, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Works off the points; after a signal, begins no more and waits for the checkpoints of those at work."""
        places = self.places()
        with shared_gpus(self.side_by_side > 1 and not places[0].processors) as variables, Requests() as requests:
            crew = _Crew(folder, variables, list(places), list(names))
            try:
                while crew.working or (crew.waiting and not requests.received):
                    crew.turn(begin=not requests.received)
                    tick()
                    time.sleep(LOOK_EVERY)
            finally:
                crew.kill()
        if requests.received:
            text = f"{folder} stopped; `tutelage sweep {folder} --resume` goes on with it."
            raise Interrupted(requests.received, 0, text)

    def places(self) -> list[Place]:
        """Where so many processes can run side by side."""
        if found := gpus():
            quiet = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if self.side_by_side > 1 else {}
            return [Place({"CUDA_VISIBLE_DEVICES": gpu, **quiet}) for gpu in found for _ in range(self.side_by_side)]
        there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        if self.cores > len(there):
            raise UserError(f"--local.cores must be from 1 to {len(there)}, the processors here, not {self.cores}.")
        parts = [tuple(there[k : k + self.cores]) for k in range(0, len(there) - self.cores + 1, self.cores)]
        return [Place({"NPROC": str(self.cores)}, part) for part in parts]


@dataclass
class _Crew:
    """The processes at work, the places that are free, and the points that wait for one."""

    folder: Path
    variables: Mapping[str, str]
    free: list[Place]
    waiting: list[str]
    working: dict[subprocess.Popen, tuple[Place, str]] = field(default_factory=dict)
    _told: bool = False

    def turn(self, *, begin: bool) -> None:
        """Takes leave of those that have ended; begins with others, or tells those at work to end."""
        for process in [p for p in self.working if p.poll() is not None]:
            place, name = self.working.pop(process)
            _let_go(process)
            self.free.append(place)
            self.waiting += [name] if process.returncode == TRY_AGAIN else []
        while begin and self.free and self.waiting:
            place, name = self.free.pop(0), self.waiting.pop(0)
            process = started(command(self.folder, name), self.folder / f"{name}.log", place, self.variables)
            self.working[process] = place, name
        if not begin and not self._told:
            self._told = True
            for process in self.working:
                process.terminate()

    def kill(self) -> None:
        """Ends those that are still at work, at once; a checkpoint is whole, however its writer ends."""
        for process in self.working:
            process.kill()
            process.wait()
            _let_go(process)


def _let_go(process: subprocess.Popen) -> None:
    if process.stdin is not None:
        process.stdin.close()


def command(folder: Path, name: str) -> list[str]:
    """What trains a point."""
    return [sys.executable, "-u", "-m", __name__, str(folder), name]


def started(words: list[str], log: Path, place: Place, variables: Mapping[str, str]) -> subprocess.Popen:
    """A process in its place, which writes to a log and hears of this process's end on its standard input."""
    before = os.sched_getaffinity(0) if place.processors and hasattr(os, "sched_setaffinity") else None
    try:
        if before is not None:
            os.sched_setaffinity(0, place.processors)  # what this process has, those that it starts have too
        with log.open("a") as out:
            environment = {**os.environ, **variables, **place.variables}
            return subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=out, stderr=out, env=environment, start_new_session=True
            )
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)


def gpus() -> list[str]:
    """The GPUs that JAX may use, found without starting it: it would take one for this process."""
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin")
    if os.environ.get("JAX_PLATFORMS", "").startswith("cpu") or not any(map(find_spec, plugins)):
        return []
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [gpu for gpu in chosen.split(",") if gpu]
    try:
        found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [str(n) for n, _ in enumerate(line for line in found.splitlines() if line.startswith("GPU "))]


@contextmanager
def shared_gpus(wanted: bool = True) -> Iterator[dict[str, str]]:
    """NVIDIA's MPS, by which processes share a GPU, where it is installed; the variables by which they find it.

    One that runs already is used, and goes on afterwards.
    """
    if not wanted or not shutil.which(MPS) or _told_mps("get_server_list", os.environ):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        variables = {f"CUDA_MPS_{kind}_DIRECTORY": f"{folder}/{kind.lower()}" for kind in ("PIPE", "LOG")}
        for path in variables.values():
            Path(path).mkdir()
        environment = {**os.environ, **variables}
        begun = subprocess.run([MPS, "-d"], env=environment, capture_output=True, check=False).returncode == 0
        try:
            yield variables if begun else {}
        finally:
            if begun:
                _told_mps("quit", environment)


MPS = "nvidia-cuda-mps-control"


def _told_mps(word: str, environment: Mapping[str, str]) -> bool:
    """Tells NVIDIA's MPS something, if it runs."""
    said = subprocess.run([MPS], input=f"{word}\n".encode(), env=environment, capture_output=True, check=False)
    return said.returncode == 0


def _end_with_parent() -> None:
    """Standard input ends when the process at its other end does, however that ends."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Trains one point, in a process of its own."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(Path(sys.argv[1]), sys.argv[2], warn=print)
    except Interrupted as stop:
        print(stop)
        return 128 + stop.number
    except Occupied as error:
        print(error)
        return TRY_AGAIN
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
