"""What one episode says of its level: return, length, and the scores that a curriculum could give."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32

from tutelage.curricula.scores import Evidence, mark
from tutelage.env import Env
from tutelage.student.rollout import Rollout, episodes, gae
from tutelage.student.scaling import CLIP


class Episode(NamedTuple):
    """An episode step by step; zeros after its end."""

    value: Float[Array, " T"]
    next_value: Float[Array, " T"]  # of what was seen after the step, if students bootstrap; else zeros
    reward: Float[Array, " T"]
    terminated: Bool[Array, " T"]
    truncated: Bool[Array, " T"]


class Setting(NamedTuple):
    """What scores depend on besides: PPO's two discounts, what it divides rewards by, and the level's best return."""

    discount: Float[Array, ""]
    gae_lambda: Float[Array, ""]
    scale: Float[Array, ""]
    best_return: Float[Array, ""]


class Scores(NamedTuple):
    """An episode's figures. The scores are those of a level of which nothing else has been seen."""

    episode_return: Float[Array, ""]
    length: Int32[Array, ""]
    solved: Bool[Array, ""]
    finished: Bool[Array, ""]
    pvl: Float[Array, ""]
    maxmc: Float[Array, ""]
    value_l1: Float[Array, ""]
    signed_value_loss: Float[Array, ""]


def score(env: Env, episode: Episode, setting: Setting) -> Scores:
    """The episode as the rollout of one slot in which its level is played once."""
    rollout = _alone(episode)
    learnt = replace(rollout, reward=jnp.clip(rollout.reward / setting.scale, -CLIP, CLIP))
    advantage, _ = gae(learnt, discount=setting.discount, gae_lambda=setting.gae_lambda, bootstrap=True)
    played = episodes(rollout)
    solved = env.solved(played.returns)
    evidence = Evidence(rollout, played, advantage, solved)
    first = played.ended & (jnp.cumsum(played.ended, axis=0) == 1)
    best = setting.best_return.reshape(1, 1)
    marks = {name: mark(name, "first", evidence, best, 1) for name in ("pvl", "maxmc", "value-l1", "signed-value-loss")}
    at_end = lambda x: jnp.sum(jnp.where(first, x, 0))  # noqa: E731
    scores = {name.replace("-", "_"): found.score[0, 0] for name, found in marks.items()}
    length = at_end(played.length).astype(jnp.int32)
    return Scores(at_end(played.returns), length, jnp.any(first & solved), jnp.any(first), **scores)


def _alone(episode: Episode) -> Rollout:
    """The episode in a slot of its own, which begins anew when it has ended."""
    steps = len(episode.reward)
    column = lambda x: x[:, None]  # noqa: E731
    done = column(episode.terminated | episode.truncated)
    start = jnp.concatenate([jnp.ones_like(done[:1]), done[:-1]])
    return Rollout(
        obs=None,
        action=None,
        log_prob=jnp.zeros((steps, 1)),
        value=column(episode.value),
        next_value=column(episode.next_value),
        reward=column(episode.reward),
        terminated=column(episode.terminated),
        truncated=column(episode.truncated),
        start=start,
        entry=jnp.zeros((steps, 1), jnp.int32),
    )
