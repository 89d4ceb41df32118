"""Looking through a run's levels: the best of its buffers, and the ancestors of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from tutelage.curricula.record import Record
from tutelage.errors import UserError
from tutelage.runs.run import Run


class Found(Record):
    """A level with its seed and its measures; all but the level in plain numbers."""

    seed: int
    metrics: dict[str, float]

    @staticmethod
    def of(record: Record, seed: int, metrics: dict[str, Any]) -> Found:
        """From the record of one level, and what its measures came to."""
        plain = {k: v if k == "level" else v.item() for k, v in vars(record).items()}
        return Found(**plain, seed=seed, metrics={k: float(v) for k, v in metrics.items()})

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
    return _measured(run, [(seeds[s], buffer.record.at((s, k))) for _, s, k in places])


def ancestors(run: Run, level_id: int, seed: int | None = None) -> list[Found]:
    """A level's line of descent, the first ancestor first. Scores are those of the day of admission."""
    seed = run.config.seed if seed is None else _known(run, seed)
    admitted = run.levels()
    line = admitted.lineage(seed, level_id)
    return _measured(run, [(seed, admitted.record.at(i)) for i in line])


def _known(run: Run, seed: int) -> int:
    if seed not in run.config.all_seeds:
        raise UserError(f"{run.path} has no seed {seed}; it has {', '.join(map(str, run.config.all_seeds))}.")
    return seed


def _measured(run: Run, chosen: Sequence[tuple[int, Record]]) -> list[Found]:
    """Records by seed, with their measures."""
    if not chosen:
        return []
    stacked = jax.tree.map(lambda *x: np.stack(x), *[record.level for _, record in chosen])
    described = jax.device_get(jax.jit(jax.vmap(run.config.env.design().describe))(stacked))
    return [Found.of(record, seed, {k: v[n] for k, v in described.items()}) for n, (seed, record) in enumerate(chosen)]
