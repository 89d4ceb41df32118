"""Commands, called in this process and watched: their exit code, what they print, their time and their memory."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tutelage import cli

SECONDS = 600  # after which a call counts as hanging
MEGABYTES = 1500  # that a call may take for itself
NOBODY = 65534


class Hanging(BaseException):
    """A call took too long."""


@dataclass(frozen=True)
class Call:
    """What came of a command."""

    args: tuple[str, ...]
    code: int | None
    said: str
    failure: str  # a traceback, "" if there was none
    seconds: float
    megabytes: float

    @property
    def fault(self) -> str:
        """What is wrong with the way in which the command ended, "" if nothing is."""
        if self.failure:
            return self.failure
        if self.code not in (0, 2):
            return f"exit code {self.code}: {self.said[-300:]}"
        if "Traceback" in self.said:
            return f"a traceback is printed: {self.said[-2000:]}"
        if self.code == 2 and not self.said.strip():
            return "exit code 2 without a word"
        if self.megabytes > MEGABYTES:
            return f"took {self.megabytes:.0f} MB"
        return ""


def call(*args: object, nobody: bool = False, seconds: int = SECONDS) -> Call:
    """Calls a command; as a user who may do nothing special, if asked for and possible."""
    words = tuple(os.fsdecode(a) if isinstance(a, Path) else str(a) for a in args)
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict", write_through=True)
    began, before = time.monotonic(), _reset_peak()
    code, failure = None, ""
    with _printing_to(out), _at_most(seconds), _as_nobody(nobody), warnings.catch_warnings():
        warnings.simplefilter("error")
        # A user who may do nothing special may not write there either.
        warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
        try:
            code = cli.main(words)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except (Exception, Hanging):
            failure = _ending()
    took = time.monotonic() - began
    said = out.buffer.getvalue().decode("utf-8", "replace")  # pyright: ignore[reportAttributeAccessIssue]
    return Call(words, code, said, failure, took, _peak() - before)


def _ending() -> str:
    """The exception under way, and the last places that it passed."""
    error = sys.exception()
    frames = traceback.extract_tb(error and error.__traceback__)
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames]
    return f"{type(error).__name__}: {str(error)[:300]} at {' > '.join(places[-6:])}"


@contextmanager
def _printing_to(out: io.TextIOWrapper) -> Iterator[None]:
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = out
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hanging(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _as_nobody(wanted: bool) -> Iterator[None]:
    """Without the rights of root, to whom nothing is forbidden."""
    if not wanted or os.geteuid() != 0:
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def memory() -> float:
    """Megabytes that this process has."""
    return _status("VmRSS")


def _reset_peak() -> float:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # the peak is then that of the whole process
        return 0.0
    return memory()


def _peak() -> float:
    return _status("VmHWM")


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return 0.0
