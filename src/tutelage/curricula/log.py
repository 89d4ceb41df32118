"""What a run writes down: means of what happened, the levels that were offered, and how the buffer stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import Buffer, BufferConfig
from tutelage.curricula.record import Record, blank
from tutelage.env import DesignSpace, Level

PHASES = ("explore", "replay", "edit")
EPISODES = ("return", "solved", "length", "score", "admitted")
NOTED = tuple(f"{phase}/{x}" for phase in PHASES for x in EPISODES)

Totals = Mapping[str, tuple[Array, Array]]
"""Sums of quantities by name, each with the weight that its mean will be divided by."""


class Mean(NamedTuple):
    """A mean in the making."""

    total: Float[Array, ""]
    weight: Float[Array, ""]


class Journal(Record):
    """Levels that were offered to the buffer, in rows of P: as many as a rollout has slots."""

    admitted: Bool[Array, "*many"]


class Log(eqx.Module):
    """What happened since the log was last taken: means by name, and the journal of levels."""

    means: dict[str, Mean]
    journal: Journal
    rows: Int[Array, ""]

    @staticmethod
    def blank(level: Level, slots: int, rows: int, more: tuple[str, ...] = ()) -> Log:
        """A log without entries. `more` names what is noted besides, of how students learn and by this method alone."""
        records = blank(level, rows, slots)
        journal = Journal(**vars(records), admitted=jnp.zeros((rows, slots), bool))
        means = {name: Mean(jnp.zeros(()), jnp.zeros(())) for name in (*NOTED, *more)}
        return Log(means, journal, jnp.zeros((), jnp.int32))

    def note(self, totals: Totals) -> Log:
        """Adds to the means."""
        means = dict(self.means)
        for name, (total, weight) in totals.items():
            means[name] = Mean(means[name].total + total, means[name].weight + weight)
        return replace(self, means=means)

    def write(self, entries: Journal) -> Log:
        """Adds `[N]` entries to the journal, in as many rows as they take; what fills up the last was not admitted."""
        slots, count = self.journal.id.shape[1], entries.id.shape[0]
        rows = -(-count // slots)

        def put(all_: Array, new: Array) -> Array:
            padded = jnp.pad(new, [(0, rows * slots - count)] + [(0, 0)] * (new.ndim - 1))
            return all_.at[self.rows + jnp.arange(rows)].set(padded.reshape(rows, slots, *new.shape[1:]))

        return replace(self, journal=jax.tree.map(put, self.journal, entries), rows=self.rows + rows)


def survey(design: DesignSpace, buffer: Buffer, config: BufferConfig) -> dict[str, Float[Array, ""]]:
    """The buffer in numbers: fill, scores, ages, and the complexity of its levels (plain means over filled slots).

    Quantities that end in `_replay` are weighted by the replay distribution instead.
    """
    filled = jnp.arange(config.capacity) < buffer.filled
    weight = buffers.weights(buffer, config)
    facts = dict(jax.vmap(design.describe)(buffer.level))
    facts["generation"] = buffer.generation.astype(jnp.float32)
    out = {f"buffer/{k}": _mean(x, filled) for k, x in facts.items()}
    out |= {f"buffer/{k}_replay": _mean(x, weight * filled) for k, x in facts.items()}
    out["buffer/fill"] = buffer.filled / config.capacity
    out["buffer/score"] = _mean(buffer.score, filled)
    out["buffer/max_score"] = jnp.where(filled, buffer.score, 0.0).max()
    out["buffer/staleness"] = _mean(buffer.staleness, filled)
    return out


def _mean(x: Array, weight: Array) -> Float[Array, ""]:
    """Weighted mean over the entries that are not NaN; 0 where there is none."""
    weight = jnp.where(jnp.isnan(x), 0.0, weight)
    return jnp.where(weight > 0, x * weight, 0.0).sum() / jnp.maximum(weight.sum(), 1e-9)
