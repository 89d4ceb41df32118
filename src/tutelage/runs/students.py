"""Students by themselves: a folder with a run's config and, in one file, the students of one checkpoint.

It opens as a run of which nothing else is left: its students play, but they cannot go on learning. The names are those
of Hugging Face's model repositories, `config.json` and `model.safetensors`.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from tutelage.errors import UserError
from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs.checkpoint import Difference
from tutelage.runs.config import Config
from tutelage.runs.leaves import fill, named_leaves
from tutelage.runs.storage import Damaged, make_folder, read_arrays, write_arrays, write_atomically

FILE = "model.safetensors"
LARGEST_HALF = float(np.finfo(np.float16).max)


def write(folder: Path, config: Config[Any, Any], updates: int, students: PyTree, *, half: bool = False) -> None:
    """Writes the students of all the config's seeds, stacked, after so many updates; `half`: with 16-bit weights."""
    data = configs.to_json(config, presets.method_name(config.method))
    leaves = jax.device_get(named_leaves(students))
    arrays = {_public(name): _halved(np.asarray(leaf)) if half else np.asarray(leaf) for name, leaf in leaves.items()}
    make_folder(folder)
    write_arrays(folder / FILE, arrays, {"updates": updates, "config": data})
    write_atomically(folder / "config.json", (json.dumps(data, indent=2) + "\n").encode())


def are_there(folder: Path) -> bool:
    """Whether a folder holds students by themselves."""
    return (folder / FILE).is_file()


def read(folder: Path, template: PyTree, difference: Difference) -> tuple[int, PyTree]:
    """The student update and the students, in the shape of `template`; a `UserError` where they cannot be had."""
    try:
        arrays, header = read_arrays(folder / FILE)
        if type(updates := header.get("updates")) is not int:
            raise Damaged(f"{FILE} does not say after how many updates")
        if (text := difference(header.get("config"))) is not None:
            raise UserError(f"{folder / FILE} is of another run than config.json: {text}.")
        return updates, fill(template, {_private(name): _whole(array) for name, array in arrays.items()})
    except Damaged as error:
        raise UserError(f"{folder}: {error}.") from error


def of_seed(config: Config[Any, Any], students: PyTree, seed: int) -> tuple[Config[Any, Any], PyTree]:
    """The config and the students, stacked, of one seed alone."""
    if seed not in config.all_seeds:
        there = config.all_seeds
        raise UserError(f"There is no seed {seed}: seeds are {there[0]} to {there[-1]}.")
    n = config.all_seeds.index(seed)
    return dataclasses.replace(config, seed=seed, seeds=1), jax.tree.map(lambda x: x[n : n + 1], students)


def _halved(array: np.ndarray) -> np.ndarray:
    if array.dtype != np.float32 or not (np.abs(array) <= LARGEST_HALF).all():
        return array
    return array.astype(np.float16)


def _whole(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _public(name: str) -> str:
    """`.encoder.kernel` is called `encoder.kernel`."""
    return name.removeprefix(".")


def _private(name: str) -> str:
    return name if name.startswith("[") else f".{name}"
