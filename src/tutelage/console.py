"""What a person sees while the program works: a live progress line, and tables."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import get_args

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tutelage.runs.browse import Found
from tutelage.runs.evaluate import Result, by_level, overall
from tutelage.runs.points import Point, State, Watch, best
from tutelage.runs.trainer import Progress
from tutelage.statistics import Summary

LIVE_SECONDS = 1.0
QUIET_SECONDS = 30.0  # between lines where the output is not a terminal


class Terminal(Console):
    """Where the commands print. Text is printed as it is: paths and names may hold what Rich takes for markup."""

    def __init__(self):
        super().__init__(highlight=False, markup=False, emoji=False)

    def say(self, text: str) -> None:
        """Prints a sentence; it is the terminal that breaks it into lines."""
        self.print(text, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Prints a sentence that asks for attention."""
        self.print(text, style="yellow", soft_wrap=True)


class ProgressLine:
    """Student updates, env steps, speed, solved rate, buffer complexity, time left: one line, renewed in place.

    Where the output is not a terminal, a line when the first figures are there, one now and then, and the last.
    """

    def __init__(self, terminal: Terminal, metrics: Sequence[str]):
        self._terminal, self._metrics = terminal, metrics
        self._live: Live | None = None
        self._latest: Progress | None = None
        self._printed: Progress | None = None
        self._last_line = -QUIET_SECONDS

    def start(self) -> None:
        """From here on there is something to wait for, the compiler first of all."""
        if self._terminal.is_terminal:
            text = "compiling …" if self._latest is None else self._text(self._latest)
            self._live = Live(text, console=self._terminal, refresh_per_second=4, transient=True)
            self._live.start()
        else:
            self._terminal.say("compiling …")

    def stop(self) -> None:
        """Leaves the line for what is printed next."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        elif self._latest is not None and self._latest is not self._printed:
            self._print(self._latest)

    def __call__(self, p: Progress) -> None:
        """Shows where the run stands."""
        self._latest = p
        if self._live is not None:
            self._live.update(self._text(p))
        elif p.updates < p.total and time.monotonic() - self._last_line > QUIET_SECONDS:
            self._print(p)

    def _print(self, p: Progress) -> None:
        self._last_line, self._printed = time.monotonic(), p
        self._terminal.say(describe(p, self._metrics, 0).plain)

    def _text(self, p: Progress) -> Text:
        return describe(p, self._metrics, self._terminal.width)


class StatusLine(AbstractContextManager["StatusLine"]):
    """What is being done now: in place on a terminal, elsewhere a line now and then."""

    def __init__(self, console: Console):
        self._console, self._status = console, console.status("")
        self._last_line = time.monotonic()

    def __enter__(self) -> StatusLine:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def update(self, text: str) -> None:
        """Shows this from now on."""
        if self._console.is_terminal:
            self._status.update(Text(text))
        elif time.monotonic() - self._last_line > QUIET_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(f"{text} …", soft_wrap=True)


def describe(p: Progress, metrics: Sequence[str], width: int) -> Text:
    """The progress line; with a bar where there is room for one."""
    parts = [f"{p.updates:,}/{p.total:,} updates", f"{count(p.env_steps)} steps"]
    if p.steps_per_second:
        parts.append(f"{count(p.steps_per_second)}/s")
    if p.updates == 0:
        parts.append(f"filling the buffer {p.fill:.0%}")
    if not math.isnan(solved := p.row.get("replay/solved", p.row.get("explore/solved", math.nan))):
        parts.append(f"solved {solved:.0%}")
    parts += [
        f"{name.replace('_', ' ')} {p.row[f'buffer/{name}']:.1f}" for name in metrics if f"buffer/{name}" in p.row
    ]
    if p.seconds_left is not None:
        parts.append(f"{clock(p.seconds_left)} left")
    line = Text(" · ".join(parts))
    room = width - len(line) - 2
    return Text.assemble(bar(p.updates / p.total, min(room, 30)), "  ", line) if room >= 10 else line


def bar(share: float, width: int) -> Text:
    """A bar of the given width, filled to a share."""
    full = round(share * width)
    return Text.assemble(("━" * full, "green"), ("─" * (width - full), "dim"))


def count(n: float) -> str:
    """12.3 k, 4.5 M, …"""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if n >= size:
            return f"{n / size:.1f}{unit}"
    return f"{n:.0f}"


def clock(seconds: float) -> str:
    """1:02:03 or 2:03."""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"


def roughly(seconds: float) -> str:
    """3 days, 5 hours, 20 minutes, less than a minute."""
    if seconds < 60:
        return "less than a minute"
    units = ((24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute"))
    size, unit = next((pair for pair in units if seconds >= 1.5 * pair[0]), units[-1])
    n = round(seconds / size)
    return f"about {n} {unit}{'s' * (n > 1)}"


def results_table(results: Sequence[Result], title: str, *, average: bool = True) -> Table:
    """Solved rate, return and length of every level, and their mean if asked for."""
    table = plain_table(title, "level", "solved rate", "return", "length")
    for name, row in by_level(results).items():
        table.add_row(name, *_cells(row))
    if average and len(by_level(results)) > 1:
        table.add_section()
        table.add_row("mean", *_cells(overall(results)), style="bold")
    return table


def _cells(row: dict[str, Summary]) -> list[str]:
    return [row["solved_rate"].text(), row["mean_return"].text(), row["mean_length"].text(1)]


def levels_table(title: str, levels: Sequence[Found], width: int) -> Table:
    """Levels with a column for each of their metrics; if that is too wide, with one in which all are named."""
    facts = ("seed", "id", "parent", "gen", "born", "score")
    names = [name.replace("_", " ") for name in levels[0].metrics] if levels else []
    wide, narrow = plain_table(title, *facts, *names), plain_table(title, *facts, "metrics")
    narrow.columns[-1].justify, narrow.columns[-1].overflow = "left", "ellipsis"
    for level in levels:
        parent = "–" if level.parent < 0 else level.parent
        begin = [str(v) for v in (level.seed, level.id, parent, level.generation, level.birth)]
        values = [f"{round(v, 6) + 0.0:g}" for v in level.metrics.values()]
        wide.add_row(*begin, f"{level.score:.4f}", *values)
        narrow.add_row(*begin, f"{level.score:.4f}", ", ".join(map(" ".join, zip(names, values, strict=True))))
    return wide if Console(width=10_000).measure(wide).maximum <= width else narrow


def plain_table(title: str, *columns: str) -> Table:
    """First column to the left, numbers to the right."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, title_style="bold", padding=(0, 1), pad_edge=False)
    for n, column in enumerate(columns):
        table.add_column(column, justify="right" if n else "left", overflow="fold")
    return table


