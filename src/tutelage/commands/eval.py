"""`tutelage eval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tutelage.commands.options import File, Name, Number, RunPath, Shown
from tutelage.commands.options import parse as parse_options
from tutelage.console import StatusLine, Terminal, results_table
from tutelage.errors import UserError
from tutelage.runs import evaluate as evaluation
from tutelage.runs import worst_case
from tutelage.runs.evaluations import Subject
from tutelage.runs.flags import tell_xla
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


def parse(args: list[str]) -> Eval:
    """From the words after `tutelage eval`."""
    return parse_options(Eval, args, "eval")


def run(command: Eval) -> None:
    """Plays, prints a table and writes it."""
    if command.episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {command.episodes}.")
    run, terminal = Run(command.run), Terminal()
    tell_xla(run.config.env)
    (_play_worst_case if command.cvar else _play_levels)(command, run, terminal)


def _play_levels(command: Eval, run: Run, terminal: Terminal) -> None:
    if command.generator is not None:
        raise UserError("--generator goes with --cvar only.")
    if command.levels is not None and (command.real or command.suite is not None):
        raise UserError("--levels goes with neither --suite nor --real: its levels are played in the env itself.")
    if command.levels is None:
        name, suite = run.suite(command.suite, real=command.real)
    else:
        name, suite = run.suite_from(command.levels)
    updates, students = run.students_at(command.checkpoint)
    with StatusLine(terminal) as status:
        results = evaluation.evaluate(
            students,
            run.config.all_seeds,
            suite,
            command.episodes,
            greedy=command.greedy,
            together=not command.real,  # the original plays on the host, where episodes take room
            on_level=status.update,
        )
    title = f"{name}: {_seeds(run)}, {command.episodes} episodes each, update {updates:,}"
    terminal.print(results_table(results, title))
    kind = "suite" if command.levels is None else "levels"
    _keep(run, Subject(name, updates, kind, greedy=command.greedy, real=command.real), results, terminal)


def _play_worst_case(command: Eval, run: Run, terminal: Terminal) -> None:
    if command.real or command.suite is not None:
        raise UserError("--cvar goes with neither --suite nor --real: it plays random levels in the env itself.")
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
    kept = evaluation.write_csv(path, results)
    told = f"written to {path}" if kept else f"not written: {path} is of more episodes"
    terminal.say(f"mean ± standard error over seeds; {told}")


def _whole_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"With --cvar, --levels is the number of random levels, at least 1, not {text!r}.")
    return int(text)


def _seeds(run: Run) -> str:
    return f"{run.config.seeds} seed{'s' * (run.config.seeds > 1)}"
