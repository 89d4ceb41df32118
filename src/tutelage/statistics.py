"""Honest numbers from few seeds: what runs and reports count with.

A seed's score on a level is one number; a run's is the mean over levels. Aggregates over runs and tasks are those of
Agarwal et al. (2021), "Deep Reinforcement Learning at the Edge of the Statistical Precipice": their scores are
`[…, runs, tasks]`, and a statistic reduces the last two axes, so that it takes many resamples at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Scores = Float[np.ndarray, "*resamples runs tasks"]
Sample = Sequence[float] | np.ndarray
Values = np.ndarray | np.floating
Statistic = Callable[..., Values]

RESAMPLES, CONFIDENCE, SIGNIFICANT = 2000, 0.95, 0.05
_ROUNDING = 1e-9  # so that 0.84 is within 0.08 of 0.92


class Summary(NamedTuple):
    """Mean over seeds and its standard error (n − 1); the error is NaN for a single seed."""

    mean: float
    error: float

    @staticmethod
    def of(values: Sequence[float]) -> Summary:
        """From one number a seed."""
        n = len(values)
        error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        return Summary(float(np.mean(values)), error)

    def text(self, digits: int = 2, sign: str = " ± ") -> str:
        """0.92 ± 0.06; the mean alone where one seed tells no error."""
        return f"{self.mean:.{digits}f}" + ("" if math.isnan(self.error) else f"{sign}{self.error:.{digits}f}")


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Welch:
    """The outcome of a t-test that does not suppose equal variances; `p` is two-sided."""

    t: float
    degrees: float
    p: float


def mean(scores: Scores) -> Values:
    """Over all runs and tasks."""
    return scores.mean(axis=(-2, -1))


def iqm(scores: Scores) -> Values:
    """The interquartile mean: of all n run × task scores, ⌊n/4⌋ are cut off at either end."""
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    cut = flat.shape[-1] // 4
    return flat[..., cut : flat.shape[-1] - cut].mean(axis=-1)


def optimality_gap(scores: Scores, target: float = 1.0) -> Values:
    """By how much scores miss the target on average; what exceeds it does not make up for the rest."""
    return target - np.minimum(scores, target).mean(axis=(-2, -1))


def probability_of_improvement(x: Scores, y: Float[np.ndarray, "*resamples others tasks"]) -> Values:
    """P(X > Y) averaged over tasks, in the form of Mann and Whitney: over all pairs of runs, a tie counts one half."""
    ours, theirs = x[..., :, None, :], y[..., None, :, :]
    return ((ours > theirs) + 0.5 * (ours == theirs)).mean(axis=(-3, -2, -1))


def performance_profile(scores: Scores, thresholds: Float[np.ndarray, " T"]) -> Float[np.ndarray, "*resamples T"]:
    """The share of run × task scores above each threshold."""
    return np.stack([(scores > threshold).mean(axis=(-2, -1)) for threshold in thresholds], axis=-1)


def interval(statistic: Statistic, *scores: Scores, seed: int = 0) -> Interval:
    """A number with its 95 % interval; the same scores and seed give the same interval."""
    low, high = bounds(statistic, *scores, seed=seed)
    return Interval(float(statistic(*scores)), float(low), float(high))


def bounds(
    statistic: Statistic, *scores: Scores, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the percentile intervals of whatever `statistic` computes from one or more sets of scores."""
    random = np.random.default_rng(seed)
    values = statistic(*(resampled(random, x, resamples) for x in scores))
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(values, (tail, 100 - tail), axis=0)
    return np.asarray(low), np.asarray(high)


def resampled(random: np.random.Generator, scores: Scores, n: int) -> Float[np.ndarray, "n runs tasks"]:
    """Runs drawn anew with replacement, for each task by itself: the tasks are the strata."""
    drawn = random.integers(0, scores.shape[0], (n, *scores.shape))
    return np.take_along_axis(scores[None], drawn, axis=1)


def cvar(scores: Float[np.ndarray, " levels"], share: float) -> float:
    """Conditional value at risk: the mean over the worst `share` of the levels, at least one.

    If the same episodes choose the worst levels and report on them, it is biased downwards: see `unbiased_cvar`.
    """
    return unbiased_cvar(scores, scores, share)


def unbiased_cvar(selection: Float[np.ndarray, " levels"], report: Float[np.ndarray, " levels"], share: float) -> float:
    """The worst levels by one batch of episodes, scored by another that had no part in choosing them."""
    worst = np.argsort(selection, kind="stable")[: max(1, round(share * len(selection)))]
    return float(report[worst].mean())


def welch(x: Sample, y: Sample) -> Welch | None:
    """Do two samples have the same mean? None where one of them has fewer than two values."""
    from scipy.special import stdtr  # slow to import, and only tables with several methods ask

    if min(len(x), len(y)) < 2:
        return None
    difference = float(np.mean(x) - np.mean(y))
    a, b = (float(np.var(v, ddof=1)) / len(v) for v in (x, y))
    if a + b == 0:
        return Welch(math.copysign(math.inf, difference), math.inf, 0.0) if difference else Welch(0.0, math.inf, 1.0)
    t = difference / math.sqrt(a + b)
    degrees = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
    return Welch(t, degrees, 2 * float(stdtr(degrees, -abs(t))))


def improves(x: Sample, y: Sample) -> bool:
    """The paper's star: x has the larger mean, and the difference is significant."""
    test = welch(x, y)
    return test is not None and test.t > 0 and test.p < SIGNIFICANT


def within_one_error(summaries: Sequence[Summary | None]) -> list[bool]:
    """The paper's bold numbers: at most one standard error of the best mean below it."""
    best = max((s for s in summaries if s is not None), key=lambda s: s.mean, default=None)
    if best is None:
        return [False] * len(summaries)
    least = best.mean - (0.0 if math.isnan(best.error) else best.error) - _ROUNDING
    return [s is not None and s.mean >= least for s in summaries]
