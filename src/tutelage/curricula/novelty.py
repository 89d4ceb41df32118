"""Novelty: how far a level lies from those that are known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage.curricula.buffer import Buffer, fingerprint
from tutelage.env import DesignSpace, Level

NEIGHBOURS = 5


def novelty(design: DesignSpace, buffer: Buffer, levels: Level) -> Float[Array, " N"]:
    """Mean distance of each level to the nearest others in the buffer, by the design space's descriptors.

    Each descriptor is in units of its standard deviation over the buffer; one that does not apply to a level (NaN) is
    taken to be as it is on average.
    """
    filled = jnp.arange(buffer.score.size) < buffer.filled
    known, new = (_descriptors(design, x) for x in (buffer.level, levels))
    there = filled[:, None] & ~jnp.isnan(known)
    count = jnp.maximum(there.sum(axis=0), 1)
    mean = jnp.where(there, known, 0.0).sum(axis=0) / count
    deviation = jnp.sqrt(jnp.where(there, (known - mean) ** 2, 0.0).sum(axis=0) / count)
    in_units = lambda x: jnp.where(jnp.isnan(x), 0.0, x - mean) / jnp.where(deviation > 0, deviation, 1.0)  # noqa: E731
    itself = (jax.vmap(fingerprint)(levels)[:, None] == buffer.fingerprint).all(axis=-1)
    return to_nearest(in_units(new), in_units(known), filled & ~itself, NEIGHBOURS)


def to_nearest(
    points: Float[Array, "N d"], known: Float[Array, "K d"], there: Bool[Array, "*N K"], neighbours: int
) -> Float[Array, " N"]:
    """Mean Euclidean distance to the nearest of what is there, or to all if that is fewer."""
    distance = jnp.linalg.norm(points[:, None] - known, axis=-1)
    distance = jnp.sort(jnp.where(there, distance, jnp.inf), axis=1)[:, :neighbours]
    there = jnp.isfinite(distance)
    return jnp.where(there, distance, 0.0).sum(axis=1) / jnp.maximum(there.sum(axis=1), 1)


def _descriptors(design: DesignSpace, levels: Level) -> Float[Array, "N d"]:
    facts = jax.vmap(design.describe)(levels)
    return jnp.stack([jnp.asarray(facts[name], jnp.float32) for name in sorted(facts)], axis=1)
