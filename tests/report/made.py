"""Runs on disk that nobody trained."""

import json
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from tutelage.runs import archive, checkpoint, presets
from tutelage.runs import config as configs
from tutelage.runs.archive import Admitted
from tutelage.runs.config import Config
from tutelage.runs.evaluate import Result, write_csv
from tutelage.runs.run import Run, initial_state

UPDATES, FILLED, DEEPEST = 6, 20, 13  # levels 0 … 13 are one line of descent, the others come from the generator


def descent(config: Config) -> Admitted:
    """What every seed admitted: level i is the child of level i − 1 as far as DEEPEST; the score is i/100."""
    design, ids = config.env.design(), np.arange(FILLED)
    edit, sample = jax.jit(lambda k, level: design.edit(k, level, 2)), jax.jit(design.sample)
    keys = jax.random.split(jax.random.key(7), FILLED)
    levels = [sample(keys[0])]
    for i in ids[1:]:
        levels.append(edit(keys[i], levels[-1]) if i <= DEEPEST else sample(keys[i]))
    line = np.where(ids <= DEEPEST, ids, 0)
    one = [ids, np.where(line > 0, ids - 1, -1), line, ids // 4, ids / 100]
    seeds = config.seeds
    facts = [np.tile(x, seeds).astype(np.float32 if x.dtype == float else np.int32) for x in one]
    stacked = jax.tree.map(lambda *x: np.tile(np.stack(x), (seeds,) + (1,) * x[0].ndim), *levels)
    return Admitted(stacked, *facts, np.repeat(np.asarray(config.all_seeds, np.int32), FILLED))


def metric_rows(seeds: int, points: int = 5) -> list[dict]:
    """Made-up metrics of a domain whose levels have a `depth`."""
    return [
        {
            "updates": 10 * (n + 1),
            "seed": seed,
            "env_steps": 1000 * (n + 1),
            "replay/solved": 0.1 * n + 0.05 * seed,
            "explore/solved": 0.2,
            "edit/solved": None,
            "eval/solved": 0.3 if n % 2 else None,
            "buffer/depth": float(n),
            "buffer/depth_replay": 2.0 * n,
            "buffer/fill": 1.0,
        }
        for n in range(points)
        for seed in range(seeds)
    ]


def write_config(config: Config, path: Path) -> Run:
    """A run that has not begun."""
    path.mkdir(exist_ok=True)
    plain = configs.to_json(config, presets.method_name(config.method))
    (path / "config.json").write_text(json.dumps(plain))
    return Run(path, config.env)


def write_run(config: Config, path: Path, checkpoints: Sequence[int] = (UPDATES,)) -> Run:
    """A run directory as training leaves it; all checkpoints are of the same state."""
    (path / "checkpoints").mkdir(parents=True)
    (path / "levels").mkdir()
    write_config(config, path)
    plain = configs.to_json(config, presets.method_name(config.method))
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metric_rows(config.seeds)))
    admitted = descent(config)
    archive.write(path / "levels", UPDATES, admitted)
    for updates in checkpoints:
        checkpoint.save(path / "checkpoints", updates, _filled(config, admitted, updates), plain)
    return Run(path, config.env)


def _filled(config: Config, admitted: Admitted, updates: int):
    state = initial_state(config)
    state = eqx.tree_at(lambda s: s.updates, state, state.updates + updates)
    buffer = state.buffer
    for name, values in vars(admitted.record).items():
        put = jax.tree.map(
            lambda old, x: old.at[:, :FILLED].set(x.reshape(config.seeds, FILLED, *x.shape[1:])),
            getattr(buffer, name),
            values,
        )
        buffer = eqx.tree_at(lambda b, name=name: getattr(b, name), buffer, put)
    buffer = eqx.tree_at(lambda b: b.filled, buffer, buffer.filled + FILLED)
    returns = buffer.best_return.at[:, :FILLED].set(0.5 * (np.arange(FILLED) % 2))  # every other level was solved
    buffer = eqx.tree_at(lambda b: b.best_return, buffer, returns)
    return eqx.tree_at(lambda s: s.buffer, state, buffer)


def write_results(run: Run, suite: str, rates: dict[str, float]) -> None:
    """What `tutelage eval` leaves behind: seed n solves n/10 more than the rate."""
    seeds = run.config.all_seeds
    rows = [Result(name, s, 20, min(1.0, r + s / 10), r, 100.0) for name, r in rates.items() for s in seeds]
    write_csv(run.path / "evals" / f"{suite}-{UPDATES:08d}.csv", rows)


RATES = {"SBend": 0.0, "Spiral": 0.2, "Choice": 0.5}
