"""What the buffers of a run held at a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from tutelage.env import Level
from tutelage.report.gather import Member
from tutelage.report.pictures import evenly
from tutelage.runs.browse import Found

FACTS = ("id", "parent", "generation", "birth", "score")


@dataclass(frozen=True, eq=False)
class Holdings:
    """N levels of one seed's buffer, highest score first: facts and measures `[N]`, and the levels stacked likewise."""

    seed: int
    updates: int
    facts: dict[str, np.ndarray]
    metrics: dict[str, np.ndarray]
    levels: Level

    def __len__(self) -> int:
        return len(self.facts["id"])

    def found(self, n: int) -> Found:
        """The n-th of them."""
        id_, parent, generation, birth = (int(self.facts[name][n]) for name in FACTS[:-1])
        metrics = {name: float(values[n]) for name, values in self.metrics.items()}
        level, score = jax.tree.map(lambda x: x[n], self.levels), float(self.facts["score"][n])
        return Found(level, id_, parent, generation, birth, score, self.seed, metrics)


def holdings(member: Member, updates: int | None = None, top: int | None = None) -> list[Holdings]:
    """What each seed that counts held at a checkpoint, the newest if none is named; all of it, or the best `top`."""
    state = member.run.state(updates)
    buffer, done = jax.device_get(state.buffer), int(np.asarray(state.updates).max())
    places = [list(member.run.config.all_seeds).index(seed) for seed in member.seeds]
    orders = [np.argsort(-buffer.score[s, : buffer.filled[s]], kind="stable")[:top] for s in places]
    found = []
    for seed, s, order in zip(member.seeds, places, orders, strict=True):
        levels = jax.tree.map(lambda x, s=s, order=order: x[s][order], buffer.level)
        facts = {name: np.asarray(getattr(buffer, name)[s][order]) for name in FACTS}
        found.append(Holdings(seed, done, facts, described(member, levels), levels))
    return found


def described(member: Member, levels: Level) -> dict[str, np.ndarray]:
    """Every measure of every level, `[N]` each; in portions of one size, so that one program is compiled."""
    portion, n = 512, len(jax.tree.leaves(levels)[0])
    parts = []
    for start in range(0, n, portion):
        rows = np.arange(start, start + portion).clip(max=n - 1)
        parts.append(jax.device_get(member.describe(jax.tree.map(lambda x, rows=rows: x[rows], levels))))
    return {name: np.concatenate([part[name] for part in parts])[:n] for name in parts[0]} if parts else {}


def landmarks(member: Member, n: int = 4) -> list[int]:
    """At most `n` checkpoints, evenly spaced, that of the untrained student not among them."""
    trained = [updates for updates in member.run.checkpoints if updates]
    return [trained[i] for i in evenly(len(trained), n)] if trained else []
