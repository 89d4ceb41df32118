"""Random command lines: right ones, wrong ones, and such as nobody would type."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import tutelage as tut
from soak.calls import Call, call
from soak.originals import Original
from tutelage.runs import presets, train

NUMBERS = ["0", "1", "2", "3", "-1", "7.5", "1e3", "nan", "inf", "-inf", "1e999", "2147483647", "2147483648"]
NUMBERS += ["99999999999", "3000000000000", "100000000000", "9" * 400, "1000000000", "0x10", "٣", "1_000"]
NUMBERS += ["", " ", "+1", "-0", "1e-400", "0.999"]
WORDS = ["", "x", "q[/a]", "[bold]", "a\nb", "ü\u2028", "x" * 300, "x" * 5000, "-", "--", "/", ".", "..", "~"]
WORDS += ["\x1b[31m", "\ud800", "%s", "{}", "$(x)", "=1+1", "true", "None", "maze", "accel", "sfl", "moon"]
WORDS += ["maze/accel", "lava/small", "bipedal/accel"]
FLAGS = {
    "eval": ["--suite", "--levels", "--episodes", "--checkpoint", "--greedy", "--real", "--cvar", "--level", "--list"],
    "levels": ["--top", "--lineage", "--seed", "--checkpoint", "--png", "--json"],
    "report": ["--out", "--suite", "--film"],
    "resume": ["--updates", "--devices"],
    "export": ["--hub", "--onnx", "--seed", "--checkpoint", "--half", "--licence"],
    "page": ["--out", "--students"],
    "sweep": ["--methods", "--grid", "--set", "--seeds", "--updates", "--engine", "--out"],
    "presets": [],
    "bench": ["--method", "--envs", "--seeds", "--updates"],
    "demo": ["--out", "--updates", "--seed"],
}
MODEST = ["1", "2", "0", "-1", "x", "nan", ""]  # for what is played or written as often as it is asked for


def settings(config: tut.Config) -> dict[str, Any]:
    """Every option of a config as it stands on the command line, and its value."""
    return {f"--{name.replace('_', '-')}": value for name, value in _fields(config, "")}


def _fields(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if dataclasses.is_dataclass(inner):
            yield from _fields(inner, f"{where}{field.name}.")
        else:
            yield f"{where}{field.name}", inner


def places(folder: Path, original: Original) -> list[Path]:
    """Paths that a command line may name: runs, and what is none."""
    (folder / "file").write_text("hello")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    run = folder / "run"
    shutil.copytree(original.stopped, run)
    found = [run, run, run, run / "config.json", run / "checkpoints", original.levels]
    found += [folder / "new", folder / "new", folder / "a" / "b", folder / "file" / "x", folder / ("x" * 300)]
    return found + [folder / name for name in ("file", "folder", "pipe", "loop", "q[/a]")]


def line(rng: Random, places: list[Path]) -> list[str]:
    """A command line; `places` are paths that it may name."""
    if rng.random() < 0.05:
        return [rng.choice([*WORDS, "--help", "-h", "--version", "train", "eval"]) for _ in range(rng.randrange(4))]
    command = rng.choice(["train", "train", "train", *FLAGS])
    words = _train(rng, places) if command == "train" else _other(rng, command, places)
    if rng.random() < 0.1:
        words.insert(rng.randrange(len(words) + 1), rng.choice(WORDS + NUMBERS))
    if rng.random() < 0.05 and words:
        del words[rng.randrange(len(words))]
    return [command, *words]


def _train(rng: Random, places: list[Path]) -> list[str]:
    slow = rng.random() < 0.1  # walkers, which take long to look at
    name = rng.choice([n for n in sorted(presets.PRESETS) if n.startswith("bipedal") == slow])
    words = ["--config", _path(rng, places)] if rng.random() < 0.15 else name.split("/")
    words += ["--out", _path(rng, places)]
    words += rng.choice([["--resume"], ["--devices", rng.choice(NUMBERS)], ["--yes"], ["--print-config"]] + [[]] * 8)
    known = settings(presets.PRESETS[name][1])
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        option = rng.choice(sorted(known))
        usual = NUMBERS if isinstance(known[option], int | float) else WORDS
        words += [option] + [rng.choice(usual if rng.random() < 0.9 else NUMBERS + WORDS)] * (rng.random() < 0.95)
    return words


def _other(rng: Random, command: str, places: list[Path]) -> list[str]:
    words = []
    if command in ("eval", "levels", "report", "resume", "export", "page"):
        words = [_path(rng, places) for _ in range(rng.choice([1, 1, 1, 1, 0, 2]))]
    if command in ("presets", "bench"):
        words = [rng.choice(WORDS)] * (rng.random() < 0.8)
    if command == "sweep":  # nothing is trained
        words = [rng.choice([*WORDS, "paper-maze", _path(rng, places)]), "--print-config"]
    if command in ("bench", "demo"):  # which would train for long if nothing were amiss
        words += ["--updates" if command == "demo" else "--envs", rng.choice(["0", "-1", "x", "", "nan", "9" * 400])]
    for _ in range(rng.choice([0, 1, 1, 2])):
        flags = FLAGS[command]
        words += [rng.choice(flags), _value(rng, places)] if flags else []
    return words


def _value(rng: Random, places: list[Path]) -> str:
    return rng.choice([rng.choice(MODEST), rng.choice(NUMBERS), rng.choice(WORDS), _path(rng, places)])


def _path(rng: Random, places: list[Path]) -> str:
    return str(rng.choice(places)) if rng.random() < 0.8 else rng.choice(WORDS)


def say(rng: Random, places: list[Path]) -> Call:
    """Calls a random command line, in which no training goes beyond its first step."""
    with _no_training():
        return call(*line(rng, places))


@contextmanager
def _no_training() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(train, "begin", lambda config, warn: None))
        stack.enter_context(patch.object(train, "_run", lambda trainer, beginning: None))
        yield
