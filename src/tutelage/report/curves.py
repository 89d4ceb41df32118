"""From rows of metrics to curves: the mean over seeds and its standard error, over student updates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tutelage.statistics import Summary

Rows = Sequence[Mapping[str, Any]]

MAX_POINTS = 160


@dataclass(frozen=True)
class Curve:
    """One quantity, N points; `error` is NaN where a single seed tells none."""

    updates: np.ndarray
    mean: np.ndarray
    error: np.ndarray


def curve(rows: Rows, name: str) -> Curve | None:
    """The curve of a metric, or None if no row has a number for it.

    Where there are more than MAX_POINTS log points, neighbours are averaged, seed by seed.
    """
    points: defaultdict[int, defaultdict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    place = _places(rows)
    for row in rows:
        if _is_number(row.get(name)):
            points[place[row["updates"]]][row["seed"]].append((row["updates"], row[name]))
    if not points:
        return None
    by_seed = [[np.mean(pairs, axis=0) for pairs in points[p].values()] for p in sorted(points)]
    updates = [float(np.mean([u for u, _ in seeds])) for seeds in by_seed]
    values = [Summary.of([float(v) for _, v in seeds]) for seeds in by_seed]
    return Curve(np.array(updates), np.array([v.mean for v in values]), np.array([v.error for v in values]))


def updates_per_point(rows: Rows) -> int:
    """How many student updates a point of a curve stands for."""
    steps = sorted({row["updates"] for row in rows})
    return round(steps[-1] / (1 + max(_places(rows).values()))) if steps else 0


def seeds_of(rows: Rows) -> int:
    """How many seeds the rows tell of."""
    return len({row["seed"] for row in rows})


def _places(rows: Rows) -> dict[int, int]:
    """Which point of the curve each log point goes to."""
    steps = sorted({row["updates"] for row in rows})
    each = math.ceil(len(steps) / MAX_POINTS)
    return {step: n // each for n, step in enumerate(steps)}


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and math.isfinite(x)
