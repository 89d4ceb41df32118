"""The students of runs put to work: how they fare on any levels, and episodes worth watching."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from tutelage.curricula.scores import Evidence, mark
from tutelage.env import Env, Level, State, Suite, TestLevel
from tutelage.report.facts.runs import Member, Missing
from tutelage.runs.evaluate import Result, by_level, record, specialists
from tutelage.student.controller import Population
from tutelage.student.ppo import PPO
from tutelage.student.rollout import episodes, gae, rollout

LEVELS = 60  # played at once; fewer are filled up, so that one program plays them all
PASSES = 2  # rollouts; in each a level is played as often as it fits
WATCHABLE = 1000  # steps; levels with a longer time limit are left to the table
OFTEN = 0.5  # of the episodes on a level solved
TRIES, LEVELS_TRIED = 8, 3


@dataclass(frozen=True, eq=False)
class Trials:
    """C checkpoints on N levels, `[C, N]` each: mean return, solved rate and positive value loss."""

    checkpoints: tuple[int, ...]
    returns: Float[np.ndarray, "C N"]
    solved: Float[np.ndarray, "C N"]
    pvl: Float[np.ndarray, "C N"]


def trials(member: Member, seed: int, checkpoints: Sequence[int], levels: Level) -> Trials:
    """Plays at most `LEVELS` stacked levels with one seed's student as it was at each checkpoint."""
    config, n = member.run.config, len(jax.tree.leaves(levels)[0])
    if config.ppo is None:
        raise Missing(f"The students of {member.name} learned without a critic: no value loss says what is left.")
    played = _trial(config.env.env(), config.ppo, config.steps)
    filled = jax.tree.map(lambda x: np.asarray(x)[np.arange(LEVELS) % n], levels)
    found = []
    for updates in checkpoints:
        student = member.student(seed, updates)
        outcomes = [played(student, filled, jax.random.key(n)) for n in range(PASSES)]
        found.append(np.mean(jax.device_get(outcomes), axis=0)[:, :n])
    return Trials(tuple(checkpoints), *np.stack(found, axis=1))


@lru_cache(maxsize=4)
def _trial(env: Env, ppo: PPO, steps: int) -> Callable[..., Float[Array, "3 N"]]:
    """One rollout: return, solved rate and positive value loss of each level, over its finished episodes."""

    def play(student: PyTree, levels: Level, key: Key[Array, ""]) -> Float[Array, "3 N"]:
        queue = jnp.arange(LEVELS, dtype=jnp.int32)[:, None]
        r, _ = rollout(key, env, student, levels, queue, steps, next_values=ppo.bootstrap)
        ends = episodes(r)
        solved = env.solved(ends.returns)
        advantage, _ = gae(r, discount=ppo.discount, gae_lambda=ppo.gae_lambda, bootstrap=ppo.bootstrap)
        marks = mark("pvl", "mean", Evidence(r, ends, advantage, solved), None, 1)
        finished = jnp.maximum(ends.ended.sum(axis=0), 1)
        means = [jnp.where(ends.ended, x, 0.0).sum(axis=0) / finished for x in (ends.returns, solved)]
        return jnp.stack([*means, marks.score[:, 0]])

    return jax.jit(play)


@dataclass(frozen=True)
class Episode:
    """How one student fared in one episode, with the env's states `[steps + 1, …]`."""

    level_name: str
    seed: int
    solved: bool
    steps: int
    level: Level
    states: State


def choose_episode(member: Member, suite: Suite) -> Episode:
    """The first solved episode of all tries, hardest level first; else the very first one. The suite has levels."""
    tries = _tries(member, suite)
    first = next(tries)
    return first if first.solved else next((e for e in tries if e.solved), first)


def _tries(member: Member, suite: Suite) -> Iterator[Episode]:
    for level in hardest_first(suite, member.results)[:LEVELS_TRIED]:
        rate = {r.seed: r.solved_rate for r in member.results if r.level == level.name}
        seed = max(member.seeds, key=lambda seed: rate.get(seed, 0.0))
        student = member.student(seed)
        for n in range(TRIES):
            yield play(student, seed, level, n)


def hardest_first(suite: Suite, results: Sequence[Result]) -> list[TestLevel]:
    """The levels that are solved: those solved more often than not, the hardest first, then others, the easiest first.

    All of them if none is solved.
    """
    rate = {name: row["solved_rate"].mean for name, row in by_level(results).items()}
    short = [level for level in suite if level.env.max_steps <= WATCHABLE] or list(suite)
    solved = [level for level in short if rate.get(level.name, 0.0) > 0]
    often = sorted((level for level in solved if rate[level.name] >= OFTEN), key=lambda level: rate[level.name])
    seldom = sorted((level for level in solved if rate[level.name] < OFTEN), key=lambda level: -rate[level.name])
    return often + seldom or short


def play(student: PyTree, seed: int, level: TestLevel, attempt: int) -> Episode:
    """One episode; another attempt may draw another level and other actions."""
    key_level, key_play = jax.random.split(jax.random.fold_in(jax.random.key(seed), attempt))
    drawn = jax.tree.map(np.asarray, level.draw(key_level))
    if isinstance(student, Population):
        one = TestLevel(level.name, level.env, lambda key: drawn)
        alone = jax.tree.map(lambda x: np.asarray(x)[None], student)
        chosen = specialists(alone, [seed], one, 1, key=key_play)
        student = jax.tree.map(lambda x: x[0], chosen)
    states, outcome = record(student, level.env, drawn, key=key_play)
    return Episode(level.name, seed, bool(outcome.solved), int(outcome.length), drawn, states)
