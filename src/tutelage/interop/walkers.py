"""The walkers that the authors of the ACCEL paper published, as students.

The site of its demo, the repository accelagent/accelagent.github.io, has five walkers each of ACCEL, PLR, DR and
ALP-GMM after 30,000 student updates, in the folders `dist/policy_models/walker/bipedal/METHOD_30k_sN`. Download a
folder, which is a `model.json` and a `.bin` file beside it, and:

    from tutelage.interop.walkers import published_walker

    student = published_walker("accel_30k_s0")

They are policies alone: the critic that they were trained with was not published, and here it is zero.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tutelage.errors import UserError, reason
from tutelage.runs.presets import preset
from tutelage.runs.storage import Damaged, read, read_json
from tutelage.student.nets import TwoTowers

OBSERVED, HIDDEN, MOTORS = 24, 64, 4
SHAPES = {
    "w0": (OBSERVED, HIDDEN),
    "b0": (HIDDEN,),
    "w1": (HIDDEN, HIDDEN),
    "b1": (HIDDEN,),
    "w2": (HIDDEN, MOTORS),
    "b2": (MOTORS,),
    "log_std": (MOTORS,),
}
"""mean = tanh(tanh(obs·w0 + b0)·w1 + b1)·w2 + b2, and the logarithm of the deviation around it."""


def published_walker(path: str | Path) -> TwoTowers:
    """A walker from the folder that holds its `model.json`, or from an `.npz` file with the arrays of `SHAPES`."""
    path = Path(path)
    try:
        arrays = _from_tensorflow(path) if path.is_dir() else _from_numpy(path)
    except Damaged as error:
        raise UserError(f"{path}: {error}.") from error
    for name, shape in SHAPES.items():
        if name not in arrays or arrays[name].shape != shape:
            raise UserError(f"{path} holds no walker of {HIDDEN} units: its {name} is not {'×'.join(map(str, shape))}.")
    return student_of(arrays)


def student_of(arrays: Mapping[str, np.ndarray]) -> TwoTowers:
    """The student of the walker's presets, with these weights for an actor and a critic of zeros."""
    config = preset("bipedal", "accel")
    student = config.student.build(
        config.env.encoder(jax.random.key(0)), config.env.env().actions, key=jax.random.key(0)
    )
    assert isinstance(student, TwoTowers)
    layers = student.actor.layers
    weights = [weight for n, layer in enumerate(layers) for weight in (arrays[f"w{n}"], arrays[f"b{n}"])]
    new = [jnp.asarray(weight, jnp.float32) for weight in (*weights, arrays["log_std"])]

    def places(s: TwoTowers) -> list[Any]:
        return [part for layer in s.actor.layers for part in (layer.weight, layer.bias)] + [s.log_std]

    student = eqx.tree_at(places, student, new)
    return eqx.tree_at(lambda s: s.critic, student, jax.tree.map(jnp.zeros_like, student.critic))


def _from_numpy(file: Path) -> dict[str, np.ndarray]:
    read(file)  # or say why it cannot be
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name]) for name in SHAPES if name in arrays}
    except (ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise Damaged(f"it is no .npz file ({reason(error)})") from error


def _from_tensorflow(folder: Path) -> dict[str, np.ndarray]:
    """The weights of a graph in TensorFlow.js's format, whose manifest lists them as they lie in the files.

    Layers come one after another; the deviation is the exponential of the sum of two rows.
    """
    floats: list[np.ndarray] = []
    try:
        for group in read_json(folder / "model.json")["weightsManifest"]:
            data, start = b"".join(read(folder / Path(name).name) for name in group["paths"]), 0
            for weight in group["weights"]:
                count = math.prod(weight["shape"])  # of numbers with 32 bits each, whole or real
                if weight["dtype"] == "float32":
                    array = np.frombuffer(data, "<f4", count, start).reshape(weight["shape"])
                    floats.append(array)
                start += 4 * count
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"its model.json is not that of a published walker ({reason(error)})") from error
    rows = [x[0] for x in floats if x.shape == (1, MOTORS)]
    layers = [x for x in floats if x.shape != (1, MOTORS)]
    named = dict(zip([name for name in SHAPES if name != "log_std"], layers, strict=False))
    return named | ({"log_std": np.sum(rows, axis=0)} if rows else {})
