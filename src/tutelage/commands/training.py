"""What `train`, `resume` and `demo` show while they train."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import jax

from tutelage.console import ProgressLine, Terminal, clock, roughly
from tutelage.errors import UserError
from tutelage.runs import presets
from tutelage.runs.bench import device_name
from tutelage.runs.config import Config
from tutelage.runs.flags import start_jax
from tutelage.runs.trainer import Progress

DAY = 24 * 60 * 60


class Watch(AbstractContextManager["Watch"]):
    """Follows a training: says what begins, how it goes, how long it will take here, and that it is done.

    Nothing is said before the training has really begun, and so nothing of one that was refused. If it `asks`, a
    training of more than a day needs a yes from the terminal, and ends where there is none.
    """

    def __init__(self, config: Config[Any, Any], path: Path, *, asks: bool = False):
        start_jax(config.env)
        self.terminal, self._config, self._path = Terminal(), config, path
        self._line = ProgressLine(self.terminal, _measures(config))
        self._began: float | None = None
        self._asks, self._estimated = asks, False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._line.stop()
        if kind is None and self._began is not None:
            took = clock(time.monotonic() - self._began)
            self.terminal.say(f"Done in {took}. Evaluate with `tutelage eval {self._path}`.")

    def __call__(self, p: Progress) -> None:
        """Takes note of where the training stands."""
        if self._began is None:
            self._began = time.monotonic()
            self.terminal.say(f"{self._what()} → {self._path}, on {device_name()}")
            self._line.start()
            return
        if not self._estimated:
            self._estimate(p)
        self._line(p)

    def _what(self) -> str:
        seeds = "1 seed" if self._config.seeds == 1 else f"{self._config.seeds} seeds"
        return f"{presets.method_name(self._config.method)} on {self._config.env.name}, {seeds}"

    def _estimate(self, p: Progress) -> None:
        """Says once how long it will take. Before the first student update, it takes at least its own rollouts."""
        rollouts = (p.total - p.updates) * self._config.seeds * self._config.slots * self._config.steps
        least = rollouts / p.steps_per_second if p.steps_per_second else 0.0
        seconds = least if p.seconds_left is None else p.seconds_left
        self._estimated = p.seconds_left is not None or seconds > DAY
        if self._estimated:
            text = f"This will take {roughly(seconds)} on this machine."
            if self._asks and seconds > DAY:
                self._ask(text)
            elif not self.terminal.is_terminal:
                self.terminal.say(text)

    def _ask(self, text: str) -> None:
        self._line.stop()
        somebody = self.terminal.is_terminal and sys.stdin.isatty()
        if somebody and self.terminal.input(f"{text} Go on? [y/N] ").strip().lower() in ("y", "yes"):
            self._line.start()
            return
        raise UserError(f"{text} `tutelage resume {self._path}` goes on with it; with --yes, nothing is asked.")


def _measures(config: Config[Any, Any]) -> list[str]:
    """The first two measures of its levels."""
    design = config.env.design()
    level = jax.eval_shape(design.sample, jax.random.key(0))
    return list(jax.eval_shape(design.describe, level))[:2]
