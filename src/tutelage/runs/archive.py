"""Every level that was ever admitted to a buffer, with its ancestry, on disk.

One file for each stretch between checkpoints, so that a resumed run can drop what it is about to do again.
"""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from tutelage.curricula.log import Journal
from tutelage.curricula.record import Record
from tutelage.env import Level
from tutelage.errors import UserError, reason
from tutelage.runs.storage import Damaged, numbered, read_arrays, remove, write_arrays


class Admitted(Record):
    """Levels of several seeds in order of admission, with the score they had then; NumPy's arrays."""

    seed: Int[np.ndarray, "*many"]

    def __len__(self) -> int:
        return len(self.id)

    def find(self, seed: int, level_id: int) -> int:
        """The position of a level, by the seed it belongs to and its id."""
        hits = np.flatnonzero((self.seed == seed) & (self.id == level_id))
        if not len(hits):
            raise UserError(f"Seed {seed} has no level {level_id}; its ids run from 0 to {self._last(seed)}.")
        return int(hits[0])

    def lineage(self, seed: int, level_id: int) -> list[int]:
        """Positions of a level's ancestors, the first ancestor first, itself last."""
        where = {int(i): n for n, i in enumerate(self.id) if self.seed[n] == seed}
        line = [self.find(seed, level_id)]
        while (parent := int(self.parent[line[-1]])) >= 0:  # always a smaller id than the child's
            if parent not in where:
                raise UserError(f"The levels on disk are incomplete: seed {seed} lacks level {parent}.")
            line.append(where[parent])
        return line[::-1]

    def _last(self, seed: int) -> int:
        ids = self.id[self.seed == seed]
        return int(ids.max()) if len(ids) else -1


FACTS = tuple(f.name for f in fields(Admitted) if f.name != "level")


def admitted_from(journal: Journal, rows: Any, seeds: list[int]) -> Admitted:
    """What a stretch of training admitted: the journal's arrays are `[S, R, P, …]`, `rows` `[S]` were written."""
    written = np.arange(journal.admitted.shape[1])[None, :, None] < np.asarray(rows)[:, None, None]
    chosen = np.asarray(journal.admitted) & written
    seed = np.broadcast_to(np.asarray(seeds)[:, None, None], chosen.shape)[chosen]
    return Admitted(**vars(jax.tree.map(np.asarray, journal.record).at(chosen)), seed=seed.astype(np.int32))


def concatenate(parts: list[Admitted]) -> Admitted:
    """Several stretches as one."""
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def write(folder: Path, updates: int, levels: Admitted) -> None:
    """Saves the levels admitted up to a checkpoint since the one before it."""
    arrays = {name: getattr(levels, name) for name in FACTS}
    arrays |= {f"level/{i}": _pack(x) for i, x in enumerate(jax.tree.leaves(levels.level))}
    write_arrays(folder / f"{updates:08d}.safetensors", arrays, {"updates": updates})


def read(folder: Path, example: Level, until: int | None = None) -> Admitted:
    """All levels of a run, or those admitted up to a checkpoint; `example` is a level of the same design space."""
    chosen = [path for path in segments(folder) if until is None or int(path.stem) <= until]
    parts = [_read_segment(path, example) for path in chosen]
    if not parts:
        raise UserError(f"{folder} holds no levels yet.")
    found = concatenate(parts)
    if len(np.unique(np.stack([found.seed, found.id]), axis=1).T) < len(found):
        raise UserError(f"{folder}: the levels are damaged; some are there twice.")
    return found


def segments(folder: Path) -> list[Path]:
    """The files, in order."""
    return list(numbered(folder, ".safetensors").values())


def drop_after(folder: Path, updates: int) -> None:
    """Forgets what was admitted after a checkpoint."""
    for path in segments(folder):
        if int(path.stem) > updates:
            remove(path)


def _read_segment(path: Path, example: Level) -> Admitted:
    leaves, structure = jax.tree.flatten(example)
    try:
        arrays, _ = read_arrays(path)
        unpacked = [_unpack(arrays[f"level/{i}"], leaf) for i, leaf in enumerate(leaves)]
        facts = {name: arrays[name] for name in FACTS}
    except Damaged as error:
        raise UserError(f"{path.parent}: {error}.") from error
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path} holds no levels of this design space ({reason(error)}).") from error
    shapes = [x.shape for x in unpacked] + [x.shape for x in facts.values()]
    if shapes != [(len(facts["id"]), *x.shape) for x in leaves] + [(len(facts["id"]),)] * len(FACTS):
        raise UserError(f"{path} holds no levels of this design space.")
    return _checked(path, Admitted(level=jax.tree.unflatten(structure, unpacked), **facts))


def _checked(path: Path, found: Admitted) -> Admitted:
    """Levels whose facts can be so: every level is younger than its parent, so that each line of descent ends."""
    for name in FACTS:
        facts = getattr(found, name)
        if facts.dtype.kind != ("f" if name == "score" else "i"):
            raise UserError(f"{path}: the levels are damaged; their {name} is of type {facts.dtype}.")
        if (facts < -1).any() if name == "parent" else name != "score" and (facts < 0).any():
            raise UserError(f"{path}: the levels are damaged; a {name} is negative.")
    if (found.parent >= found.id).any():
        raise UserError(f"{path}: the levels are damaged; one is older than its parent.")
    return found


def _pack(x: np.ndarray) -> np.ndarray:
    """Booleans as bits."""
    return np.packbits(x.reshape(len(x), math.prod(x.shape[1:])), axis=1) if x.dtype == bool else x


def _unpack(x: np.ndarray, like: Any) -> np.ndarray:
    if like.dtype != bool:
        if x.dtype != like.dtype:
            raise TypeError(f"{x.dtype} instead of {like.dtype}")
        return x
    bits = np.unpackbits(x, axis=1, count=int(np.prod(like.shape)))
    return bits.astype(bool).reshape(len(x), *like.shape)
