"""Loops that XLA runs inside of one GPU kernel.

XLA launches kernels for each round of a loop, and where arrays are small, a GPU does little else than wait for the
next. There is one loop that it does run inside of a kernel: a reduction over a window, in which each thread folds the
elements of its window one after the other. So here an element of the window is what a round of the loop reads, those
before the first round hold the state that the loop begins with, and to fold in an element is to run the loop's body.
XLA does not promise to fold in order, but what it compiles for CPUs and GPUs does, and tests and benchmarks see that.

All values of a reduction are results as well, of which a kernel can have fewer (48 or so) than a body reads. So four
values at a time are handed on as one complex number of double precision, bit by bit. The compiler takes them apart for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex128

from tutelage.envs.bipedal.physics.machine import Kept, State
from tutelage.gpu import traced

PARCEL = 4  # words of 32 bits in a complex number
WORD = 32  # truths in a word
AT_ONCE = 16  # arrays that are joined by a kernel


def in_one_kernel(body: Callable[[Kept, State], State], kept: Kept, state: State, times: int) -> State:
    """`state = body(kept, state)`, so many times.

    The body works on each element by itself, and has no loops.
    """
    leaves, tree = jax.tree.flatten((kept, state))
    count = len(jax.tree.leaves(state))
    arrays = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    shape = jnp.broadcast_shapes(*(leaves[k].shape for k in arrays))
    values = [jnp.broadcast_to(leaves[k], shape) for k in arrays]
    kinds = [value.dtype for value in values]

    def once(*scalars: Array) -> list[Array]:
        found = list(leaves)
        for place, scalar in zip(arrays, scalars, strict=True):
            found[place] = scalar
        return jax.tree.leaves(body(*jax.tree.unflatten(tree, found)))

    # Traced here: within the window, where numbers may have 64 bits, the body's would get them too.
    of_scalars = traced(once, [jax.ShapeDtypeStruct((), kind) for kind in kinds])
    read, changed = Parcels.of(kinds[:-count]), Parcels.of(kinds[-count:])
    with jax.enable_x64(True):
        shelves = read.shelved(values[:-count]), changed.shelved(values[-count:])
        ended = changed.unpacked(_folded(of_scalars, read, changed, *shelves, times))
    return jax.tree.unflatten(jax.tree.structure(state), ended)


def _folded(
    once: Callable[..., Sequence[Array]],
    read: Parcels,
    changed: Parcels,
    kept: Complex128[Array, "read ..."],
    state: Complex128[Array, "changed ..."],
    times: int,
) -> list[Array]:
    """The parcels of the state in the end."""
    # An element for each round, and before the first one for the beginning.
    shape = (times + 1, *state.shape[1:])
    number = lax.broadcasted_iota(jnp.int32, shape, 0) - np.int32(1)
    elements = [jnp.broadcast_to(parcel, shape) for parcel in (*kept, *state)]
    nothing, first = np.complex128(0), 1 + len(kept)

    def fold(folded: Sequence[Array], element: Sequence[Array]) -> tuple[Array, ...]:
        begin = changed.unpacked(element[first:])
        after = once(*read.unpacked(element[1:first]), *changed.unpacked(folded[first:]))
        now = [lax.select(element[0] < np.int32(0), a, b) for a, b in zip(begin, after, strict=True)]
        none = lax.full((), nothing, jnp.complex128)
        return (element[0], *(none,) * len(kept), *changed.packed(now))

    begin = (np.int32(0), *(nothing,) * len(elements))
    window, step = (shape[0], *(1,) * (len(shape) - 1)), (1,) * len(shape)
    out = lax.reduce_window((number, *elements), begin, fold, window, step, "VALID")
    return [parcel[0] for parcel in out[first:]]


@dataclass(frozen=True)
class Parcels:
    """How values of these types lie in complex numbers: four words each, the truths among them a bit each."""

    kinds: tuple[Any, ...]

    @classmethod
    def of(cls, kinds: Sequence[Any]) -> Parcels:
        """For values of types of 32 bits, and truths."""
        assert all(kind == jnp.bool_ or kind.itemsize == 4 for kind in kinds), f"a word has 32 bits: {kinds}"
        return cls(tuple(kinds))

    @property
    def _truths(self) -> list[int]:
        return [k for k, kind in enumerate(self.kinds) if kind == jnp.bool_]

    @property
    def _numbers(self) -> list[int]:
        return [k for k, kind in enumerate(self.kinds) if kind != jnp.bool_]

    def packed(self, values: Sequence[Array]) -> list[Array]:
        """The values, all of one shape, in complex numbers."""
        words = self._words(values)
        return [_parcel(words[k : k + PARCEL]) for k in range(0, len(words), PARCEL)]

    def shelved(self, values: Sequence[Array]) -> Complex128[Array, "parcels ..."]:
        """The values in complex numbers on one array, by a few kernels; one by one, they would be dozens.

        XLA's kernels look for where each number comes from, one array after the other, so they are given few at a time.
        """
        words = self._words(values)
        rows = lax.optimization_barrier([jnp.stack(words[k : k + AT_ONCE]) for k in range(0, len(words), AT_ONCE)])
        shelf = lax.optimization_barrier(jnp.concatenate(rows)).reshape(-1, PARCEL, *words[0].shape)
        return lax.optimization_barrier(_parcel([shelf[:, k] for k in range(PARCEL)]))

    def _words(self, values: Sequence[Array]) -> list[Array]:
        """As many as fill complex numbers."""
        words = [lax.bitcast_convert_type(values[k], jnp.uint32) for k in self._numbers]
        truths = [values[k] for k in self._truths]
        words += [_joined(truths[k : k + WORD]) for k in range(0, len(truths), WORD)]
        return words + [jnp.zeros_like(words[0])] * (-len(words) % PARCEL)

    def unpacked(self, parcels: Sequence[Array]) -> list[Array]:
        """The values again."""
        words = [word for parcel in parcels for word in _halves(parcel)]
        values: list[Any] = [None] * len(self.kinds)
        for k, word in zip(self._numbers, words, strict=False):
            values[k] = lax.bitcast_convert_type(word, self.kinds[k])
        for place, k in enumerate(self._truths):
            word = words[len(self._numbers) + place // WORD]
            values[k] = (word & np.uint32(1 << place % WORD)) != np.uint32(0)
        return values


def _joined(truths: Sequence[Array]) -> Array:
    """A word of which each bit is a truth."""
    word = jnp.zeros(truths[0].shape, jnp.uint32)
    for place, truth in enumerate(truths):
        word |= lax.select(truth, jnp.full_like(word, 1 << place), jnp.zeros_like(word))
    return word


def _parcel(words: Sequence[Array]) -> Array:
    return lax.complex(_double(words[0], words[1]), _double(words[2], words[3]))


def _double(low: Array, high: Array) -> Array:
    both = low.astype(jnp.uint64) | (high.astype(jnp.uint64) << np.uint64(WORD))
    return lax.bitcast_convert_type(both, jnp.float64)


def _halves(parcel: Array) -> list[Array]:
    halves = [lax.bitcast_convert_type(half, jnp.uint64) for half in (lax.real(parcel), lax.imag(parcel))]
    return [word.astype(jnp.uint32) for half in halves for word in (half, half >> np.uint64(WORD))]
