"""Sweeps: each of some configs with each combination of some settings, a run for each.

A sweep is a folder. `sweep.json` says what its points are; each point is a run directory in it, which any process can
begin or go on with (`points.work`).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutelage.env import Domain
from tutelage.errors import UserError, nearest, shown
from tutelage.runs import config as configs
from tutelage.runs import presets, settings
from tutelage.runs.config import Config
from tutelage.runs.lock import Lock
from tutelage.runs.storage import Damaged, make_folder, parse_json, read_json, write_atomically

FILE = "sweep.json"
FORMAT = 1
MOST_POINTS = 10_000
LONGEST_NAME = 200  # bytes that a file's name may have, less some for what comes after it

Value = Any
"""What a setting may be: a number, a text, true or false, or nothing."""


@dataclass(frozen=True)
class Sweep:
    """Configs by name, and the values that settings take in each of them, by dotted name."""

    bases: Mapping[str, Config]
    grid: Mapping[str, tuple[Value, ...]] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        if not self.bases:
            raise UserError("A sweep needs at least one method.")
        for name, values in self.grid.items():
            if not values:
                raise UserError(f"The grid names no value of {name}.")
            if len({repr(v) for v in values}) < len(values):
                raise UserError(f"The grid names a value of {name} twice.")
        if len(self) > MOST_POINTS:
            raise UserError(f"A sweep of {len(self):,} points is more than the {MOST_POINTS:,} there may be.")

    @staticmethod
    def of_presets(
        env: str,
        methods: Sequence[str],
        shared: Mapping[str, Value] | None = None,
        grid: Mapping[str, tuple[Value, ...]] | None = None,
    ) -> Sweep:
        """Methods' presets on an env, with settings that all points share."""
        if len(set(methods)) < len(methods):
            raise UserError(f"A method is named twice in {', '.join(methods)}.")
        return Sweep({m: changed(presets.preset(env, m), shared or {}) for m in methods}, grid or {})

    def __len__(self) -> int:
        return len(self.bases) * math.prod(len(values) for values in self.grid.values())

    @property
    def names(self) -> list[str]:
        """The points, base after base; the last setting varies fastest."""
        return [name for name, _, _ in self._choices()]

    def config(self, name: str) -> Config:
        """The config of a point."""
        for known, base, choice in self._choices():
            if known == name:
                return changed(self.bases[base], choice)
        raise UserError(f"This sweep has no point {name!r}.")

    def choice(self, name: str) -> tuple[str, dict[str, Value]]:
        """What tells a point from the others: its base and its settings."""
        return next((base, choice) for known, base, choice in self._choices() if known == name)

    def _choices(self) -> Iterator[tuple[str, str, dict[str, Value]]]:
        varied = _short_names([name for name, values in self.grid.items() if len(values) > 1])
        for base in self.bases:
            for values in itertools.product(*self.grid.values()):
                choice = dict(zip(self.grid, values, strict=True))
                yield _named(base, {short: choice[name] for name, short in varied.items()}), base, choice

    def check(self) -> None:
        """Refuses what cannot be trained: every value of every setting is tried in one point at least."""
        names = self.names
        if odd := next((n for n in names if len(n.encode()) > LONGEST_NAME or names.count(n) > 1), None):
            raise UserError(f"The point {shown(odd)} cannot have a folder of its own name: name its values shorter.")
        for base, config in self.bases.items():
            for n in range(max((len(values) for values in self.grid.values()), default=1)):
                choice = {name: values[n % len(values)] for name, values in self.grid.items()}
                try:
                    changed(config, choice).classroom()
                except UserError as error:
                    raise UserError(f"{base}: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; configs in full, so that presets may change."""
        bases = {n: configs.to_json(c, presets.method_name(c.method)) for n, c in self.bases.items()}
        return {"format": FORMAT, "bases": bases, "grid": {name: list(values) for name, values in self.grid.items()}}


def from_json(data: Any, domain: Domain | None = None) -> Sweep:
    """What `to_json` wrote, or a file by hand: `env`, `methods`, and if wanted `settings` and `grid`."""
    if not isinstance(data, dict) or data.get("format", FORMAT) != FORMAT:
        raise UserError(f"this is not a sweep of format {FORMAT}.")
    known = {"bases", "grid", "format"} if "bases" in data else {"env", "methods", "settings", "grid", "format"}
    if unknown := sorted(set(data) - known):
        raise UserError(f"unknown field {shown(unknown[0])}; known: {', '.join(sorted(known))}.")
    grid = {name: _several(name, values) for name, values in _object(data, "grid").items()}
    if "bases" in data:
        bases = _object(data, "bases")
        read = {n: configs.from_json(c, presets.DOMAINS, presets.METHODS, domain) for n, c in bases.items()}
        return Sweep(read, grid)
    env, methods = data.get("env"), data.get("methods")
    if not isinstance(env, str) or not isinstance(methods, list) or not all(isinstance(m, str) for m in methods):
        raise UserError('it must have "env", a name, and "methods", a list of names.')
    return Sweep.of_presets(env, methods, _object(data, "settings"), grid)


def _object(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(value := data.get(name, {}), dict):
        raise UserError(f"{name} must be an object.")
    return value


def _several(name: str, values: Any) -> tuple[Value, ...]:
    if not isinstance(values, list):
        raise UserError(f"grid.{name} must be a list of values.")
    return tuple(values)


def load(path: Path, domain: Domain | None = None) -> Sweep:
    """Reads the file of a sweep."""
    try:
        return from_json(read_json(path), domain)
    except Damaged as error:
        raise UserError(f"{path} cannot be read as a sweep ({error}).") from error
    except (UserError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error


@contextmanager
def opened(folder: Path, sweep: Sweep) -> Iterator[None]:
    """A sweep's folder, made or found, for this process alone; refuses one that holds something else.

    What decides no number so far, such as how many student updates there are to be, may have changed.
    """
    _check_folder(folder, sweep)
    make_folder(folder)
    with Lock(folder):
        _check_folder(folder, sweep)  # another process may have been faster
        write_atomically(folder / FILE, (json.dumps(sweep.to_json(), indent=1) + "\n").encode())
        yield


def _check_folder(folder: Path, sweep: Sweep) -> None:
    path = folder / FILE
    if path.exists():
        if (text := _difference(load(path), sweep)) is not None:
            raise UserError(f"{folder} is another sweep: {text}; choose another --out.")
    elif folder.exists() and any(entry.name != ".lock" for entry in folder.iterdir()):
        raise UserError(f"{folder} is already in use: choose another --out.")


def _difference(there: Sweep, here: Sweep) -> str | None:
    """The first thing in which two sweeps are not the same."""
    if list(there.bases) != list(here.bases):
        return f"its methods are {', '.join(there.bases)} there and {', '.join(here.bases)} here"
    if dict(there.grid) != dict(here.grid):
        name = next(n for n in [*there.grid, *here.grid] if there.grid.get(n) != here.grid.get(n))
        return f"the grid's {name} is {shown(there.grid.get(name))} there and {shown(here.grid.get(name))} here"
    for name, config in here.bases.items():
        base = there.bases[name]
        data = configs.to_json(base, presets.method_name(base.method))
        if (text := configs.difference(data, config, presets.method_name(config.method))) is not None:
            return f"{name}'s {text}"
    return None


# Settings by name


def changed(config: Config, values: Mapping[str, Value]) -> Config:
    """The config with some settings, by dotted names, each of the type that it must have."""
    known = {setting.name: setting for setting in settings.settings(config)}
    for name in values:
        if name not in known:
            raise UserError(_unknown(name, known))
    changes = {name: configs.typed(settings.bare(known[name].kind), value, name) for name, value in values.items()}
    return settings.changed(config, changes)


def _unknown(name: str, known: Iterable[str]) -> str:
    """There is no such setting, but perhaps one that is spelled much like it, or ends in the same word."""
    last = name.rpartition(".")[2]
    alike = [*nearest(name, sorted(known)), *sorted(n for n in known if n.endswith(f".{last}"))]
    return f"there is no setting {shown(name)}" + (f"; did you mean {alike[0]}?" if alike else ".")


def parse_setting(text: str) -> tuple[str, tuple[Value, ...]]:
    """`ppo.epochs=5,20`: a setting's dotted name and its values, which are JSON or texts."""
    name, equals, values = text.partition("=")
    if not name or not equals or not values:
        raise UserError(f"A setting is given as NAME=VALUE or NAME=VALUE,VALUE…, not {shown(text)}.")
    return name.replace("-", "_"), tuple(_value(part) for part in values.split(","))


def _value(text: str) -> Value:
    try:
        return parse_json(text)
    except ValueError:
        return text


# Names of points


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """For each dotted name the fewest of its last words that no other ends in."""
    short = {}
    for name in names:
        parts = name.split(".")
        endings = [".".join(parts[-n:]) for n in range(1, len(parts) + 1)]
        short[name] = next(
            (e for e in endings if not any(o != name and f".{o}".endswith(f".{e}") for o in names)), name
        )
    return short


def _named(base: str, settings: Mapping[str, Value]) -> str:
    """accel_capacity=1000_replay-rate=0.5"""
    words = [f"{name.replace('_', '-')}={_as_word(value)}" for name, value in settings.items()]
    return "_".join([re.sub(r"[^\w.+-]", "-", base), *words])


def _as_word(value: Value) -> str:
    """A value as part of a file's name."""
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"[^\w.+-]", "-", text, flags=re.ASCII)
