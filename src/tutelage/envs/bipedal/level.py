"""A walker's level: the eight numbers a teacher sets, and a seed from which the terrain follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, UInt32

NAMES = (
    *("roughness", "pit_gap_low", "pit_gap_high", "stump_height_low", "stump_height_high"),
    *("stair_height_low", "stair_height_high", "stair_steps"),
)
PAIRS = ((1, 2), (3, 4), (5, 6))  # the low and the high end of one range


class WalkerLevel(NamedTuple):
    """What kind of terrain, and which one of that kind.

    Lengths are in cells of 14/30 m. Heights and gaps are drawn uniformly between their low and their high end, the
    number of a stair's steps uniformly from 0 … `stair_steps` − 1. The seed drives all draws, that of the first push
    included.
    """

    genes: Float[Array, "8"]  # by NAMES
    seed: UInt32[Array, ""]


def make_level(genes: ArrayLike | Sequence[float], seed: ArrayLike) -> WalkerLevel:
    """A level with every leaf in its proper type."""
    return WalkerLevel(jnp.asarray(genes, jnp.float32), jnp.asarray(seed, jnp.uint32))


def in_order(genes: Float[Array, "8"]) -> Float[Array, "8"]:
    """Low ends before high ends, and a whole number of steps."""
    for low, high in PAIRS:
        ends = jnp.sort(genes[low : high + 1])
        genes = genes.at[low : high + 1].set(ends)
    return genes.at[-1].set(jnp.round(genes[-1]))
