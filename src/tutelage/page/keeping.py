"""The level buffer of a page: the library's own, made small and offered one level at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import Buffer, BufferConfig, Candidates
from tutelage.env import Level

CAPACITY = 128


class Candidate(NamedTuple):
    """A level that is offered to the buffer, with its score."""

    level: Level
    parent: Int[Array, ""]
    generation: Int[Array, ""]
    birth: Int[Array, ""]
    score: Float[Array, ""]
    best_return: Float[Array, ""]


class Inserted(NamedTuple):
    """What became of a candidate: whether it was admitted, and the id under which its level is kept, −1 for none."""

    admitted: Bool[Array, ""]
    id: Int[Array, ""]


class Renewal(NamedTuple):
    """What another trial of a kept level has shown."""

    slot: Int[Array, ""]
    score: Float[Array, ""]
    best_return: Float[Array, ""]


def small(config: BufferConfig) -> BufferConfig:
    """A buffer's rules, for a page's few levels."""
    return replace(config, capacity=CAPACITY)


def insert(config: BufferConfig, buffer: Buffer, candidate: Candidate) -> tuple[Buffer, Inserted]:
    """Offers a level whose episodes have all ended; its score is its bid."""
    level, *facts = jax.tree.map(lambda x: x[None], candidate)
    parent, generation, birth, score, best_return = facts
    one = Candidates(
        level=level,
        id=jnp.full(1, -1, jnp.int32),
        parent=parent,
        generation=generation,
        birth=birth,
        score=score,
        bid=score,
        best_return=best_return,
        finished=jnp.ones(1, bool),
    )
    buffer, inserted = buffers.insert(buffer, config, one)
    return buffer, Inserted(inserted.admitted[0], inserted.id[0])


def pick(config: BufferConfig, key: Key[Array, ""], buffer: Buffer) -> tuple[Buffer, Int[Array, ""]]:
    """Draws the slot of a level to replay."""
    slots, buffer = buffers.sample(key, buffer, config, 1)
    return buffer, slots[0]


def renew(buffer: Buffer, renewal: Renewal) -> Buffer:
    """The score of a level that was played again."""
    slot, score, best_return = (x[None] for x in renewal)
    return buffers.update(buffer, slot, score, best_return, jnp.ones(1, bool))
