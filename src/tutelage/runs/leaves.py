"""Pytrees as named arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from tutelage.errors import shown
from tutelage.runs.storage import Damaged


def named_leaves(tree: PyTree) -> dict[str, Any]:
    """The leaves of a pytree by path; PRNG keys as their raw bits."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): _raw(leaf) for path, leaf in leaves}


def _raw(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def is_key(leaf: Any) -> bool:
    """Whether these are PRNG keys."""
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def fill(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A pytree like `template` (arrays or shapes) with the named arrays in its places, or `Damaged`."""
    paths, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))[0]
        raise Damaged(f"it belongs to another configuration: {shown(odd)} is on one side only")
    return jax.tree.unflatten(
        structure, [_restore(n, leaf, arrays[n]) for n, (_, leaf) in zip(names, paths, strict=True)]
    )


def _restore(name: str, like: Any, array: np.ndarray) -> Any:
    expected = jax.eval_shape(jax.random.key_data, like) if is_key(like) else like
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise Damaged(
            f"it belongs to another configuration: {name} is {array.dtype}{list(array.shape)} "
            f"instead of {expected.dtype}{list(expected.shape)}"
        )
    return jax.random.wrap_key_data(jax.numpy.asarray(array)) if is_key(like) else jax.numpy.asarray(array)
