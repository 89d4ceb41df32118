"""Checkpoints: the whole state of a run, every array and PRNG key of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from tutelage.errors import UserError
from tutelage.runs.storage import Damaged, fill, named_leaves, read_arrays, write_arrays

SUFFIX = ".safetensors"
RENAMED = {".buffer.levels": ".buffer.level"}  # parts of arrays' names that older files have, and what they are today


def path_of(folder: Path, updates: int) -> Path:
    """Where the checkpoint after so many student updates lies."""
    return folder / f"{updates:08d}{SUFFIX}"


def available(folder: Path) -> list[int]:
    """The student updates there are checkpoints of, ascending."""
    stems = (p.stem for p in folder.glob(f"*{SUFFIX}") if not p.name.startswith("."))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def save(folder: Path, updates: int, state: PyTree, config: Mapping[str, Any]) -> None:
    """Writes a checkpoint. Its header names the config and every array's type and shape."""
    arrays = {name: np.asarray(leaf) for name, leaf in jax.device_get(named_leaves(state)).items()}
    tree = {name: [str(a.dtype), list(a.shape)] for name, a in arrays.items()}
    write_arrays(path_of(folder, updates), arrays, {"updates": updates, "config": config, "tree": tree})


def load(folder: Path, updates: int, template: PyTree) -> PyTree:
    """Reads a checkpoint into the shape of `template`, or raises `Damaged`."""
    arrays, header = read_arrays(path_of(folder, updates))
    if header.get("updates") != updates:
        raise Damaged(f"{path_of(folder, updates).name} is really the checkpoint of update {header.get('updates')}")
    return fill(template, {todays_name(name): array for name, array in arrays.items()})


def todays_name(name: str) -> str:
    """What an array of a checkpoint is called today."""
    for old, new in RENAMED.items():
        name = re.sub(re.escape(old) + r"(?!\w)", new, name)
    return name


def load_newest(folder: Path, template: PyTree, warn: Callable[[str], None]) -> tuple[int, PyTree]:
    """The newest checkpoint that is whole; says which ones had to be passed over, and why."""
    for updates in reversed(available(folder)):
        try:
            return updates, load(folder, updates, template)
        except Damaged as error:
            warn(f"Checkpoint {updates} is passed over: {error}.")
    raise UserError(f"{folder} holds no usable checkpoint; start the run again with another --out.")


def prune(folder: Path, keep: int, archive_every: int) -> None:
    """Removes all but the newest `keep` checkpoints and the archived ones."""
    for updates in available(folder)[:-keep]:
        if not archive_every or updates % archive_every:
            path_of(folder, updates).unlink(missing_ok=True)
