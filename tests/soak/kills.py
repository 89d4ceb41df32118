"""Trainings that are killed at random moments, and resumed until they are done."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import tutelage as tut
from soak.originals import CONFIGS, arrays
from tutelage import cli
from tutelage.runs import checkpoint, presets
from tutelage.runs import config as configs

UPDATES = {"maze": 150, "lava": 150, "bipedal": 30}  # student updates, for some seconds of training
MOST = 8  # kills of one training
PATIENCE = 300.0  # seconds until a training must have begun


@dataclass(frozen=True)
class Nursery:
    """A process that has everything imported and nothing computed, and begins others like itself."""

    requests: Any
    answers: Any

    def begin(self, *args: object) -> int:
        """Starts a command in a process of its own; returns the process."""
        self._say(["begin", *map(str, args)])
        return int(self._hear())

    def end(self, process: int) -> int:
        """Waits for a process; the exit code, or minus the signal that ended it."""
        self._say(["end", str(process)])
        return int(self._hear())

    def _say(self, words: list[str]) -> None:
        self.requests.write(json.dumps(words) + "\n")
        self.requests.flush()

    def _hear(self) -> str:
        return self.answers.readline()


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Must be entered before JAX computes anything, since its threads do not survive a fork."""
    (heard, said), (told, answered) = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        os.close(said)
        os.close(told)
        _serve(os.fdopen(heard), os.fdopen(answered, "w"))
        os._exit(0)
    os.close(heard)
    os.close(answered)
    with os.fdopen(said, "w") as requests, os.fdopen(told) as answers:
        yield Nursery(requests, answers)
    os.waitpid(process, 0)


def _serve(requests: Any, answers: Any) -> None:
    for line in requests:
        word, *args = json.loads(line)
        if word == "begin":
            done = os.fork() or _run(args)
        else:
            status = os.waitpid(int(args[0]), 0)[1]
            done = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        answers.write(f"{done}\n")
        answers.flush()


def _run(args: list[str]) -> int:
    """In the new process: a command whose words go nowhere."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(quiet, file)
    try:
        code = cli.main(args)
    except BaseException:
        code = 70
    os._exit(code)


def write_config(env: str, folder: Path) -> Path:
    """A config for a training that lasts long enough to be killed."""
    config = replace(CONFIGS[env], updates=UPDATES[env], log_every=3, checkpoint_every=5, archive_every=50)
    path = folder / f"{env}.json"
    path.write_text(json.dumps(configs.to_json(config, presets.method_name(config.method))))
    return path


def contents(run: Path) -> dict[str, object]:
    """All that must be the same: the last state, every admitted level, and the metrics but for speed."""
    levels = tut.Run(run).levels()
    rows = [{k: v for k, v in row.items() if k != "steps_per_second"} for row in tut.Run(run).metrics()]
    facts = {name: getattr(levels, name).tobytes() for name in ("seed", "id", "parent", "generation", "birth", "score")}
    last = arrays(checkpoint.path_of(run / "checkpoints", tut.Run(run).config.updates))
    names = sorted(str(p.relative_to(run)) for p in run.rglob("*") if p.is_file())
    return {"last": last, "rows": rows, "names": names} | facts


def killed(rng: Random, nursery: Nursery, config: Path, run: Path, whole: dict[str, object]) -> tuple[int, list[str]]:
    """Kills a training again and again until it is done; how often, and what is wrong then."""
    kills = 0
    while True:
        process = nursery.begin(*_words(config, run))
        _wait(rng, run, process)
        if kills < MOST:
            os.kill(process, signal.SIGKILL)
        code = nursery.end(process)
        if code == 0:
            break
        if code != -signal.SIGKILL:
            return kills, [f"ended with {code}"]
        kills += 1
    there = contents(run)
    return kills, [f"{name} differ" for name in whole if whole[name] != there[name]]


def _words(config: Path, run: Path) -> tuple[object, ...]:
    begun = (run / "config.json").exists()
    return ("resume", run) if begun else ("train", "--config", config, "--out", run)


def _wait(rng: Random, run: Path, process: int) -> None:
    """Until a random moment: mostly while it trains, sometimes while it begins."""
    if rng.random() < 0.2:
        time.sleep(5 * rng.random())
        return
    before, began = _begun(run), time.monotonic()
    while _begun(run) == before and time.monotonic() - began < PATIENCE and _lives(process):
        time.sleep(0.01)
    time.sleep(rng.choice([0.02, 0.2, 1.0, 3.0]) * rng.random())


def _begun(run: Path) -> int:
    try:
        return (run / "history.jsonl").read_bytes().count(b'"begin"')
    except OSError:
        return 0


def _lives(process: int) -> bool:
    """Whether it has not ended yet; one that has is still there until somebody waits for it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
