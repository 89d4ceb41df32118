"""Scores: how much a level has to teach, estimated from the student's own rollout on it.

A score has two halves. `episode` gives a number to every step, of which only the one at an episode's end is read;
the numbers of a level's completed episodes are reduced to their mean (or the last one); `level` turns that into the
level's score. A `StepScore` looks at all steps on a level at once instead. A level on which no episode ended has no
score, and is marked so rather than given an infinite one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key, PyTree

from tutelage.student.learning import Learning
from tutelage.student.ppo import PPO, policy_gradient_norm
from tutelage.student.rollout import Episodes, Rollout, running_sum

ScoreName = Literal["pvl", "pvl-sum", "maxmc", "value-l1", "signed-value-loss", "learnability", "mna", "pace", "random"]
Reduction = Literal["mean", "last", "first"]


class Evidence(eqx.Module):
    """What a score may look at."""

    rollout: Rollout
    episodes: Episodes
    advantage: Float[Array, "T P"]
    solved: Bool[Array, "T P"]
    student: PyTree = None  # as it was in the rollout
    learning: Learning = eqx.field(static=True, default=PPO())
    is_solved: Callable[[Array], Array] = eqx.field(static=True, default=lambda episode_return: episode_return > 0)
    chance: Key[Array, ""] | None = None  # to draw from


@dataclass(frozen=True)
class Score:
    """One estimate of regret (or of learnability), from each of a level's episodes."""

    episode: Callable[[Evidence], Float[Array, "T P"]]
    level: Callable[[Array, Array], Array] = lambda mean, best_return: mean
    of_values: bool = True
    """Whether it depends on the student's critic."""


@dataclass(frozen=True)
class StepScore:
    """One estimate from all steps on a level, those of an unfinished episode among them."""

    level: Callable[[Evidence, Bool[Array, "T P Q"], Float[Array, "P Q"]], Float[Array, "P Q"]]
    """What it makes of the evidence, the steps on every entry of the queues, and the best returns on them."""
    whole_slots: bool = False
    """It speaks of slots, each of which must play one level: `after_episode` is repeat."""
    of_values: bool = True
    """Whether it depends on the student's critic."""


def _episode_mean(e: Evidence, x: Float[Array, "T P"]) -> Float[Array, "T P"]:
    return running_sum(x, e.rollout.start) / e.episodes.length


def _drawn(e: Evidence) -> Float[Array, "T P"]:
    assert e.chance is not None, "what is drawn by chance needs a key"
    return jax.random.uniform(e.chance, e.advantage.shape)


def _max_negative_advantage(
    e: Evidence, on: Bool[Array, "T P Q"], best_return: Float[Array, "P Q"]
) -> Float[Array, "P Q"]:
    """By how much things went worse a step than they could have, on levels that were solved at least once; else 0."""
    gap = jnp.where(on, negative_advantage(e)[..., None], 0.0).sum(axis=0) / on.shape[0]
    return jnp.where(e.is_solved(best_return), -gap, 0.0)


def negative_advantage(e: Evidence) -> Float[Array, "T P"]:
    """MNA_t = (1 − λ) Σ_{k < n} λ^k S_{t,k} + λ^n S_{t,n} ≤ 0, where step t + n is the last of the episode or rollout.

        S_{t,k} = min(0, S_{t,k−1} + γ^k δ_{t+k}),  S_{t,−1} = 0

    is how far the estimate from k + 1 steps is below the best of those from fewer, V_t among them. The loop is over
    the steps j = t + k, in which it carries S and the sum of every t ≤ j at once: T² · P numbers are looked at, of
    which no more than T · P are kept.
    """
    assert isinstance(e.learning, PPO), "others have no critic"
    gamma, lam, steps = e.learning.discount, e.learning.gae_lambda, e.advantage.shape[0]
    last = e.rollout.done.at[-1].set(True)
    following = jnp.concatenate([e.advantage[1:], jnp.zeros_like(e.advantage[:1])])
    error = e.advantage - gamma * lam * jnp.where(last, 0.0, following)  # δ, from A_t = δ_t + γλ A_{t+1}
    number = jnp.cumsum(e.rollout.start, axis=0)  # of the episode in its slot
    time = jnp.arange(steps)[:, None]

    def look(carry: tuple[Array, Array], j: Array) -> tuple[tuple[Array, Array], None]:
        fallen, total = carry
        k = j - time
        here = (k >= 0) & (number == number[j])
        fallen = jnp.where(here, jnp.minimum(0.0, fallen + gamma ** jnp.maximum(k, 0) * error[j]), fallen)
        share = lam ** jnp.maximum(k, 0) * jnp.where(last[j], 1.0, 1.0 - lam)
        return (fallen, total + jnp.where(here, share * fallen, 0.0)), None

    nothing = jnp.zeros_like(e.advantage)
    return lax.scan(look, (nothing, nothing), jnp.arange(steps))[0][1]


