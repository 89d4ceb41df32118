"""The commands of `tutelage`: a line below and a module here each, which is imported when the command is given.

To add one, enter it in COMMANDS and write `commands/NAME.py`: a frozen dataclass whose fields are the arguments, and
two functions. `parse` makes the dataclass from the words that follow the command, `run` does what it asks for.
`commands/resume.py` is the shortest example.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable


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


@runtime_checkable
class Module(Protocol):
    """What a command's module holds."""

    def parse(self, args: list[str]) -> Any:
        """The command's dataclass, from the words that follow its name."""
        ...

    def run(self, command: Any) -> None:
        """Does it."""
        ...


def module(name: str) -> Module:
    """The module of a command."""
    return cast(Module, import_module(f"{__name__}.{name}"))


def overview() -> str:
    """What there is, a line a command."""
    calls = [(f"tutelage {name} {command.arguments}".rstrip(), command.summary) for name, command in COMMANDS.items()]
    width = max(len(call) for call, _ in calls)
    return "\n".join(f"  {call:{width}}  {summary}" for call, summary in calls)
