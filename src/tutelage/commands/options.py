"""How the words after a command become its dataclass: a field is an option, or an argument if it is marked as one.

The fields' types say what may be given, and the sentences under them are the help.
"""

from __future__ import annotations

import argparse
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

from tutelage.errors import UserError, nearest, shown
from tutelage.runs.config import LARGEST, Config
from tutelage.runs.settings import Setting, changed, plain, read_word, settings

WIDEST = 100  # columns of help
LONGEST = 56  # letters of a word that stands for a value


@dataclass(frozen=True)
class Shown:
    """The word that stands for a field's value in the help, and whether it is given by its place, without a name."""

    word: str
    by_place: bool = False


RunPath = Annotated[Path, Shown("RUN", by_place=True)]
Folder = Annotated[Path | None, Shown("DIR")]
File = Annotated[Path | None, Shown("FILE")]
Number = Annotated[int | None, Shown("INT")]
Name = Annotated[str | None, Shown("NAME")]


def parse(shape: Any, args: Sequence[str], command: str, config: Config[Any, Any] | None = None) -> Any:
    """A command's dataclass from what was typed; what cannot be understood is a `UserError`.

    With a config, its settings are options too, and change it; the dataclass holds it in its field `config`.
    """
    own = list(settings(shape))
    changing = [] if config is None else list(settings(config))
    given = _Parser(shape, command, [*own, *changing]).read(args)
    if config is not None:
        changes = {s.name: given.pop(s.name) for s in changing if s.name in given}
        given["config"] = changed(config, changes)
    return shape(**_gathered(shape, given))


