"""`tutelage eval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tutelage.commands import domains
from tutelage.commands.domains import DomainName
from tutelage.commands.options import File, Name, Number, RunPath, Shown
from tutelage.console import StatusLine, Terminal, plain_table, results_table
from tutelage.env import Suite
from tutelage.errors import UserError
from tutelage.runs import evaluate as evaluation
from tutelage.runs import worst_case
from tutelage.runs.evaluations import Subject
from tutelage.runs.run import Run


@dataclass(frozen=True)
class Eval:
    """Play held-out levels with the students of a run, and write one CSV row for each level and seed.

    With --cvar, play many random levels instead, and report on those that are worst for each student.
    """

    run: RunPath
    """A run directory, or a folder of students that `tutelage export` wrote."""
    suite: Name = None
    """Which levels: a suite of the run's env; its first if not given."""
    level: Name = None
    """One level of it, or of any suite that has one of this name, for each seed; its table is not written."""
    list: bool = False
    """List the suites and their levels, and play nothing."""
    levels: File = None
    """Play the levels of a JSON file instead, such as `tutelage levels --json FILE` writes or you wrote yourself. With
    --cvar, a number: how many random levels, 10,000 if not given."""
    episodes: int = 100
    """Episodes on each level, for each seed; with --cvar as many again, since those that choose do not report."""
    checkpoint: Number = None
    """The student update whose checkpoint is played; the newest if not given."""
    greedy: bool = False
    """Take the most probable action instead of sampling."""
    real: bool = False
    """Play in the environment that the env was modelled on; needs the extra `real`."""
    cvar: bool = False
    """The worst case: the solved rate on the 0.1, 1, 10 and 100 % of random solvable levels that are hardest."""
    generator: Annotated[str | None, Shown("ENV/METHOD")] = None
    """With --cvar, draw the levels as this preset does, such as maze/sfl; as the run itself does if not given."""
    domain: DomainName = None
    """The env of your own that the run was made with."""


def run(command: Eval) -> None:
    """Plays, prints a table and writes it."""
    _check(command)
    run, terminal = domains.open_run(command.run, command.domain), Terminal()
    if command.list:
        _list(run, terminal, real=command.real)
    elif command.cvar:
        _play_worst_case(command, run, terminal)
    else:
        _play_levels(command, run, terminal)


def _list(run: Run, terminal: Terminal, *, real: bool) -> None:
    table = plain_table(f"Suites of {run.config.env.name}", "suite", "levels")
    table.columns[1].justify = "left"
    for name, suite in run.suites(real=real).items():
        table.add_row(name, ", ".join(level.name for level in suite))
    terminal.print(table)


def _check(command: Eval) -> None:
    if command.episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {command.episodes}.")
    if command.generator is not None and not command.cvar:
        raise UserError("--generator goes with --cvar only.")
    own = "--cvar" if command.cvar else "--levels" if command.levels is not None else None
    other = "--suite" if command.suite else "--level" if command.level else "--real" if command.real else None
    if own and other:
        raise UserError(f"{own} does not go with {other}: it plays levels of its own in the env itself.")


def _suite(command: Eval, run: Run) -> tuple[str, Suite]:
    if command.levels is not None:
        return run.suite_from(command.levels)
    if command.level is not None:
        return run.suite_with(command.level, command.suite, real=command.real)
    return run.suite(command.suite, real=command.real)


def _play_levels(command: Eval, run: Run, terminal: Terminal) -> None:
    name, suite = _suite(command, run)
    updates, students = run.students_at(command.checkpoint)
    with StatusLine(terminal) as status:
        results = evaluation.evaluate(
            students,
            run.config.all_seeds,
            suite,
            command.episodes,
            greedy=command.greedy,
            together=not command.real,  # the original plays on the host, where episodes take room
            only=command.level,
            on_level=status.update,
        )
    title = f"{name}: {_seeds(run)}, {command.episodes} episodes each, update {updates:,}"
    terminal.print(results_table(results, title))
    if command.level is not None:
        terminal.say("mean ± standard error over seeds; not written: a table is of a whole suite")
        return
    kind = "suite" if command.levels is None else "levels"
    _keep(run, Subject(name, updates, kind, greedy=command.greedy, real=command.real), results, terminal)


def _play_worst_case(command: Eval, run: Run, terminal: Terminal) -> None:
    count = worst_case.LEVELS if command.levels is None else _whole_number(str(command.levels))
    updates, _ = run.students_at(command.checkpoint)
    with StatusLine(terminal) as status:
        results = worst_case.worst_case_of(
            run,
            updates=updates,
            generator=command.generator,
            levels=count,
            episodes=command.episodes,
            greedy=command.greedy,
            on_progress=status.update,
        )
    twice = f"{command.episodes} + {command.episodes} episodes each"
    title = f"{count:,} random levels: {_seeds(run)}, {twice}, update {updates:,}"
    terminal.print(results_table(results, title, average=False))
    _keep(run, Subject(command.generator or "", updates, "worst", count, command.greedy), results, terminal)


def _keep(run: Run, subject: Subject, results: Sequence[evaluation.Result], terminal: Terminal) -> None:
    path = run.path / "evals" / subject.file_name
    kept = evaluation.write_csv(path, results, terminal.warn)
    told = f"written to {path}" if kept else f"not written: {path} is of more episodes"
    terminal.say(f"mean ± standard error over seeds; {told}")


def _whole_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"With --cvar, --levels is the number of random levels, at least 1, not {text!r}.")
    return int(text)


def _seeds(run: Run) -> str:
    return f"{run.config.seeds} seed{'s' * (run.config.seeds > 1)}"
