"""The settings of a dataclass by dotted name: what there are, what each is for, and a dataclass with some changed.

A setting is a field of a plain kind, in the dataclass itself or in one that it holds. What a dataclass says against a
value is worded here too: it names its own fields in backquotes, and cannot know where it stands.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tutelage.errors import UserError, listed, shown

D = TypeVar("D")

PLAIN = (bool, int, float, str, Path)

CHIEF = {"chief": True}
"""Marks the field of a dataclass whose option is called as the whole dataclass is: `--track` for `track.to`."""


@dataclass(frozen=True)
class Setting:
    """A setting: what it is called, what may stand there, what stands there, and what it is for."""

    name: str
    kind: Any
    value: Any
    help: str
    part: str = ""
    """What the dataclass that it is a field of is for, if that is held by another."""
    chief: bool = False
    """Whether its option is called as that dataclass is."""

    @property
    def option(self) -> str:
        """What it is called on the command line."""
        name = self.name.rpartition(".")[0] if self.chief else self.name
        return f"--{name.replace('_', '-')}"


def settings(of: Any, where: str = "", part: str = "") -> Iterator[Setting]:
    """Every setting of a dataclass or, with its defaults, of a class; those of one that it holds come in its place."""
    cls = of if isinstance(of, type) else type(of)
    hints, sentences = get_type_hints(cls, include_extras=True), sentences_of(cls)
    for field in dataclasses.fields(cls):
        kind, value = hints[field.name], _default(field) if cls is of else getattr(of, field.name)
        sentence = sentences.get(field.name, "")
        if is_plain(kind):
            yield Setting(where + field.name, kind, value, sentence, part, "chief" in field.metadata)
        elif dataclasses.is_dataclass(value) and (isinstance(kind, TypeVar) or dataclasses.is_dataclass(plain(kind))):
            yield from settings(value, f"{where}{field.name}.", sentence)


def _default(field: dataclasses.Field) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def plain(kind: Any) -> Any:
    """A kind without annotations, and without the possibility that there is no value."""
    if get_origin(kind) is Annotated:
        return plain(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType) and type(None) in get_args(kind):
        (kind,) = (k for k in get_args(kind) if k is not type(None))
    return kind


def bare(kind: Any) -> Any:
    """A kind without annotations."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def is_plain(kind: Any) -> bool:
    """Whether a value of this kind can be read from words: one of a few types, a choice, or a tuple of such."""
    kind = plain(kind)
    return kind in PLAIN or get_origin(kind) is Literal or (get_origin(kind) is tuple and is_plain(get_args(kind)[0]))


def read(kind: Any, words: Sequence[str]) -> Any:
    """A value from words, one but for a tuple; a `ValueError` says what the setting must be."""
    kind = plain(kind)
    if get_origin(kind) is tuple:
        return tuple(read_word(get_args(kind)[0], word) for word in words)
    (word,) = words
    return read_word(kind, word)


def read_word(kind: Any, word: str) -> Any:
    """A value from one word."""
    kind = plain(kind)
    if get_origin(kind) is Literal:
        values = {str(value): value for value in get_args(kind)}
        if word in values:
            return values[word]
        raise ValueError(f"must be one of {listed(kind)}, not {shown(word)}")
    if kind is bool:
        return read_word(Literal["true", "false"], word.lower()) == "true"
    try:
        return kind(word)
    except ValueError as error:
        what = {int: "a whole number", float: "a number"}.get(kind, f"a {kind.__name__}")
        raise ValueError(f"must be {what}, not {shown(word)}") from error


def changed(of: D, changes: Mapping[str, Any], where: str = "") -> D:
    """The dataclass with other values for some settings, by dotted name; a `UserError` names the one that cannot be."""
    fields = {name: value for name, value in changes.items() if "." not in name}
    for part in {name.partition(".")[0] for name in changes if "." in name}:
        inner = {name.partition(".")[2]: value for name, value in changes.items() if name.startswith(f"{part}.")}
        fields[part] = changed(getattr(of, part), inner, f"{where}{part}.")
    try:
        return dataclasses.replace(of, **fields)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except ValueError as error:
        raise UserError(as_options(str(error), where)) from error


def as_options(text: str, where: str = "") -> str:
    """A sentence in which a dataclass names its own fields, with their options; `where` is the dataclass's place."""
    return _OWN.sub(lambda field: f"--{where}{field[1]}".replace("_", "-"), text)


def as_fields(text: str, where: str = "") -> str:
    """A sentence in which a dataclass names its own fields, with their dotted names."""
    return _OWN.sub(lambda field: where + field[1], text)


_OWN = re.compile(r"`([a-z_.]+)`")


@cache
def sentences_of(cls: type) -> dict[str, str]:
    """The sentence under each field of a dataclass, on one line; those of its bases included."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= _own_sentences(base) if dataclasses.is_dataclass(base) else {}
    return found


def _own_sentences(cls: type) -> dict[str, str]:
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):  # a class that was made without a file
        return {}
    (definition,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
