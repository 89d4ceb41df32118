"""Scores: how much a level has to teach, estimated from the student's own rollout on it.

A score has two halves. `episode` gives a number to every step, of which only the one at an episode's end is read;
the numbers of a level's completed episodes are reduced to their mean (or the last one); `level` turns that into the
level's score. A level on which no episode ended has no score, and is marked so rather than given an infinite one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage.student.rollout import Episodes, Rollout, running_sum

ScoreName = Literal["pvl", "maxmc", "value-l1", "signed-value-loss", "learnability"]
Reduction = Literal["mean", "last", "first"]


class Evidence(eqx.Module):
    """What a score may look at."""

    rollout: Rollout
    episodes: Episodes
    advantage: Float[Array, "T P"]
    solved: Bool[Array, "T P"]


@dataclass(frozen=True)
class Score:
    """One estimate of regret (or of learnability)."""

    episode: Callable[[Evidence], Float[Array, "T P"]]
    level: Callable[[Array, Array], Array] = lambda mean, best_return: mean


def _episode_mean(e: Evidence, x: Float[Array, "T P"]) -> Float[Array, "T P"]:
    return running_sum(x, e.rollout.start) / e.episodes.length


SCORES: dict[str, Score] = {
    # mean_t max(A_t, 0), with A_t = Σ_{k ≥ t} (γλ)^{k−t} δ_k: positive value loss, Equation 5 of ACCEL
    "pvl": Score(lambda e: _episode_mean(e, jnp.maximum(e.advantage, 0.0))),
    # mean_t (G_max − V_t), with G_max the best return ever seen on the level: MaxMC (Jiang et al. 2021b)
    "maxmc": Score(lambda e: -_episode_mean(e, e.rollout.value), lambda mean, best_return: best_return + mean),
    # mean_t |A_t|: L1 value loss (Jiang et al. 2021a)
    "value-l1": Score(lambda e: _episode_mean(e, jnp.abs(e.advantage))),
    # mean_t A_t: signed value loss (Jiang et al. 2021b)
    "signed-value-loss": Score(lambda e: _episode_mean(e, e.advantage)),
    # p(1 − p), with p the share of the rollout's episodes on the level that were solved:
    # learnability (Rutherford et al. 2024)
    "learnability": Score(lambda e: e.solved.astype(jnp.float32), lambda p, best_return: p * (1 - p)),
}


class Marks(eqx.Module):
    """A rollout's verdict on every entry of every slot's queue."""

    score: Float[Array, "P Q"]
    best_return: Float[Array, "P Q"]
    finished: Bool[Array, "P Q"]  # at least one episode ended


def mark(name: str, over: str, evidence: Evidence, best_return: Float[Array, "P Q"] | None, entries: int) -> Marks:
    """Scores every queue entry `[P, Q]` from evidence `[T, P]`; `best_return` is what was known of the levels before.

    A level's score is level(mean_e x_e, G_max), with x_e the number of its completed episode e (see `Score`); or that
    of the `last` episode instead of their mean; or what it was after the `first` one.
    """
    score = SCORES[name]
    ended, entry = evidence.episodes.ended, evidence.rollout.entry
    played = ended[..., None] & (entry[..., None] == jnp.arange(entries))  # [T, P, Q]
    played = _firsts(played) if over == "first" else played
    finished = played.any(axis=0)
    best = jnp.where(played, evidence.episodes.returns[..., None], -jnp.inf).max(axis=0)
    if best_return is not None:
        best = jnp.maximum(best, best_return)
    best = jnp.where(finished, best, 0.0)
    value = _REDUCTIONS[over](score.episode(evidence), played)
    return Marks(jnp.where(finished, score.level(value, best), 0.0), best, finished)


def _mean_over(x: Float[Array, "T P"], played: Bool[Array, "T P Q"]) -> Float[Array, "P Q"]:
    total = jnp.where(played, x[..., None], 0.0).sum(axis=0)
    return total / jnp.maximum(played.sum(axis=0), 1)


def _firsts(played: Bool[Array, "T P Q"]) -> Bool[Array, "T P Q"]:
    """The end of every entry's first episode."""
    return played & (jnp.cumsum(played, axis=0) == 1)


def _last_of(x: Float[Array, "T P"], played: Bool[Array, "T P Q"]) -> Float[Array, "P Q"]:
    steps = jnp.arange(x.shape[0])[:, None, None]
    last = played & (steps == jnp.where(played, steps, -1).max(axis=0))
    return jnp.where(last, x[..., None], 0.0).sum(axis=0)


_REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {"mean": _mean_over, "first": _mean_over, "last": _last_of}
