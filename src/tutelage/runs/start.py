"""How a run begins: from nothing, or from a checkpoint of another run, as in population-based training.

From the whole state, a run goes on where the checkpoint was made, by settings of its own: its student updates are
counted on, and it takes over the buffer and the ancestry of its levels. From the students alone, all else is new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tutelage.curricula.state import State
from tutelage.errors import UserError
from tutelage.runs import archive, checkpoint
from tutelage.runs.archive import Admitted
from tutelage.runs.config import Config
from tutelage.runs.leaves import fill, is_key
from tutelage.runs.run import initial_state, state_template
from tutelage.runs.storage import Damaged, read_arrays

STUDENT = ".learner.student"  # where the students are among the arrays of a checkpoint


@dataclass(frozen=True)
class Beginning:
    """The state that a run goes on from, and the levels that its buffer has from another run, with their ancestors."""

    state: State
    levels: Admitted | None = None

    @property
    def updates(self) -> int:
        """Student updates that were done before."""
        return int(self.state.updates.min())


def begin(config: Config, warn: Callable[[str], None] = lambda text: None) -> Beginning:
    """How a run of this config begins; a `UserError` if it cannot begin from the checkpoint that it names."""
    if not config.start:
        return Beginning(initial_state(config))
    path = Path(config.start)
    try:
        arrays, there = _read(path)
        rows = _rows(there, config.all_seeds, path)
        arrays = {checkpoint.todays_name(name): array[rows] for name, array in arrays.items()}
        if config.start_with == "students":
            return Beginning(_with_students(config, arrays))
        state = fill(state_template(config), arrays)
    except Damaged as error:
        raise UserError(f"--start {path} cannot be begun from: {error}.") from error
    done = int(state.updates.min())
    if done >= config.updates:
        raise UserError(f"--start {path} has done {done:,} student updates: --updates must be more, in all.")
    if config.all_seeds[0] not in there:
        state = _with_own_numbers(state, config)
    return Beginning(state, _levels(config, path, done, there, rows, warn))


def _read(path: Path) -> tuple[dict[str, np.ndarray], range]:
    """The arrays of a checkpoint, and the seeds along their first axis; or `Damaged`."""
    arrays, header = read_arrays(path)
    try:
        seed, seeds = (int(header["config"][name]) for name in ("seed", "seeds"))
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{path.name} does not say of which seeds it is") from error
    if not arrays or any(array.shape[:1] != (seeds,) for array in arrays.values()):
        raise Damaged(f"{path.name} is not the whole state of {seeds} seeds")
    return arrays, range(seed, seed + seeds)


def _rows(there: range, here: range, path: Path) -> list[int]:
    """Which seeds of a checkpoint are taken: those of the same number, or all of as many others."""
    if all(seed in there for seed in here):
        return [there.index(seed) for seed in here]
    if len(there) == len(here) and not set(there) & set(here):
        return list(range(len(here)))
    held = f"seed {there[0]}" if len(there) == 1 else f"seeds {there[0]} to {there[-1]}"
    raise UserError(f"--start {path} holds {held}: take of these, or as many others, by --seed and --seeds.")


def _with_students(config: Config, arrays: dict[str, np.ndarray]) -> State:
    state = initial_state(config)
    shapes = jax.eval_shape(lambda: state.learner.student)
    found = {name.removeprefix(STUDENT): array for name, array in arrays.items() if name.startswith(STUDENT)}
    return eqx.tree_at(lambda s: s.learner.student, state, fill(shapes, found))


def _with_own_numbers(state: State, config: Config) -> State:
    """Other seeds than the checkpoint's draw random numbers of their own."""
    seeds = jnp.asarray(config.all_seeds)

    def renew(leaf: Any) -> Any:
        if not is_key(leaf):
            return leaf
        several = jnp.broadcast_to(seeds.reshape(-1, *[1] * (leaf.ndim - 1)), leaf.shape)
        return jax.vmap(jax.random.fold_in)(leaf.ravel(), several.ravel()).reshape(leaf.shape)

    return jax.tree.map(renew, state)


def _levels(
    config: Config, path: Path, updates: int, there: range, rows: list[int], warn: Callable[[str], None]
) -> Admitted | None:
    """The levels that the chosen seeds had admitted until then, under this run's seeds."""
    example = jax.eval_shape(config.env.design().sample, jax.random.key(0))
    try:
        known = archive.read(path.parents[1] / "levels", example, updates)
    except UserError as error:
        warn(f"The ancestors of levels from before the start will not be known: {error}")
        return None
    parts = [known.at(known.seed == there[row]) for row in rows]
    ours = zip(parts, config.all_seeds, strict=True)
    return archive.concatenate([replace(part, seed=np.full_like(part.seed, seed)) for part, seed in ours])
