"""The commands of `tutelage`: a line below and a module here each, which is imported when the command is given.

To add one, enter it in COMMANDS and write `commands/NAME.py`: a frozen dataclass whose fields are the arguments, and a
function `run` that takes it and does what it asks for. `commands/resume.py` is the shortest example. A module in which
words mean more than fields makes the dataclass from them itself, by a function `parse`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, get_type_hints


class Command(NamedTuple):
    """How the overview shows a command."""

    arguments: str
    summary: str


COMMANDS = {
    "demo": Command("", "see it work: a few minutes on a laptop's CPU, ends with a page to look at"),
    "presets": Command("", "what can be trained; `tutelage presets NAME` prints one in full"),
    "train": Command("ENV METHOD", "train; `tutelage train ENV METHOD --help` lists every setting"),
    "resume": Command("RUN", "go on with a run that was stopped"),
    "eval": Command("RUN", "play held-out levels with what was trained"),
    "levels": Command("RUN", "the levels a run found, and where they came from"),
    "export": Command("RUN", "its students for others: a folder in Hugging Face's layout, or ONNX"),
    "sweep": Command("WHAT", "many runs: methods with each combination of some settings, and which is best"),
    "report": Command("RUN…", "runs side by side: statistics, tables and figures on one page"),
    "play": Command("RUN…", "play the teacher: draw levels in the browser and watch the students on them"),
    "page": Command("RUN…", "the page of `tutelage play` as a file, which needs no network"),
    "bench": Command("ENV", "how fast it is on this machine"),
}


class Module(NamedTuple):
    """What a command's module does: makes its dataclass from the words that follow the command's name, and runs it."""

    parse: Callable[[list[str]], Any]
    run: Callable[[Any], None]


def module(name: str) -> Module:
    """The module of a command."""
    own = import_module(f"{__name__}.{name}")
    return Module(getattr(own, "parse", partial(_parsed, own.run, name)), own.run)


def _parsed(run: Callable[[Any], None], name: str, args: list[str]) -> Any:
    from tutelage.commands import options

    return options.parse(get_type_hints(run)["command"], args, name)


def overview() -> str:
    """What there is, a line a command."""
    calls = [(f"tutelage {name} {command.arguments}".rstrip(), command.summary) for name, command in COMMANDS.items()]
    width = max(len(call) for call, _ in calls)
    return "\n".join(f"  {call:{width}}  {summary}" for call, summary in calls)
