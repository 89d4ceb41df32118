"""Zero-shot evaluation: trained students on held-out levels, without learning."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from tutelage.env import Env, Level, State, Suite, TestLevel
from tutelage.errors import reason
from tutelage.runs.devices import EACH, placed, spread
from tutelage.runs.storage import LARGEST_TEXT, Damaged, Missing, make_folder, put_aside, read, write_atomically
from tutelage.statistics import Summary
from tutelage.student import distributions
from tutelage.student.controller import Population

CHOOSING = 2**31  # what the key of the episodes that choose a specialist is made with


@dataclass(frozen=True)
class Result:
    """One seed on one level."""

    level: str
    seed: int
    episodes: int
    solved_rate: float
    mean_return: float
    mean_length: float


class Outcome(NamedTuple):
    """Finished episodes."""

    returns: Float[Array, "*batch"]
    length: Int[Array, "*batch"]
    solved: Bool[Array, "*batch"]


class _Playing(eqx.Module):
    """E episodes of one student under way."""

    env: State
    obs: PyTree
    memory: PyTree
    alive: Bool[Array, " E"]
    returns: Float[Array, " E"]
    length: Int[Array, " E"]


def _begin(env: Env, student: PyTree, key: Key[Array, ""], levels: Level) -> _Playing:
    n = jax.tree.leaves(levels)[0].shape[0]
    state, obs = jax.vmap(env.reset)(jax.random.split(key, n), levels)
    return _Playing(state, obs, student.memory(n), jnp.ones(n, bool), jnp.zeros(n), jnp.zeros(n, jnp.int32))


def _step(
    env: Env, greedy: bool, student: PyTree, key: Key[Array, ""], p: _Playing, start: Bool[Array, ""]
) -> _Playing:
    n = p.alive.shape[0]
    key_noise, key_env = jax.random.split(key)
    memory, policy, _ = student.act(p.memory, p.obs, jnp.broadcast_to(start, (n,)))
    noise = distributions.noise(key_noise, env.actions, (n,))
    action = policy.mode() if greedy else policy.sample(noise)
    state, after = jax.vmap(env.step)(jax.random.split(key_env, n), p.env, action)
    returns = p.returns + jnp.where(p.alive, after.reward, 0.0)
    return _Playing(state, after.obs, memory, p.alive & ~after.done, returns, p.length + p.alive)


@lru_cache(maxsize=64)
def player(env: Env, greedy: bool, devices: int = 1) -> Callable[..., Outcome]:
    """Compiled once for each env: plays `[S, E]` episodes until the last one has ended."""

    def play(students: PyTree, keys: Key[Array, " S"], levels: Level) -> Outcome:
        students = jax.vmap(lambda s: s.ready())(students)
        keys_begin, keys_play = jax.vmap(jax.random.split, out_axes=1)(keys)
        playing = jax.vmap(lambda s, k, lv: _begin(env, s, k, lv))(students, keys_begin, levels)

        def body(carry):
            t, playing = carry
            keys = jax.vmap(lambda k: jax.random.fold_in(k, t))(keys_play)
            return t + 1, jax.vmap(lambda s, k, p: _step(env, greedy, s, k, p, t == 0))(students, keys, playing)

        unfinished = lambda carry: (carry[0] < env.max_steps) & carry[1].alive.any()  # noqa: E731
        _, playing = lax.while_loop(unfinished, body, (jnp.zeros((), jnp.int32), playing))
        return Outcome(playing.returns, playing.length, env.solved(playing.returns))

    return jax.jit(spread(play, devices, (EACH, EACH, EACH)))


def play_level(
    students: PyTree,
    seeds: Sequence[int],
    level: TestLevel,
    episodes: int,
    *,
    key: Key[Array, ""],
    greedy: bool = False,
    devices: int = 1,
) -> Outcome:
    """`[S, E]` episodes; student s draws its levels and actions from `key` and its seed alone.

    Of a population the specialist plays that did best on as many other episodes, of which nothing is reported.
    """
    if isinstance(students, Population):
        students = specialists(students, seeds, level, episodes, key=jax.random.fold_in(key, CHOOSING), greedy=greedy)
    keys = jnp.stack([jax.random.fold_in(key, seed) for seed in seeds])
    keys_level, keys_play = jax.vmap(jax.random.split, out_axes=1)(keys)
    levels = _drawer(level, episodes)(keys_level)
    return player(level.env, greedy, devices)(*placed((students, keys_play, levels), devices))


def specialists(
    populations: Population,
    seeds: Sequence[int],
    level: TestLevel,
    episodes: int,
    *,
    key: Key[Array, ""],
    greedy: bool = False,
) -> PyTree:
    """The student of highest mean return on a level in each population, `[S, N, …]`; all play the same."""
    most = jax.tree.leaves(populations.members)[0].shape[1]
    keys = jnp.stack([jax.random.fold_in(key, seed) for seed in seeds])
    keys_level, keys_play = jax.vmap(jax.random.split, out_axes=1)(keys)
    repeat = lambda x: jnp.repeat(x, most, axis=0)  # noqa: E731
    levels = jax.tree.map(repeat, _drawer(level, episodes)(keys_level))
    members = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), populations.members)
    returns = player(level.env, greedy)(members, repeat(keys_play), levels).returns.mean(axis=1).reshape(-1, most)
    best = jnp.where(jnp.arange(most) < jnp.asarray(populations.count)[:, None], returns, -jnp.inf).argmax(axis=1)
    return jax.tree.map(lambda x: x[jnp.arange(len(seeds)), best], populations.members)


@lru_cache(maxsize=64)
def _drawer(level: TestLevel, episodes: int) -> Callable[..., Level]:
    return jax.jit(jax.vmap(lambda key: jax.vmap(level.draw)(jax.random.split(key, episodes))))


def evaluate(
    students: PyTree,
    seeds: Sequence[int],
    suite: Suite,
    episodes: int = 100,
    *,
    evaluation_seed: int = 0,
    greedy: bool = False,
    together: bool = True,
    devices: int = 1,
    only: str | None = None,
    on_level: Callable[[str], None] = lambda name: None,
) -> list[Result]:
    """Plays every level of a suite with every student (stacked `[S, …]`); one `Result` for each pair.

    Not `together`, the students play one after another: the same episodes, and fewer of them at a time. The students
    may be spread over several devices, if they play together. With `only`, the level of that name is played alone, its
    episodes as in the whole suite.
    """
    results = []
    groups = [slice(None)] if together else [slice(s, s + 1) for s in range(len(seeds))]
    for n, level in enumerate(suite):
        if only is not None and level.name != only:
            continue
        on_level(level.name)
        key = jax.random.fold_in(jax.random.key(evaluation_seed), n)
        parts = [
            play_level(
                jax.tree.map(lambda x, g=g: x[g], students),
                seeds[g],
                level,
                episodes,
                key=key,
                greedy=greedy,
                devices=devices,
            )
            for g in groups
        ]
        outcome = jax.tree.map(lambda *x: np.concatenate(x), *jax.device_get(parts))
        for s, seed in enumerate(seeds):
            means = [float(np.mean(x[s])) for x in (outcome.solved, outcome.returns, outcome.length)]
            results.append(Result(level.name, seed, episodes, *means))
    return results


def write_csv(path: Path, results: Sequence[Result], warn: Callable[[str], None] = lambda text: None) -> bool:
    """One row a level and seed. What is there already stays if it is of more episodes: then this returns False.

    What cannot be read as an evaluation is kept under another name, and that is said.
    """
    make_folder(path.parent)
    try:
        if min((r.episodes for r in read_csv(path)), default=0) > max((r.episodes for r in results), default=0):
            return False
    except Missing:
        pass
    except Damaged as error:
        warn(f"{error}; it is {put_aside(path).name} from here on.")
    rows = [[f.name for f in fields(Result)], *([*astuple(r)] for r in results)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(x) for x in row] for row in rows)
    write_atomically(path, text.getvalue().encode())
    return True


def _cell(x: object) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)


def read_csv(path: Path) -> list[Result]:
    """What `write_csv` wrote, or `Damaged`."""
    try:
        rows = csv.DictReader(io.StringIO(read(path, LARGEST_TEXT).decode(), newline=""))
        results = [Result(r["level"], int(r["seed"]), int(r["episodes"]), *(float(r[k]) for k in _MEANS)) for r in rows]
        if not results and {f.name for f in fields(Result)} - set(rows.fieldnames or ()):
            raise ValueError("it has neither rows nor the columns of one")
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise Damaged(f"{path.name} cannot be read as an evaluation ({reason(error)})") from error
    if not all(math.isfinite(getattr(r, name)) for r in results for name in _MEANS):
        raise Damaged(f"{path.name} holds numbers that are not finite")
    return results


_MEANS = ("solved_rate", "mean_return", "mean_length")


def by_level(results: Sequence[Result]) -> dict[str, dict[str, Summary]]:
    """Each level's summary of solved rate, return and length, in the order the levels were played."""
    table: dict[str, dict[str, Summary]] = {}
    for name in dict.fromkeys(r.level for r in results):
        rows = [r for r in results if r.level == name]
        table[name] = {k: Summary.of([getattr(r, k) for r in rows]) for k in _MEANS}
    return table


