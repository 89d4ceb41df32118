"""Small runs of three envs, made once, to which the worst is then done."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tutelage as tut
from tutelage.runs import checkpoint
from tutelage.runs.browse import best
from tutelage.runs.evaluate import Result, write_csv
from tutelage.runs.evaluations import Subject
from tutelage.runs.storage import read_arrays

DONE, WANTED = 3, 5  # student updates when a run was stopped, and those that its config asks for

_STUDENT = tut.StudentConfig(memory=False, hidden=16, head=8)
_CADENCE = dict(updates=WANTED, log_every=1, eval_every=0, checkpoint_every=1, archive_every=1)


def _small(
    preset: str, env: dict[str, Any], slots: int, steps: int, student: tut.StudentConfig = _STUDENT, **buffer: Any
) -> tut.Config:
    config = tut.preset(*preset.split("/"))
    return replace(
        config,
        env=replace(config.env, **env),
        method=replace(config.method, buffer=replace(config.method.buffer, **buffer)),
        student=student,
        ppo=replace(config.ppo, epochs=1, minibatches=1),
        slots=slots,
        steps=steps,
        seeds=2,
        **_CADENCE,
    )


CONFIGS = {
    "maze": _small("maze/accel", dict(size=5, max_steps=20), 8, 24, capacity=24),
    "lava": _small("lava/small", {}, 4, 100, tut.preset("lava", "small").student, capacity=12, min_fill=0.2),
    "bipedal": _small("bipedal/accel", dict(max_steps=8), 4, 10, capacity=12, min_fill=0.2),
}


@dataclass(frozen=True)
class Original:
    """A run that was stopped, one that was finished, a file of levels, and the arrays in which it must end."""

    stopped: Path
    finished: Path
    levels: Path
    config: tut.Config
    last: dict[str, bytes]

    @property
    def suite(self) -> str | None:
        """The suite that is played in a moment."""
        return {"maze": "small", "lava": "lava"}.get(self.config.env.name)


def make(env: str, folder: Path) -> Original:
    """Trains an env's small run, and stops another one early."""
    config, finished, stopped = CONFIGS[env], folder / env / "finished", folder / env / "stopped"
    tut.train(config, finished)
    tut.train(replace(config, updates=DONE), stopped)
    shutil.copy(finished / "config.json", stopped / "config.json")
    for path, updates in ((finished, WANTED), (stopped, DONE)):
        _add_results(tut.Run(path), updates)
    levels = folder / env / "levels.json"
    design = config.env.design()
    levels.write_text(json.dumps([{"level": design.to_json(f.level)} for f in best(tut.Run(finished), 2)]))
    return Original(stopped, finished, levels, config, arrays(checkpoint.path_of(finished / "checkpoints", WANTED)))


def _add_results(run: tut.Run, updates: int) -> None:
    """Results that nobody played, of each suite of the env."""
    for name, suite in run.config.env.suites().items():
        results = [Result(level.name, seed, 3, 0.5, 0.25, 7.0) for level in suite for seed in run.config.all_seeds]
        write_csv(run.path / "evals" / Subject(name, updates).file_name, results)


def arrays(path: Path) -> dict[str, bytes]:
    """A checkpoint's arrays as they lie in memory."""
    return {name: array.tobytes() for name, array in read_arrays(path)[0].items()}
