"""Looking through a run's levels: the best of its buffers, and the ancestors of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from tutelage.curricula.buffer import Buffer
from tutelage.curricula.record import Record
from tutelage.env import DesignSpace, Level
from tutelage.errors import UserError, reason
from tutelage.runs.run import Run

HISTORY = ("id", "parent", "generation", "birth", "score")
PORTION = 512  # levels described at once


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
        return {k: getattr(self, k) for k in ("seed", *HISTORY)} | {"metrics": metrics}


@dataclass(frozen=True, eq=False)
class Holdings:
    """N levels of one seed: their records as NumPy's arrays, and their measures by name, `[N]` each."""

    seed: int
    record: Record
    metrics: Mapping[str, np.ndarray]
    design: DesignSpace

    @staticmethod
    def of(record: Record, seed: int, design: DesignSpace) -> Holdings:
        """From the records of some levels, which are described here."""
        return Holdings(seed, record, described(design, record.level), design)

    def __len__(self) -> int:
        return len(self.record.id)

    def __iter__(self) -> Iterator[Found]:
        return map(self.found, range(len(self)))

    def found(self, n: int) -> Found:
        """The n-th of them, which must be one that its design space could have made."""
        record = self.record.at(n)
        try:
            self.design.from_json(self.design.to_json(record.level))
        except (ValueError, IndexError, OverflowError) as error:
            raise UserError(f"Level {record.id} of seed {self.seed} is damaged: {reason(error)}") from error
        return Found.of(record, self.seed, {name: x[n] for name, x in self.metrics.items()})

    def first(self, n: int) -> Holdings:
        """The first of them, `n` at most."""
        metrics = {name: x[:n] for name, x in self.metrics.items()}
        return Holdings(self.seed, self.record.at(slice(n)), metrics, self.design)


def best(run: Run, top: int, seed: int | None = None, updates: int | None = None) -> list[Found]:
    """The levels of highest score in the buffers at a checkpoint, over all seeds or in one."""
    if top < 1:
        raise UserError(f"--top must be at least 1, not {top}.")
    seeds = run.config.all_seeds if seed is None else [_known(run, seed)]
    buffer, design = jax.device_get(run.state(updates).buffer), run.config.env.design()
    found = [f for s in seeds for f in best_of(buffer, run.config.all_seeds.index(s), s, design, top)]
    return sorted(found, key=lambda f: -f.score)[:top]


def best_of(buffer: Buffer, place: int, seed: int, design: DesignSpace, top: int | None = None) -> Holdings:
    """What one seed's buffer held, highest score first; `place` is where the seed stands in the stacked buffers."""
    order = np.argsort(-buffer.score[place, : buffer.filled[place]], kind="stable")[:top]
    return Holdings.of(buffer.record.at((place, order)), seed, design)


def ancestors(run: Run, level_id: int, seed: int | None = None) -> list[Found]:
    """A level's line of descent, the first ancestor first. Scores are those of the day of admission."""
    seed = run.config.seed if seed is None else _known(run, seed)
    admitted = run.levels()
    return list(Holdings.of(admitted.record.at(admitted.lineage(seed, level_id)), seed, run.config.env.design()))


def described(design: DesignSpace, levels: Level) -> dict[str, np.ndarray]:
    """Every measure of stacked levels; in portions of one size, so that one program is compiled."""
    describe, n = _describer(design), len(jax.tree.leaves(levels)[0])
    parts = []
    for start in range(0, n, PORTION):
        rows = np.arange(start, start + PORTION).clip(max=n - 1)
        parts.append(jax.device_get(describe(jax.tree.map(lambda x, rows=rows: x[rows], levels))))
    return {name: np.concatenate([part[name] for part in parts])[:n] for name in parts[0]} if parts else {}


@lru_cache(maxsize=16)
def _describer(design: DesignSpace) -> Callable[[Level], Mapping[str, Any]]:
    return jax.jit(jax.vmap(design.describe))


def _known(run: Run, seed: int) -> int:
    if seed not in run.config.all_seeds:
        raise UserError(f"{run.path} has no seed {seed}; it has {', '.join(map(str, run.config.all_seeds))}.")
    return seed
