"""Engines beside JAX: a function of an engine called with pytrees, and how far two results are apart."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from tutelage.page.engines import Found
from tutelage.page.runtime import Engine, Record


class Called:
    """The functions of a use, as functions of pytrees that give the leaves of their results."""

    def __init__(self, found: Found) -> None:
        self.engine: Engine = found.engine.open()
        self._functions = found.functions
        self._ready: dict[str, tuple[list[Record], list[Record], Callable[[], None]]] = {}

    def __call__(self, role: str, *trees: Any) -> list[np.ndarray]:
        takes, gives, call = self._records(role)
        for record, tree in zip(takes, trees, strict=True):
            record.load(tree)
        call()
        return [value for record in gives for value in record.values()]

    def _records(self, role: str):
        if role not in self._ready:
            name = self._functions[role]
            function = self.engine.manifest["functions"][name]
            takes, gives = ([self.engine.make(kind) for _, kind in function[side]] for side in ("in", "out"))
            self._ready[role] = takes, gives, self.engine.bound(name, *takes, *gives)
        return self._ready[role]


def leaves(tree: Any) -> list[np.ndarray]:
    """As an engine has them: keys are their numbers."""

    def plain(x: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    return [plain(x) for x in jax.tree.leaves(tree)]


def assert_equal(ours: list[np.ndarray], tree: Any) -> None:
    """Every number, and every NaN."""
    for a, b in zip(ours, leaves(tree), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


def assert_close(ours: list[np.ndarray], tree: Any, *, within: float) -> None:
    """Floats to within rounding, everything else exactly."""
    for a, b in zip(ours, leaves(tree), strict=True):
        np.testing.assert_allclose(a, b, rtol=within if a.dtype == np.float32 else 0, atol=within)
