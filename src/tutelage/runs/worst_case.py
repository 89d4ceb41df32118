"""The worst case: how students do on those of many random levels that are hardest for them (CVaR).

The levels are the same for all students. One batch of episodes chooses each student's worst levels, another that had
no part in the choice reports on them, so that bad luck in the first does not count (Rutherford et al. 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Key, PyTree

from tutelage.env import DesignSpace, Env, Level
from tutelage.errors import UserError
from tutelage.runs import presets
from tutelage.runs.evaluate import Outcome, Result, player
from tutelage.runs.run import Run
from tutelage.statistics import unbiased_cvar
from tutelage.student.controller import Population

SHARES = (0.001, 0.01, 0.1, 1.0)
LEVELS = 10_000
EPISODES_AT_ONCE = 2**15  # of one student
LEVELS_AT_ONCE = 1024  # drawn and looked at
TRIES = 1000  # levels drawn for each one that is wanted, before it is given up


def worst_case(
    students: PyTree,
    seeds: Sequence[int],
    env: Env,
    design: DesignSpace,
    *,
    levels: int = LEVELS,
    episodes: int = 100,
    evaluation_seed: int = 0,
    greedy: bool = False,
    on_progress: Callable[[str], None] = lambda text: None,
) -> list[Result]:
    """Means over each student's worst 0.1, 1, 10 and 100 % of `levels` random solvable levels.

    Each level is played for `episodes` episodes to choose the worst and for as many again to report on them.
    """
    key_levels, *keys = jax.random.split(jax.random.key(evaluation_seed), 3)
    on_progress("drawing levels")
    pool = solvable_levels(key_levels, design, levels)
    choice, report = (
        play_all(students, seeds, env, pool, episodes, key=key, greedy=greedy, on_progress=on_progress) for key in keys
    )
    solved = np.asarray(choice.solved)
    reported = [np.asarray(x) for x in (report.solved, report.returns, report.length)]
    return [
        Result(name_of(share), seed, episodes, *(unbiased_cvar(solved[s], x[s], share) for x in reported))
        for share in SHARES
        for s, seed in enumerate(seeds)
    ]


def name_of(share: float) -> str:
    """What a share of the levels is called in tables."""
    return f"worst {100 * share:.4g} %"


def solvable_levels(key: Key[jax.Array, ""], design: DesignSpace, count: int) -> Level:
    """`count` levels of the generator, in the order drawn, without those that the design space knows to be unsolvable.

    The same key gives the same levels, and a longer list begins with the shorter ones.
    """
    parts, found, drawn = [], 0, 0
    while found < count:
        if drawn > TRIES * count + LEVELS_AT_ONCE:
            raise UserError(f"Of {drawn:,} random levels only {found} can be solved; {count:,} are wanted.")
        batch, solvable = jax.device_get(_drawer(design)(jax.random.fold_in(key, drawn)))
        parts.append(jax.tree.map(lambda x, keep=solvable: x[keep], batch))
        found, drawn = found + int(solvable.sum()), drawn + LEVELS_AT_ONCE
    return jax.tree.map(lambda *x: np.concatenate(x)[:count], *parts)


@lru_cache(maxsize=16)
def _drawer(design: DesignSpace) -> Callable[..., tuple[Level, Bool[jax.Array, " n"]]]:
    def one(key: Key[jax.Array, ""]) -> tuple[Level, Bool[jax.Array, ""]]:
        level = design.sample(key)
        return level, jnp.asarray(design.describe(level).get("solvable", 1.0)) > 0

    return jax.jit(lambda key: jax.vmap(one)(jax.random.split(key, LEVELS_AT_ONCE)))


def play_all(
    students: PyTree,
    seeds: Sequence[int],
    env: Env,
    pool: Level,
    episodes: int,
    *,
    key: Key[jax.Array, ""],
    greedy: bool = False,
    on_progress: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Each level's mean solved rate, return and length, `[S, N]`, played a batch of levels at a time."""
    count = jax.tree.leaves(pool)[0].shape[0]
    size = min(count, max(1, EPISODES_AT_ONCE // episodes))
    parts = []
    for n, first in enumerate(range(0, count, size)):
        # The last batch is filled up with the last level: all have one shape, and one program plays them.
        chosen = np.minimum(np.arange(first, first + size), count - 1).repeat(episodes)
        levels = jax.tree.map(lambda x, i=chosen: np.broadcast_to(x[i], (len(seeds), *x[i].shape)), pool)
        keys = jnp.stack([jax.random.fold_in(jax.random.fold_in(key, n), seed) for seed in seeds])
        parts.append(_level_means(jax.device_get(player(env, greedy)(students, keys, levels)), episodes))
        on_progress(f"{min(first + size, count):,} of {count:,} levels")
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1)[:, :count], *parts)


def _level_means(outcome: Outcome, episodes: int) -> Outcome:
    return jax.tree.map(lambda x: x.reshape(x.shape[0], -1, episodes).mean(axis=2), outcome)


def worst_case_of(
    run: Run, *, updates: int | None = None, generator: str | None = None, **options: Any
) -> list[Result]:
    """`worst_case` for the students of a run, on levels of its own generator or of that of a preset, `env/method`."""
    env = run.config.env
    design = env.design() if generator is None else _design_of(generator, env.design())
    students = run.students(updates)
    if isinstance(students, Population):
        raise UserError(f"{run.path} has a population of specialists for each seed: --cvar is for a single student.")
    return worst_case(students, run.config.all_seeds, env.env(), design, **options)


def _design_of(preset: str, own: DesignSpace) -> DesignSpace:
    env, _, method = preset.partition("/")
    design = presets.preset(env, method).env.design()
    key = jax.random.key(0)
    if jax.eval_shape(design.sample, key) != jax.eval_shape(own.sample, key):
        raise UserError(f"The levels of {preset} do not fit the env of this run.")
    return design
