"""An episode of a student on a held-out level, as a moving picture."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import PyTree
from PIL import Image, features

from tutelage.env import Level, State, Suite, TestLevel
from tutelage.report.pictures import data_uri, evenly, fitted, png_uri
from tutelage.runs.evaluate import Result, by_level, record
from tutelage.runs.run import Run

WATCHABLE = 1000  # steps; levels with a longer time limit are left to the table
MAX_FRAMES = 240
MAX_BYTES = 1_100_000  # before base64, which adds a third
OFTEN = 0.5  # of the episodes on a level solved
TRIES, LEVELS_TRIED = 8, 3

Film = Callable[[Level, State], list[np.ndarray]]


@dataclass(frozen=True)
class Episode:
    """How one student fared in one episode, with the env's states `[steps + 1, …]`."""

    level_name: str
    seed: int
    solved: bool
    steps: int
    level: Level
    states: State


@dataclass(frozen=True)
class Animation:
    """An episode as data URIs: moving, and its last picture for those who want nothing to move."""

    episode: Episode
    moving: str
    still: str
    width: int
    height: int


def animation(run: Run, suite: Suite, results: Sequence[Result]) -> Animation:
    """A solved episode on the hardest level that is solved at all, or an unsolved one if a few tries bring none.

    A domain without pictures of episodes raises `NotImplementedError`.
    """
    film = getattr(run.config.env, "film", None)
    if film is None:
        raise NotImplementedError(f"The env {run.config.env.name!r} does not say how an episode is drawn.")
    return animate(choose_episode(run, suite, results), film)


def choose_episode(run: Run, suite: Suite, results: Sequence[Result]) -> Episode:
    """The first solved episode of all tries, hardest level first; else the very first one. The suite has levels."""
    tries = _tries(run, suite, results)
    first = next(tries)
    return first if first.solved else next((e for e in tries if e.solved), first)


def _tries(run: Run, suite: Suite, results: Sequence[Result]) -> Iterator[Episode]:
    students = run.students()
    for level in hardest_first(suite, results)[:LEVELS_TRIED]:
        seed = _best_seed(level, results, run.config.all_seeds)
        student = jax.tree.map(lambda x, s=seed: x[run.config.all_seeds.index(s)], students)
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


def _best_seed(level: TestLevel, results: Sequence[Result], seeds: range) -> int:
    rate = {r.seed: r.solved_rate for r in results if r.level == level.name}
    return max(seeds, key=lambda seed: rate.get(seed, 0.0))


def play(student: PyTree, seed: int, level: TestLevel, attempt: int) -> Episode:
    """One episode; another attempt may draw another level and other actions."""
    key_level, key_play = jax.random.split(jax.random.fold_in(jax.random.key(seed), attempt))
    drawn = jax.tree.map(np.asarray, level.draw(key_level))
    states, outcome = record(student, level.env, drawn, key=key_play)
    return Episode(level.name, seed, bool(outcome.solved), int(outcome.length), drawn, states)


def animate(episode: Episode, film: Film) -> Animation:
    """The episode, some steps left out where it is long."""
    kept = evenly(episode.steps + 1, MAX_FRAMES)
    pictures = film(episode.level, jax.tree.map(lambda x: x[np.asarray(kept)], episode.states))
    frames = [fitted(Image.fromarray(picture)) for picture in pictures]
    return Animation(episode, encode(frames), png_uri(frames[-1]), *frames[-1].size)


def encode(frames: Sequence[Image.Image]) -> str:
    """An endless animation of at most some 12 seconds that rests on its last picture, as a data URI."""
    each = int(np.clip(12_000 / len(frames), 50, 160))
    times = [each] * (len(frames) - 1) + [1000]
    if not features.check("webp"):
        return data_uri("image/gif", _save(frames, times, "GIF"))
    data = _save(frames, times, "WEBP", lossless=True, quality=60)
    for scale in (1.0, 0.6, 0.35):
        if len(data) <= MAX_BYTES:
            break
        smaller = [f.resize((round(f.width * scale), round(f.height * scale))) for f in frames]
        data = _save(smaller, times, "WEBP", quality=70)
    return data_uri("image/webp", data)


def _save(frames: Sequence[Image.Image], times: list[int], kind: str, **options: int) -> bytes:
    file = io.BytesIO()
    frames[0].save(file, kind, save_all=True, append_images=frames[1:], duration=times, loop=0, **options)
    return file.getvalue()
