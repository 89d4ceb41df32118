"""Runs from their beginning to their end: one directory each, which any process can go on with."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tutelage.errors import UserError
from tutelage.runs import archive, checkpoint, claim, history, metrics, presets, standing
from tutelage.runs import config as configs
from tutelage.runs.config import Config
from tutelage.runs.flags import start_jax
from tutelage.runs.lock import Lock
from tutelage.runs.run import Run, state_template
from tutelage.runs.signals import Interrupted
from tutelage.runs.start import Beginning, begin
from tutelage.runs.storage import check_changeable, put_aside, read_rows, tidy, write_atomically
from tutelage.runs.trainer import KEPT_CHECKPOINTS, Progress, Trainer, Warn

OnProgress = Callable[[Progress], None]


def train(
    config: Config,
    out: str | Path,
    *,
    resume: bool = False,
    start: str | Path | None = None,
    devices: int = 1,
    on_progress: OnProgress = lambda p: None,
    warn: Warn = lambda text: None,
) -> Run:
    """Trains a run to its end: a new one, or with `resume` whatever there is of this config in the directory.

    It may `start` from a checkpoint of another run, whose file this is; it is a setting of the config too. Seeds may be
    spread over several `devices` of this host. The same number of them gives the same bits.
    """
    path = Path(out)
    config = configs.starting(config, start)
    start_jax(config.env)
    if resume and not claim.is_free(path):
        return _go_on(_same(path, config), config, on_progress, warn, devices)
    claim.check_free(path)
    trainer = Trainer(config, path, on_progress, warn, devices)
    trainer.check()
    beginning = begin(config, warn)
    with claim.claimed(path, _file_of(config)):
        _run(trainer, beginning)
    return Run(path, config.env)


def _file_of(config: Config) -> bytes:
    """What `config.json` holds."""
    return (json.dumps(configs.to_json(config, presets.method_name(config.method)), indent=2) + "\n").encode()


def resume(
    out: str | Path,
    *,
    domain: Any = None,
    updates: int | None = None,
    devices: int | None = None,
    on_progress: OnProgress = lambda p: None,
    warn: Warn = lambda text: None,
) -> Run:
    """Goes on with a run from its newest whole checkpoint, as if it had never stopped; to `updates`, if given.

    It goes on with as many `devices` as before, if no other number is given.
    """
    run = Run(Path(out), domain)
    start_jax(run.config.env)
    config = run.config if updates is None else replace(run.config, updates=updates)
    return _go_on(run, config, on_progress, warn, history.devices_of(run.path) if devices is None else devices)


def _same(path: Path, config: Config) -> Run:
    """The run in a directory, which must be of this config, but for what decides no number so far."""
    run = Run(path, config.env)
    there = configs.to_json(run.config, presets.method_name(run.config.method))
    if (text := configs.difference(there, config, presets.method_name(config.method))) is not None:
        raise UserError(f"{path} is a run with another config: {text}.")
    return run


def _go_on(run: Run, config: Config, on_progress: OnProgress, warn: Warn, devices: int) -> Run:
    with Lock(run.path):
        beginning = _newest(run, warn)
        updates = beginning.updates
        if config.updates < updates:
            raise UserError(f"{run.path} has done {updates:,} student updates already.")
        if config.updates == updates:
            checkpoint.prune(run.path / "checkpoints", KEPT_CHECKPOINTS, run.config.archive_every)
            warn(f"{run.path} is finished, after {updates:,} student updates; `--updates` makes it go on.")
            return run
        trainer = Trainer(config, run.path, on_progress, warn, devices)
        trainer.check()
        _check_changeable(run.path)
        if config != run.config:
            write_atomically(run.path / "config.json", _file_of(config))
        rows = _forget_after(run.path, updates, warn)
        if updates > history.first(run.path):
            metrics.check_whole(rows, run.config.all_seeds, updates, warn)
        _run(trainer, beginning)
    return Run(run.path, run.domain)


def _newest(run: Run, warn: Warn) -> Beginning:
    """The state to go on from. It is the first only where nothing is lost by beginning anew."""
    there = standing.look(run.path, run.domain)
    if there.kind in ("lost", "unreadable"):
        raise UserError(there.why)
    if there.kind == "begun":
        return begin(run.config, warn)
    folder = run.path / "checkpoints"
    return Beginning(checkpoint.load_newest(folder, state_template(run.config), warn, run.difference)[1])


def _check_changeable(path: Path) -> None:
    """Refuses a run that could not be gone on with, while it is as it was."""
    for name in claim.FOLDERS:
        if os.path.lexists(path / name) and not (path / name).is_dir():
            raise UserError(f"{path / name} is not a folder.")
    for name in ("", *claim.FOLDERS, "metrics.jsonl", history.FILE):
        check_changeable(path / name)
    read_rows(path / "metrics.jsonl", len)
    history.read(path)
    archive.segments(path / "levels")


def _forget_after(path: Path, updates: int, warn: Warn) -> list[metrics.Place]:
    """What comes after a checkpoint is done again; damaged checkpoints are kept under another name. Says of what
    the rows of metrics before are.
    """
    for folder in (path, *(path / name for name in claim.FOLDERS[:2])):
        tidy(folder)
    claim.furnish(path)
    for later in checkpoint.available(path / "checkpoints"):
        if later > updates:
            put_aside(checkpoint.path_of(path / "checkpoints", later))
    rows = metrics.truncate(path / "metrics.jsonl", updates, warn)
    archive.drop_after(path / "levels", updates)
    return rows


def _run(trainer: Trainer, beginning: Beginning) -> None:
    config, path, since = trainer.config, trainer.path, beginning.updates
    began = time.monotonic()
    for text in history.changes(path, trainer.devices):
        trainer.warn(text)
    history.write(path, "begin", updates=since, **history.circumstances(trainer.devices))
    sinks = metrics.open_sinks(path, config.track, configs.to_json(config, presets.method_name(config.method)), since)
    try:
        with trainer.requests:
            trainer.train(beginning, sinks)
        history.write(path, "end", updates=config.updates, seconds=round(time.monotonic() - began, 1))
    except Interrupted as stop:
        seconds = round(time.monotonic() - began, 1)
        history.write(path, "stop", updates=stop.updates, seconds=seconds, signal=signal.Signals(stop.number).name)
        raise
    finally:
        for sink in sinks:
            sink.close()
