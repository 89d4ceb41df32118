"""Students of several checkpoints on the same levels: how they fare, and what each has left to learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.scores import Evidence, mark
from tutelage.env import Level
from tutelage.report.gather import Member
from tutelage.student.rollout import episodes, gae, rollout

PASSES = 2  # rollouts; in each a level is played as often as it fits


@dataclass(frozen=True, eq=False)
class Trials:
    """C checkpoints on N levels, `[C, N]` each: mean return, solved rate and positive value loss."""

    checkpoints: tuple[int, ...]
    returns: Float[np.ndarray, "C N"]
    solved: Float[np.ndarray, "C N"]
    pvl: Float[np.ndarray, "C N"]


def trials(member: Member, seed: int, checkpoints: Sequence[int], levels: Level) -> Trials:
    """Plays stacked levels with one seed's student as it was at each checkpoint."""
    room = member.run.config.classroom()
    played = jax.jit(partial(play, room))
    place = list(member.run.config.all_seeds).index(seed)
    found = []
    for updates in checkpoints:
        student = jax.tree.map(lambda x: x[place], member.run.students(updates))
        outcomes = [played(student, levels, jax.random.key(n)) for n in range(PASSES)]
        found.append(np.mean(jax.device_get(outcomes), axis=0))
    return Trials(tuple(checkpoints), *np.stack(found, axis=1))


def play(room: Classroom, student: PyTree, levels: Level, key: Key[Array, ""]) -> Float[Array, "3 N"]:
    """One rollout: return, solved rate and positive value loss of each level, over its finished episodes."""
    n, ppo = jax.tree.leaves(levels)[0].shape[0], room.ppo
    queue = jnp.arange(n, dtype=jnp.int32)[:, None]
    r, _ = rollout(key, room.env, student, levels, queue, room.steps, next_values=ppo.bootstrap)
    ends = episodes(r)
    solved = room.env.solved(ends.returns)
    advantage, _ = gae(r, discount=ppo.discount, gae_lambda=ppo.gae_lambda, bootstrap=ppo.bootstrap)
    marks = mark("pvl", "mean", Evidence(r, ends, advantage, solved), None, 1)
    finished = jnp.maximum(ends.ended.sum(axis=0), 1)
    means = [jnp.where(ends.ended, x, 0.0).sum(axis=0) / finished for x in (ends.returns, solved)]
    return jnp.stack([*means, marks.score[:, 0]])
