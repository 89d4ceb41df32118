"""Which differences count: Welch's t-test, and the paper's rules for bold numbers and stars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tutelage.runs.evaluate import Summary

SIGNIFICANT = 0.05
_ROUNDING = 1e-9  # so that 0.84 is within 0.08 of 0.92


@dataclass(frozen=True)
class Welch:
    """The outcome of a t-test that does not suppose equal variances; `p` is two-sided."""

    t: float
    degrees: float
    p: float


def welch(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> Welch | None:
    """Do two samples have the same mean? None where one of them has fewer than two values."""
    if min(len(x), len(y)) < 2:
        return None
    difference = float(np.mean(x) - np.mean(y))
    a, b = (float(np.var(v, ddof=1)) / len(v) for v in (x, y))
    if a + b == 0:
        return Welch(math.copysign(math.inf, difference), math.inf, 0.0) if difference else Welch(0.0, math.inf, 1.0)
    t = difference / math.sqrt(a + b)
    degrees = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
    return Welch(t, degrees, 2 * student_t_cdf(-abs(t), degrees))


def improves(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> bool:
    """The star: x has the larger mean, and the difference is significant."""
    test = welch(x, y)
    return test is not None and test.t > 0 and test.p < SIGNIFICANT


def within_one_error(summaries: Sequence[Summary | None]) -> list[bool]:
    """The bold ones: at most one standard error of the best mean below it."""
    best = max((s for s in summaries if s is not None), key=lambda s: s.mean, default=None)
    if best is None:
        return [False] * len(summaries)
    least = best.mean - (0.0 if math.isnan(best.error) else best.error) - _ROUNDING
    return [s is not None and s.mean >= least for s in summaries]


def student_t_cdf(t: float, degrees: float) -> float:
    """P(T ≤ t) = 1 − ½ I(ν / (ν + t²); ν/2, ½) for t ≥ 0, and the mirror image below."""
    tail = 0.5 * incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)
    return 1 - tail if t >= 0 else tail


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I(x; a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the continued fraction converges slowly, its mirror image does not
        return 1 - incomplete_beta(1 - x, b, a)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    return front * _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """1/(1+ d₁/(1+ d₂/(1+ …))), evaluated from the front by Lentz's method (DLMF 8.17.22)."""
    value, c, d = 1.0, 1.0, 0.0
    for n in range(1, 500):
        term = _coefficient(n, x, a, b)
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return 1 / value


def _coefficient(n: int, x: float, a: float, b: float) -> float:
    m = n // 2
    if n % 2 == 0:
        return m * (b - m) * x / ((a + n - 1) * (a + n))
    return -(a + m) * (a + b + m) * x / ((a + n - 1) * (a + n))
