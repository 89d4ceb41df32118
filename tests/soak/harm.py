"""Runs that were harmed, and every command called on them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

import tutelage as tut
from soak import promises
from soak.calls import NOBODY, Call, call
from soak.mutations import mutate
from soak.originals import WANTED, Original
from soak.promises import Entry, entries
from tutelage.errors import UserError
from tutelage.page import rooms
from tutelage.report.pages import binder
from tutelage.report.pages import report as reports
from tutelage.report.plots.figure import Plate, Sketch
from tutelage.runs import storage

NAMES = ["run", "run", "run", "q[/a]", "[bold]x", "a b", "ü\u2028", "-x", "x" * 200, "a\nb", "%s", "~"]
NAMES.append(os.fsdecode(b"\xff"))  # bytes that are no text
COMMANDS = ("levels", "lineage", "export", "hub", "page", "play", "suite", "report", "resume", "again")
READING, GOING_ON = ("levels", "lineage", "export", "hub", "page"), ("resume", "again")


@dataclass
class Harmed:
    """A run that was harmed, what was done to it, what was called then, and what is wrong with that."""

    run: Path
    harm: tuple[str, ...]
    calls: list[Call] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def rehearse(original: Original, folder: Path, commands: Sequence[str] = COMMANDS) -> list[str]:
    """Calls every command on a run to which nothing happened; complaints about those that fail."""
    run = folder / "run"
    shutil.copytree(original.stopped, run)
    calls = [call(*_words(command, run, original, folder)) for command in commands if _applies(command, original)]
    return [f"{done.args}: {done.said[-500:]}{done.failure}" for done in calls if done.code != 0]


def harm(rng: Random, original: Original, folder: Path) -> Harmed:
    """A copy of a run with one to three things amiss."""
    run = folder / rng.choice(NAMES)
    shutil.copytree(original.finished if rng.random() < 0.3 else original.stopped, run)
    done = tuple(mutate(rng, run) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    return Harmed(run, done)


def suffer(
    rng: Random, original: Original, folder: Path, commands: Sequence[str] = COMMANDS, most: int | None = None
) -> Harmed:
    """Harms a run, calls every command on it in some order, or the first `most` of them, and checks what is promised
    after each.
    """
    case = harm(rng, original, folder)
    forbidden = any(h.startswith("forbidden") for h in case.harm)
    if forbidden:
        _give_away(folder)
    before = entries(case.run)
    for command in rng.sample(commands, len(commands))[:most]:
        if not _applies(command, original) or (command in GOING_ON and not _ends_soon(case.run, original)):
            continue
        done = call(*_words(command, case.run, original, folder), nobody=forbidden)
        after = entries(case.run)
        case.calls.append(done)
        case.faults += [
            f"{command}: {fault}"
            for fault in [done.fault, *_broken(command, done, case, original, before, after)]
            if fault
        ]
        before = after
    return case


def _applies(command: str, original: Original) -> bool:
    """Whether an env has what a command takes."""
    if command == "page":
        return rooms.ready(original.config)
    return command != "suite" or original.suite is not None


def _words(command: str, run: Path, original: Original, folder: Path) -> tuple[object, ...]:
    at = run if not run.name.startswith("-") else run.absolute()
    return {
        "levels": ("levels", at),
        "lineage": ("levels", at, "--lineage", 3),
        "export": ("levels", at, "--top", 2, "--json", folder / "out.json", "--png", folder / "png"),
        "hub": ("export", at, "--hub", folder / "hub"),
        "page": ("page", at, "--out", folder / "page.html"),
        "play": ("eval", at, "--levels", original.levels, "--episodes", 2),
        "suite": ("eval", at, "--suite", original.suite, "--episodes", 2),
        "report": ("report", at, original.finished, "--out", folder / "report"),
        "resume": ("resume", at),
        "again": ("train", "--config", original.finished / "config.json", "--out", at, "--resume"),
    }[command]


def _ends_soon(run: Path, original: Original) -> bool:
    """Whether the run's config, which may ask for anything, asks for a training that is over in a moment."""
    try:
        there = tut.Run(run)
        config, checkpoints = there.config, there.checkpoints
    except (UserError, OSError):
        return True
    small = config.updates <= 2 * WANTED and not config.eval_every and config.track.to == "none"
    return small and (bool(checkpoints) or there.difference(_plain(original)) is None)


def _plain(original: Original) -> object:
    from tutelage.runs import config as configs
    from tutelage.runs import presets

    return configs.to_json(original.config, presets.method_name(original.config.method))


def _give_away(folder: Path) -> None:
    """To a user to whom what is forbidden is forbidden; root may do everything."""
    if os.geteuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _broken(
    command: str, done: Call, case: Harmed, original: Original, before: dict[str, Entry], after: dict[str, Entry]
) -> Iterator[str]:
    """What was promised and is not so."""
    forged = any(h.startswith("rewritten checkpoints") for h in case.harm)  # with the right checksum: nobody can know
    if command == "report":
        if done.code != 0:
            yield f"the other run was not reported: {done.said[-300:]}"
        yield from promises.untouched(before, after)
    elif command in READING or (done.code != 0 and not (forged and command in GOING_ON)):
        yield from promises.untouched(before, after)
    elif command in ("play", "suite"):
        yield from promises.after_evaluation(case.run, before, after)
    else:
        yield from promises.after_resuming(case.run, before, after)
        if done.code == 0 and not forged and tut.Run(case.run).config.updates == WANTED:
            yield from promises.ends_as_it_should(case.run, WANTED, original.last)


def clear(folder: Path) -> None:
    """Removes a case's folder, whatever is in it."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink() and stat.S_ISDIR(path.lstat().st_mode):
            path.chmod(0o755)
    shutil.rmtree(folder)


class Hasty(storage.Disk):
    """A disk that is waited for by nobody: what a crash of the machine would leave is tried elsewhere."""

    def sync(self, file: int) -> None:
        """Does not wait."""

    def sync_folder(self, folder: Path) -> None:
        """Does not wait."""


@contextmanager
def quickly(rng: Random) -> Iterator[None]:
    """On a hasty disk; reports have but three chapters, and put their figures together without drawing them."""
    chapters = rng.sample([c for c in reports.CHAPTERS if c[0] != "Students at work"], 3)
    with ExitStack() as stack:
        stack.enter_context(patch.object(storage, "disk", Hasty()))
        stack.enter_context(patch.object(binder, "finish", _finish))
        stack.enter_context(patch.object(reports, "CHAPTERS", chapters))
        yield


def _finish(sketch: Sketch) -> Plate:
    return Plate(("<svg/>",) * len(sketch.widths), b"", b"")
