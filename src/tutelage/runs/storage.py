"""Arrays on disk: safetensors files with a checksum; a kill at any moment leaves a whole file or none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

FORMAT = "tutelage-1"


class Damaged(Exception):
    """A file that is not what it should be; the text says how."""


def write_atomically(path: Path, data: bytes) -> None:
    """Temporary name, flush, rename."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Saves named arrays with a JSON header and a checksum over all of it."""
    tensors = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    text = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "header": text, "sha256": _checksum(tensors, text)}
    # One entry: several would be written in an order that changes from process to process.
    write_atomically(path, save(tensors, {"tutelage": json.dumps(metadata)}))


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Loads what `write_arrays` saved, or raises `Damaged`. Executes nothing."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = json.loads((file.metadata() or {}).get("tutelage", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise Damaged(f"{path.name} is truncated or not a checkpoint ({error})") from error
    if metadata.get("format") != FORMAT:
        raise Damaged(f"{path.name} was not written by this program")
    if metadata.get("sha256") != _checksum(tensors, metadata.get("header", "")):
        raise Damaged(f"{path.name} is corrupted: its checksum does not match")
    return tensors, json.loads(metadata["header"])


def _checksum(tensors: Mapping[str, np.ndarray], header: str) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        a = tensors[name]
        digest.update(f"{name}:{a.dtype}:{a.shape}".encode())
        digest.update(np.ascontiguousarray(a).tobytes())
    return digest.hexdigest()


def named_leaves(tree: PyTree) -> dict[str, Any]:
    """The leaves of a pytree by path; PRNG keys as their raw bits."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): _raw(leaf) for path, leaf in leaves}


def _raw(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def fill(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A pytree like `template` (arrays or shapes) with the named arrays in its places, or `Damaged`."""
    paths, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))[0]
        raise Damaged(f"it belongs to another configuration: {odd} is on one side only")
    return jax.tree.unflatten(
        structure, [_restore(n, leaf, arrays[n]) for n, (_, leaf) in zip(names, paths, strict=True)]
    )


def _restore(name: str, like: Any, array: np.ndarray) -> Any:
    expected = jax.eval_shape(jax.random.key_data, like) if _is_key(like) else like
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise Damaged(
            f"it belongs to another configuration: {name} is {array.dtype}{list(array.shape)} "
            f"instead of {expected.dtype}{list(expected.shape)}"
        )
    return jax.random.wrap_key_data(jax.numpy.asarray(array)) if _is_key(like) else jax.numpy.asarray(array)