def _gathered(shape: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The values of fields, of which those with dots in their names are of dataclasses that are fields."""
    for field in fields(shape):
        own = [name for name in given if name.startswith(f"{field.name}.")]
        if own:
            inner = {name.partition(".")[2]: given.pop(name) for name in own}
            given[field.name] = changed(field.default, inner, f"{field.name}.")
    return given


class _Parser(argparse.ArgumentParser):
    """A parser that is made from settings, and raises its errors."""

    def __init__(self, shape: Any, command: str, known: Sequence[Setting]):
        width = min(shutil.get_terminal_size().columns, WIDEST) - 2
        beside = 8 if any("." in setting.name for setting in known) else 28

        def layout(prog: str, **more: Any) -> argparse.HelpFormatter:
            return argparse.RawDescriptionHelpFormatter(prog, max_help_position=beside, width=width, **more)

        super().__init__(
            f"tutelage {command}",
            description=wrapped(inspect.getdoc(shape) or ""),
            formatter_class=layout,  # pyright: ignore[reportArgumentType]
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )
        arguments = [_add_argument(self, setting) for setting in known if _shown(setting).by_place]
        self.usage = " ".join([self.prog, *arguments, "[OPTIONS]"]).replace("%", "%%")
        groups: dict[str, Any] = {"": self}
        for setting in known:
            if not _shown(setting).by_place:
                where = setting.name.rpartition(".")[0]
                if where not in groups:
                    groups[where] = self.add_argument_group(
                        where, textwrap.fill(setting.part, width - 2).replace("%", "%%")
                    )
                _add_option(groups[where], setting)

    def read(self, args: Sequence[str]) -> dict[str, Any]:
        """What was given, by the settings' names."""
        found, rest = self.parse_known_args([_with_hyphens(word) for word in args])
        if rest:
            raise UserError(self._unknown(rest[0]))
        return {name: tuple(value) if isinstance(value, list) else value for name, value in vars(found).items()}

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"`{self.prog}` has no place for {shown(word)}."
        name = word.partition("=")[0]
        near = likely(name, [o for action in self._actions for o in action.option_strings if o.startswith("--")])
        guess = f"did you mean {' or '.join(near)}?" if near else f"`{self.prog} --help` lists all."
        return f"`{self.prog}` has no option {shown(name)[1:-1]}; {guess}"

    def error(self, message: str) -> NoReturn:
        """Raises what an `ArgumentParser` prints."""
        if match := re.fullmatch(r"the following arguments are required: (.*)", message, re.DOTALL):
            raise UserError(f"`{self.prog}` wants {match[1]}; see `{self.prog} --help`.")
        match = re.fullmatch(r"argument ([^:]*): (.*)", message, re.DOTALL)
        name, text = (match[1].split("/")[0], match[2]) if match else (self.prog, message)
        if text.startswith("expected"):
            text = "wants a value"
        elif text.startswith("ignored"):
            text = "takes no value"
        raise UserError(f"{name} {text}.")


def _add_argument(parser: _Parser, setting: Setting) -> str:
    """Makes a setting an argument; comes to how that stands in the usage."""
    word, optional = _shown(setting).word, setting.value is not MISSING
    nargs = ("*" if optional else "+") if _is_tuple(setting) else "?" if optional else None
    parser.add_argument(setting.name, type=_reader(setting), nargs=nargs, metavar=word, help=_help(setting))
    return {"*": f"[{word} …]", "+": f"{word} [{word} …]", "?": f"[{word}]", None: word}[nargs]


def _add_option(group: Any, setting: Setting) -> None:
    option, help_text = setting.option, _help(setting)
    if plain(setting.kind) is bool:
        group.add_argument(option, dest=setting.name, action="store_true", help=help_text)
        if not _is_switch(setting):
            off = negated(option)
            group.add_argument(off, dest=setting.name, action="store_false", help=argparse.SUPPRESS)
    else:
        several = {"nargs": "*", "action": "extend"} if _is_tuple(setting) else {}
        word = _shown(setting).word
        group.add_argument(option, dest=setting.name, type=_reader(setting), metavar=word, help=help_text, **several)


def negated(option: str) -> str:
    """The option that turns something off: `--part.no-name`."""
    part, dot, name = option.removeprefix("--").rpartition(".")
    return f"--{part}{dot}no-{name}"


def _shown(setting: Setting) -> Shown:
    if get_origin(setting.kind) is Annotated:
        return next(x for x in get_args(setting.kind) if isinstance(x, Shown))
    kind = get_args(plain(setting.kind))[0] if _is_tuple(setting) else plain(setting.kind)
    if get_origin(kind) is Literal:
        word = f"{{{','.join(map(str, get_args(kind)))}}}"
        return Shown(word if len(word) <= LONGEST else "NAME")
    return Shown("TEXT" if kind is str else kind.__name__.upper())


def _listed(setting: Setting) -> str:
    """The choices, where they are too many for the word that stands for one."""
    kind = plain(setting.kind)
    many = get_origin(kind) is Literal and _shown(setting).word == "NAME"
    return f" One of {', '.join(map(str, get_args(kind)))}." if many else ""


def _is_tuple(setting: Setting) -> bool:
    return get_origin(plain(setting.kind)) is tuple


def _is_switch(setting: Setting) -> bool:
    """Whether it is off unless it is given, so that nobody needs to turn it off."""
    return setting.value is False and "." not in setting.name


def _reader(setting: Setting) -> Callable[[str], Any]:
    kind = get_args(plain(setting.kind))[0] if _is_tuple(setting) else setting.kind

    def convert(word: str) -> Any:
        try:
            value = read_word(kind, word)
            if isinstance(value, int) and abs(value) > LARGEST:
                raise ValueError(f"must be at most {LARGEST:,}, not {shown(word)}")
            return value
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _help(setting: Setting) -> str:
    default = setting.value
    if default in (MISSING, None, "", ()) or _is_switch(setting):
        return setting.help.replace("%", "%%")
    if isinstance(default, bool):
        text = f"on; off with {negated(setting.option)}" if default else "off"
    else:
        text = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return f"{setting.help}{_listed(setting)} (default: {text})".replace("%", "%%")


def _with_hyphens(word: str) -> str:
    """Options may be typed with underscores, as the fields are written."""
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if word.startswith("--") else word


def likely(name: str, options: Sequence[str]) -> list[str]:
    """Options that were probably meant: with the same last name, with its initials, or with nearly the same letters."""
    word, last = name.lstrip("-"), {option.lstrip("-"): option.rpartition(".")[2].lstrip("-") for option in options}
    same = [o for o in last if last[o] == word.rpartition(".")[2]]
    initials = [o for o in last if "".join(part[:1] for part in last[o].split("-")) == word]
    close = nearest(word, last) or [o for near in nearest(word, last.values()) for o in last if last[o] == near]
    return [f"--{o}" for o in sorted(same or initials or close, key=len)[:3]]


def wrapped(text: str) -> str:
    """Paragraphs as the help shows them."""
    width = min(shutil.get_terminal_size().columns, WIDEST) - 2
    return "\n\n".join(textwrap.fill(part, width) for part in text.split("\n\n"))


def free_path(name: str) -> Path:
    """runs/name, or the first of runs/name-2, runs/name-3, … that is not there yet."""
    path, n = Path("runs") / name, 1
    while path.exists():
        n += 1
        path = Path("runs") / f"{name}-{n}"
    return path
