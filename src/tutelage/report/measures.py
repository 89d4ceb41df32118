"""What a domain's score is, and what it becomes between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from tutelage.runs.evaluate import Result


@dataclass(frozen=True)
class Measure:
    """A column of an evaluation, and the values of it that count as 0 and as 1."""

    column: Literal["solved_rate", "mean_return"] = "solved_rate"
    name: str = "solved rate"
    zero: float = 0.0
    one: float = 1.0
    digits: int = 2

    def of(self, result: Result) -> float:
        """The score as it is reported."""
        return float(getattr(result, self.column))

    def normalised(self, scores: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The score as it is aggregated: 0 and 1 where the measure says, not clipped."""
        return (scores - self.zero) / (self.one - self.zero)


# The paper reports returns of BipedalWalker and aggregates them over [0, 300]; elsewhere both use the solved rate.
_RETURN = Measure("mean_return", "return", 0.0, 300.0, digits=1)
MEASURES = {"bipedal": _RETURN, "bipedal-poet": _RETURN}


def measure_of(env: str) -> Measure:
    """The measure of a domain, by its name."""
    return MEASURES.get(env, Measure())


def matrix(
    measure: Measure, results: Sequence[Result], seeds: Sequence[int], levels: Sequence[str]
) -> Float[np.ndarray, "runs tasks"]:
    """Scores `[seeds, levels]`, NaN where a seed was not evaluated on a level."""
    score = {(r.seed, r.level): measure.of(r) for r in results}
    return np.array([[score.get((s, level), np.nan) for level in levels] for s in seeds], float).reshape(
        len(seeds), len(levels)
    )