def _parameter_change(e: Evidence, on: Bool[Array, "T P Q"], best_return: Float[Array, "P Q"]) -> Float[Array, "P Q"]:
    """How far a step of plain gradient ascent on the slot alone would move the student."""
    return policy_gradient_norm(e.student, e.rollout, e.advantage)[:, None]


SCORES: dict[str, Score | StepScore] = {
    # mean_t max(A_t, 0), with A_t = Σ_{k ≥ t} (γλ)^{k−t} δ_k: positive value loss, Equation 5 of ACCEL
    "pvl": Score(lambda e: _episode_mean(e, jnp.maximum(e.advantage, 0.0))),
    # Σ_t max(A_t, 0): positive value loss of whole episodes, which does not prefer short ones
    "pvl-sum": Score(lambda e: running_sum(jnp.maximum(e.advantage, 0.0), e.rollout.start)),
    # mean_t (G_max − V_t), with G_max the best return ever seen on the level: MaxMC (Jiang et al. 2021b)
    "maxmc": Score(lambda e: -_episode_mean(e, e.rollout.value), lambda mean, best_return: best_return + mean),
    # mean_t |A_t|: L1 value loss (Jiang et al. 2021a)
    "value-l1": Score(lambda e: _episode_mean(e, jnp.abs(e.advantage))),
    # mean_t A_t: signed value loss (Jiang et al. 2021b)
    "signed-value-loss": Score(lambda e: _episode_mean(e, e.advantage)),
    # p(1 − p), with p the share of the rollout's episodes on the level that were solved:
    # learnability (Rutherford et al. 2024)
    "learnability": Score(lambda e: e.solved.astype(jnp.float32), lambda p, best_return: p * (1 - p), of_values=False),
    # −(1/T) Σ_t MNA_t on levels that were ever solved: maximum negative advantage (Mead et al. 2026)
    "mna": StepScore(_max_negative_advantage),
    # ‖∇_θ J‖², J the policy's objective on this level alone: the squared change of parameters (PACE, 2026)
    "pace": StepScore(_parameter_change, whole_slots=True),
    # A number in [0, 1) drawn by chance: the control that prefers no level
    "random": Score(_drawn, of_values=False),
}


class Marks(eqx.Module):
    """A rollout's verdict on every entry of every slot's queue."""

    score: Float[Array, "P Q"]
    best_return: Float[Array, "P Q"]
    finished: Bool[Array, "P Q"]  # at least one episode ended
    novelty: Float[Array, "P Q"] | None = None  # where the buffer keeps it


def mark(
    name: str | Score | StepScore,
    over: str,
    evidence: Evidence,
    best_return: Float[Array, "P Q"] | None,
    entries: int,
) -> Marks:
    """Scores every queue entry `[P, Q]` from evidence `[T, P]`; `best_return` is what was known of the levels before.
    The score is one of the table by name, or any other.

    A level's score is level(mean_e x_e, G_max), with x_e the number of its completed episode e (see `Score`); or that
    of the `last` episode instead of their mean; or what it was after the `first` one.
    """
    score = SCORES[name] if isinstance(name, str) else name
    ended, entry = evidence.episodes.ended, evidence.rollout.entry
    played = ended[..., None] & (entry[..., None] == jnp.arange(entries))  # [T, P, Q]
    played = _firsts(played) if over == "first" else played
    finished = played.any(axis=0)
    best = jnp.where(played, evidence.episodes.returns[..., None], -jnp.inf).max(axis=0)
    if best_return is not None:
        best = jnp.maximum(best, best_return)
    best = jnp.where(finished, best, 0.0)
    if isinstance(score, Score):
        value = score.level(_REDUCTIONS[over](score.episode(evidence), played), best)
    else:
        value = score.level(evidence, entry[..., None] == jnp.arange(entries), best)
    return Marks(jnp.where(finished, value, 0.0), best, finished)


def check_score(name: str, over: str, after_episode: str, learning: Learning) -> None:
    """Refuses what a score cannot be computed with."""
    score = SCORES[name]
    if score.of_values and not learning.has_critic:
        raise ValueError(
            f"the score {name} needs a critic, which students that learn by {learning.name} have not: "
            "set `method.score` to learnability."
        )
    if isinstance(score, StepScore) and over != "mean":
        raise ValueError(f"the score {name} is of all steps on a level: `method.score_over` must be mean, not {over}.")
    if isinstance(score, StepScore) and score.whole_slots and after_episode != "repeat":
        raise ValueError(f"the score {name} is of slots that play one level: set `method.after_episode` to repeat.")


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
