"""Two runs on disk that nobody trained: one on mazes, one on an env of one's own that draws no episodes."""

import json
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from toys import jumper, tiny_maze
from tutelage.runs import archive, checkpoint, presets
from tutelage.runs import config as configs
from tutelage.runs.archive import Admitted
from tutelage.runs.config import Config
from tutelage.runs.evaluate import Result
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
    return Admitted(np.repeat(np.asarray(config.all_seeds, np.int32), FILLED), *facts, stacked)


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


def write_run(config: Config, path: Path) -> Run:
    """A run directory as training leaves it."""
    (path / "checkpoints").mkdir(parents=True)
    (path / "levels").mkdir()
    plain = configs.to_json(config, presets.method_name(config.method))
    (path / "config.json").write_text(json.dumps(plain))
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metric_rows(config.seeds)))
    admitted = descent(config)
    archive.write(path / "levels", UPDATES, admitted)
    checkpoint.save(path / "checkpoints", UPDATES, _filled(config, admitted), plain)
    return Run(path, config.env)


def _filled(config: Config, admitted: Admitted):
    state = initial_state(config)
    buffer = state.buffer
    new = {name: getattr(admitted, name) for name in ("id", "parent", "generation", "birth", "score")} | {
        "levels": admitted.levels
    }
    for name, values in new.items():
        put = jax.tree.map(
            lambda old, x: old.at[:, :FILLED].set(x.reshape(config.seeds, FILLED, *x.shape[1:])),
            getattr(buffer, name),
            values,
        )
        buffer = eqx.tree_at(lambda b, name=name: getattr(b, name), buffer, put)
    buffer = eqx.tree_at(lambda b: b.filled, buffer, buffer.filled + FILLED)
    return eqx.tree_at(lambda s: s.buffer, state, buffer)


@pytest.fixture(scope="session")
def maze_run(tmp_path_factory) -> Run:
    return write_run(tiny_maze(seeds=2), tmp_path_factory.mktemp("runs") / "maze")


@pytest.fixture(scope="session")
def own_run(tmp_path_factory) -> Run:
    return write_run(jumper(method=tiny_maze().method), tmp_path_factory.mktemp("runs") / "<own & only>")


@pytest.fixture
def results() -> list[Result]:
    """Of two levels of the suite `small`: one never solved, one by the second seed only."""
    rates = {"SBend": (0.0, 0.0), "Choice": (0.0, 0.5)}
    return [Result(name, seed, 20, r, r, 100.0) for name, both in rates.items() for seed, r in enumerate(both)]
