"""`tutelage bench`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tutelage.commands.options import Shown
from tutelage.console import StatusLine, Terminal
from tutelage.errors import UserError
from tutelage.runs import bench, presets
from tutelage.runs.flags import start_jax


@dataclass(frozen=True)
class Bench:
    """Measure the env alone and whole student updates of a preset on this machine."""

    env: Annotated[str, Shown("ENV", by_place=True)]
    """An env."""
    method: Annotated[str, Shown("METHOD")] = "accel"
    """The preset whose student updates are timed."""
    envs: tuple[int, ...] = (1024,)
    """Numbers of envs stepped side by side with random actions."""
    seeds: tuple[int, ...] = (1,)
    """Numbers of seeds trained in one program."""
    updates: int = 40
    """Student updates to time."""

    def __post_init__(self):
        for name, numbers in {"envs": self.envs, "seeds": self.seeds, "updates": (self.updates,)}.items():
            if min(numbers, default=1) < 1:
                raise UserError(f"--{name} must be at least 1, not {min(numbers)}.")


def run(command: Bench) -> None:
    """Measures, and prints each figure when it is there."""
    config, terminal = presets.preset(command.env, command.method), Terminal()
    start_jax(config.env)
    what = f"{command.env}/{command.method}, {config.slots} slots × {config.steps} steps"
    terminal.say(f"{what}, on {bench.device_name()}")
    with StatusLine(terminal) as status:
        for envs in command.envs:
            status.update(f"env alone, {envs:,} envs")
            _print(terminal, bench.table([bench.env_speed(config.env, envs)], []))
        for seeds in command.seeds:
            status.update(f"student updates, {seeds} seeds")
            _print(terminal, bench.table([], [bench.update_speed(config, seeds, updates=command.updates)]))


def _print(terminal: Terminal, rows: Sequence[tuple[str, str]]) -> None:
    for label, text in rows:
        terminal.say(f"{label:32}{text}")
