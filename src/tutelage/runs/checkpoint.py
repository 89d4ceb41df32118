"""Checkpoints: the whole state of a run, every array and PRNG key of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from tutelage.errors import UserError, shown
from tutelage.runs.leaves import fill, named_leaves
from tutelage.runs.storage import Damaged, numbered, read_arrays, remove, write_arrays

SUFFIX = ".safetensors"
RENAMED = {".buffer.levels": ".buffer.level"}  # parts of arrays' names that older files have, and what they are today

Difference = Callable[[Any], str | None]  # of the config in a header from the one that is asked for


def path_of(folder: Path, updates: int) -> Path:
    """Where the checkpoint after so many student updates lies."""
    return folder / f"{updates:08d}{SUFFIX}"


def available(folder: Path) -> list[int]:
    """The student updates there are checkpoints of, ascending."""
    return list(numbered(folder, SUFFIX))


def save(folder: Path, updates: int, state: PyTree, config: Mapping[str, Any]) -> None:
    """Writes a checkpoint. Its header names the config and every array's type and shape."""
    arrays = {name: np.asarray(leaf) for name, leaf in jax.device_get(named_leaves(state)).items()}
    tree = {name: [str(a.dtype), list(a.shape)] for name, a in arrays.items()}
    write_arrays(path_of(folder, updates), arrays, {"updates": updates, "config": config, "tree": tree})


def load(folder: Path, updates: int, template: PyTree, difference: Difference = lambda config: None) -> PyTree:
    """Reads a checkpoint into the shape of `template`, or raises `Damaged`; a `UserError` if its config differs."""
    path = path_of(folder, updates)
    arrays, header = read_arrays(path)
    if header.get("updates") != updates:
        raise Damaged(f"{path.name} is really the checkpoint of update {shown(header.get('updates'))}")
    if (text := difference(header.get("config"))) is not None:
        raise UserError(f"{path} was made with another config: {text}.")
    return fill(template, {todays_name(name): array for name, array in arrays.items()})


def todays_name(name: str) -> str:
    """What an array of a checkpoint is called today."""
    for old, new in RENAMED.items():
        name = re.sub(re.escape(old) + r"(?!\w)", new, name)
    return name


def load_newest(
    folder: Path, template: PyTree, warn: Callable[[str], None], difference: Difference = lambda config: None
) -> tuple[int, PyTree]:
    """The newest checkpoint that is whole; says which ones had to be passed over, and why."""
    for updates in reversed(available(folder)):
        try:
            return updates, load(folder, updates, template, difference)
        except Damaged as error:
            warn(f"Checkpoint {updates} is passed over: {error}.")
    raise UserError(f"{folder} holds no usable checkpoint; start the run again with another --out.")


def prune(folder: Path, keep: int, archive_every: int) -> None:
    """Removes all but the newest `keep` checkpoints and the archived ones."""
    for updates in available(folder)[:-keep]:
        if not archive_every or updates % archive_every:
            remove(path_of(folder, updates))
