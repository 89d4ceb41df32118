"""Signals that ask a training to end: it goes on to its next stop, from which it can be resumed."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")  # the last two are how schedulers announce the end


class Interrupted(KeyboardInterrupt):
    """Training ended early, because of a signal, at a checkpoint."""

    def __init__(self, number: int, updates: int, text: str):
        super().__init__(text)
        self.number, self.updates = number, updates


class Requests:
    """While entered, the first signal is noted; a second SIGINT interrupts at once.

    Only the main thread of a process hears signals; elsewhere nothing is noted.
    """

    def __init__(self):
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Requests:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in NAMES if hasattr(signal, name)):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.received == signal.SIGINT:
            raise KeyboardInterrupt
        if self.received is None:
            self.received = number
            text = "Stopping at the next checkpoint"
            more = "; once more to stop at once.\n" if number == signal.SIGINT else ".\n"
            os.write(2, (text + more).encode())  # a handler must not use buffered streams