def overall(results: Sequence[Result]) -> dict[str, Summary]:
    """The mean over levels, summarised over seeds."""
    seeds = sorted({r.seed for r in results})
    return {
        k: Summary.of([float(np.mean([getattr(r, k) for r in results if r.seed == s])) for s in seeds]) for k in _MEANS
    }


def record(student: PyTree, env: Env, level: Level, *, key: Key[Array, ""]) -> tuple[State, Outcome]:
    """One episode with the env's state at every step, cut at its end: `[T + 1, …]`."""
    states, outcome = _recorder(env)(student, key, level)
    length = int(outcome.length)
    return jax.tree.map(lambda x: np.asarray(x[: length + 1]), states), outcome


@lru_cache(maxsize=16)
def _recorder(env: Env):
    def play(student: PyTree, key: Key[Array, ""], level: Level):
        student = student.ready()
        key_begin, key_play = jax.random.split(key)
        first = _begin(env, student, key_begin, jax.tree.map(lambda x: jnp.asarray(x)[None], level))

        def body(playing, t):
            after = _step(env, False, student, jax.random.fold_in(key_play, t), playing, t == 0)
            return after, after.env

        last, states = lax.scan(body, first, jnp.arange(env.max_steps))
        states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b])[:, 0], first.env, states)
        returns = last.returns[0]
        return states, Outcome(returns, last.length[0], env.solved(returns))

    return jax.jit(play, compiler_options=_quick() if jax.default_backend() == "cpu" else None)


def _quick() -> dict[str, Any]:
    """One episode is played in moments: XLA compiles its program three times as fast if it does not optimise it."""
    return {"xla_backend_optimization_level": 0} | (
        {"xla_cpu_use_fusion_emitters": False} if jax.__version_info__ < (0, 11) else {}
    )