class SweepTable(AbstractContextManager["SweepTable"]):
    """How the points of a sweep stand: in place on a terminal, a table; elsewhere a line now and then."""

    def __init__(self, console: Console, watch: Watch):
        self._console, self._watch = console, watch
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._began = self._last = time.monotonic()
        self._before = sum(p.updates for p in watch.look())

    def __enter__(self) -> SweepTable:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self) -> None:
        """Looks again, if some time has passed."""
        now, live = time.monotonic(), self._console.is_terminal
        if now - self._last < (LIVE_SECONDS if live else QUIET_SECONDS):
            return
        self._last = now
        points = self._watch.look()
        left = self._seconds_left(points, now)
        line = in_short(points) + (f"; {clock(left)} left" if left else "")
        if live:
            table = points_table(self._watch, points, most=max(self._console.height - 7, 3))
            self._live.update(Group(table, Text(line)), refresh=True)
        else:
            self._console.print(line, soft_wrap=True)

    def _seconds_left(self, points: Sequence[Point], now: float) -> float | None:
        """As if all student updates took as long as those that were watched."""
        done, total = sum(p.updates for p in points), sum(p.total for p in points)
        return (now - self._began) / (done - self._before) * (total - done) if done > self._before else None


def in_short(points: Sequence[Point]) -> str:
    """4 of 12 points finished, 2 running, 6 waiting"""
    counts = {state: sum(p.state == state for p in points) for state in get_args(State)}
    rest = [f"{n} {state}" for state, n in counts.items() if n and state != "finished"]
    return ", ".join([f"{counts['finished']} of {len(points)} points finished", *rest])


def points_table(watch: Watch, points: Sequence[Point], most: int | None = None) -> Table:
    """The points of a sweep, the best marked; if not all may be shown, those at work, those that failed, the best."""
    measure = next(iter(watch.configs.values())).env.measure
    table = plain_table(str(watch.folder), "point", "state", "updates", f"validation {measure.name}", "")
    table.columns[1].justify = table.columns[-1].justify = "left"
    chosen = best(points)
    for p in points if most is None or len(points) <= most else _foremost(points, most):
        score = "" if p.score is None else p.score.text(measure.digits)
        done = f"{p.updates:,} of {p.total:,}"
        table.add_row(p.name, p.state, done, score, "best" if p is chosen else p.why, style=_STYLES.get(p.state))
    return table


_STYLES = {"failed": "red", "waiting": "dim", "given up": "dim"}


def _foremost(points: Sequence[Point], most: int) -> list[Point]:
    """In the order of the sweep."""

    def rank(p: Point) -> tuple[int, float]:
        order = ("running", "failed", "finished", "stopped", "given up", "waiting")
        return order.index(p.state), -p.score.mean if p.score else 0.0

    shown = {p.name for p in sorted(points, key=rank)[:most]}
    return [p for p in points if p.name in shown]
