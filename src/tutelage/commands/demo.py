"""`tutelage demo`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.text import Text

from tutelage.commands.options import Folder, Number, free_path
from tutelage.commands.training import Watch
from tutelage.console import Terminal, results_table
from tutelage.report.pages.report import ROOM, write_report
from tutelage.runs import presets
from tutelage.runs.evaluate import write_csv
from tutelage.runs.evaluations import Subject
from tutelage.runs.train import train


@dataclass(frozen=True)
class Demo:
    """Train ACCEL on small mazes, evaluate the student on held-out ones, and write a page that shows it all."""

    out: Folder = None
    """The run directory, new or empty; runs/demo if not given."""
    updates: Number = None
    """Student updates; the preset's if not given."""
    seed: int = 0
    """The seed."""


def run(command: Demo) -> None:
    """Trains, evaluates, reports."""
    config = replace(presets.preset("maze", "demo"), seed=command.seed)
    config = config if command.updates is None else replace(config, updates=command.updates)
    path, terminal = command.out or free_path("demo"), Terminal()
    size = f"{config.env.size}×{config.env.size}"
    terminal.say(f"ACCEL on {size} mazes, from empty rooms; {config.updates:,} student updates.")
    with Watch(config, path) as watch:
        run = train(config, path, on_progress=watch, warn=terminal.warn)
    terminal.say("Now levels it has never seen:")
    results = run.evaluate("small", episodes=100)
    write_csv(path / "evals" / Subject("small", config.updates).file_name, results)
    terminal.print(results_table(results, "Held-out mazes, 100 episodes each"))
    page = path / "index.html"
    with terminal.status(Text("drawing the page")):
        write_report([run], path)
    terminal.say(f"Open {page} in a browser. The levels themselves: tutelage levels {path} --png {path}/pictures")
    terminal.say(f"Draw mazes for the student yourself: {path / ROOM}, a page to play in.")
