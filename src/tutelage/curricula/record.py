"""A level, where it comes from and what it is worth: what buffers hold, logs keep and reports show."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from tutelage.env import Level

R = TypeVar("R", bound="Record")

if TYPE_CHECKING:  # in a buffer these are JAX's arrays, in an archive NumPy's, of a single level numbers
    Numbers = Any
else:
    Numbers = ArrayLike


class Record(eqx.Module):
    """One level, or many stacked; a class that knows more of its levels extends it."""

    level: Level
    id: Int[Numbers, "*many"]
    """Counted from 0 within a seed, in order of admission; −1 for a level that was not admitted."""
    parent: Int[Numbers, "*many"]
    """Id of the level that this one was edited from, −1 if none."""
    generation: Int[Numbers, "*many"]
    """How many edits in a row led to it from a level of the generator."""
    birth: Int[Numbers, "*many"]
    """Student updates made when it was offered to the buffer."""
    score: Float[Numbers, "*many"]

    @property
    def record(self) -> Record:
        """These six fields alone."""
        return Record(**{f.name: getattr(self, f.name) for f in fields(Record)})

    def at(self: R, where: Any) -> R:
        """One of many, or those that an index chooses."""
        return jax.tree.map(lambda x: x[where], self)


def blank(level: Level, *shape: int) -> Record:
    """Room for so many levels like this one, of which only shapes and types are looked at."""
    none, zero = jnp.full(shape, -1, jnp.int32), jnp.zeros(shape, jnp.int32)
    levels = jax.tree.map(lambda x: jnp.zeros((*shape, *x.shape), x.dtype), level)
    return Record(levels, id=none, parent=none, generation=zero, birth=zero, score=jnp.zeros(shape))


def newborn(level: Level, score: Float[Array, " N"], birth: Int[Array, ""], parents: Record | None = None) -> Record:
    """N levels that have just been scored, from the generator or edited from as many `parents`."""
    none = jnp.full(score.shape, -1, jnp.int32)
    return Record(
        level=level,
        id=none,
        parent=none if parents is None else parents.id,
        generation=none + 1 if parents is None else parents.generation + 1,
        birth=jnp.broadcast_to(birth, score.shape),
        score=score,
    )
