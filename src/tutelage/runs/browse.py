"""Looking through a run's levels: the best of its buffers, and the ancestors of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tutelage.env import Level
from tutelage.errors import UserError
from tutelage.runs.run import Run


@dataclass(frozen=True)
class Found:
    """A level with its history and measures."""

    seed: int
    id: int
    parent: int
    generation: int
    birth: int
    score: float
    metrics: dict[str, float]
    level: Level

    def facts(self) -> dict[str, Any]:
        """Everything but the level itself, as plain data."""
        metrics = {k: None if np.isnan(v) else v for k, v in self.metrics.items()}
        keys = ("seed", "id", "parent", "generation", "birth", "score")
        return {k: getattr(self, k) for k in keys} | {"metrics": metrics}


def best(run: Run, top: int, seed: int | None = None, updates: int | None = None) -> list[Found]:
    """The levels of highest score in the buffers at a checkpoint, over all seeds or in one."""
    if top < 1:
        raise UserError(f"--top must be at least 1, not {top}.")
    seeds = list(run.config.all_seeds)
    buffer = jax.device_get(run.state(updates).buffer)
    chosen = [seeds.index(_known(run, seed))] if seed is not None else range(len(seeds))
    places = [(float(buffer.score[s, k]), s, k) for s in chosen for k in range(int(buffer.filled[s]))]
    places = sorted(places, key=lambda p: (-p[0], p[1], p[2]))[:top]
    levels = [jax.tree.map(lambda x, s=s, k=k: x[s, k], buffer.levels) for _, s, k in places]
    facts = [{"seed": seeds[s], "score": score, **_history(buffer, (s, k))} for score, s, k in places]
    return _measured(run, facts, levels)


def ancestors(run: Run, level_id: int, seed: int | None = None) -> list[Found]:
    """A level's line of descent, the first ancestor first. Scores are those of the day of admission."""
    seed = run.config.seed if seed is None else _known(run, seed)
    admitted = run.levels()
    line = admitted.lineage(seed, level_id)
    facts = [{"seed": seed, "score": float(admitted.score[i]), **_history(admitted, i)} for i in line]
    return _measured(run, facts, [admitted.level(i) for i in line])


def _history(levels: Any, where: Any) -> dict[str, int]:
    return {name: int(getattr(levels, name)[where]) for name in ("id", "parent", "generation", "birth")}


def _known(run: Run, seed: int) -> int:
    if seed not in run.config.all_seeds:
        raise UserError(f"{run.path} has no seed {seed}; it has {', '.join(map(str, run.config.all_seeds))}.")
    return seed


def _measured(run: Run, facts: list[dict[str, Any]], levels: list[Level]) -> list[Found]:
    if not levels:
        return []
    stacked = jax.tree.map(lambda *x: np.stack(x), *levels)
    described = jax.device_get(jax.jit(jax.vmap(run.config.env.design().describe))(stacked))
    metrics = [{k: float(v[n]) for k, v in described.items()} for n in range(len(levels))]
    return [Found(metrics=m, level=level, **f) for f, m, level in zip(facts, metrics, levels, strict=True)]
