"""CENIE: ACCEL that replays levels for their novelty to the student too, by how likely its experience on them was.

Teoh et al. 2024, in our words. A mixture of Gaussians is fitted to the state–action pairs x that the student has lately
learned from. The novelty of a level is how unlikely the pairs of a rollout on it are:

    N = −mean_x log Σ_k w_k N(x; μ_k, diag σ_k²)

The replay distribution is by the ranks of novelty for one share, by those of regret for the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from tutelage.curricula import diagonal
from tutelage.curricula.accel import ACCEL
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Trial
from tutelage.curricula.diagonal import Diagonal, log_density
from tutelage.curricula.scores import Evidence, Marks
from tutelage.curricula.seeds import when
from tutelage.curricula.state import State
from tutelage.env import Obs
from tutelage.student.distributions import as_vectors, width
from tutelage.student.nets import vectors


class Experience(eqx.Module):
    """The latest pairs that the student has learned from, and the mixture fitted to them."""

    pairs: Float[Array, "W d"]
    taken: Int[Array, ""]  # ever
    mixture: Diagonal


@dataclass(frozen=True)
class CENIE(ACCEL):
    """Coverage-based evaluation of novelty (Teoh et al. 2024) in ACCEL; with an edit rate of 0, in robust PLR."""

    buffer: BufferConfig = BufferConfig(novelty=0.5)
    """The level replay buffer; `novelty` is the paper's α, half of the distribution."""
    window: int = 8192
    """Pairs that the mixture is fitted to, the latest ones."""
    taken: int = 1024
    """Pairs taken at random from the rollout of each student update."""
    components: int = 10
    """Components of the mixture."""
    fit_every: int = 5
    """Student updates between two fits."""
    fit_steps: int = 20
    """Steps of expectation–maximisation in a fit, from k-means."""

    notes = ("cenie/novelty",)
    """The mean novelty of the levels that were played."""

    def __post_init__(self):
        super().__post_init__()
        for name in ("components", "fit_every", "fit_steps", "taken"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, not {getattr(self, name)}.")
        if not self.components <= self.window or self.window % self.taken:
            raise ValueError("`window` must be at least `components`, and a multiple of `taken`.")
        if not self.buffer.novelty:
            raise ValueError("`buffer.novelty` must be positive: without it, cenie is accel.")

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student without experience."""
        if self.taken > room.slots * room.steps:
            raise ValueError(
                f"`method.taken` must be at most `slots` × `steps`, {room.slots * room.steps}, not {self.taken}."
            )
        s = super().init(room, key)
        obs = jax.eval_shape(room.env.reset, key, jax.eval_shape(room.design.sample, key))[1]
        obs = jax.tree.map(lambda x: jnp.zeros((1, 1, *x.shape), x.dtype), obs)
        size = jax.eval_shape(aware, s.learner.student, obs, jnp.ones((1, 1), bool)).shape[-1] + width(room.env.actions)
        mixture = diagonal.standard(self.components, size)
        return replace(s, own=Experience(jnp.zeros((self.window, size)), jnp.int32(0), mixture))

    def judge(
        self, room: Classroom, s: State, evidence: Evidence, best: Float[Array, "P Q"] | None, entries: int
    ) -> tuple[State, Marks]:
        """Regret, and the novelty of all pairs on each level: 0 until a mixture has been fitted."""
        s, marks = super().judge(room, s, evidence, best, entries)
        surprise = -log_density(self.pairs(room, evidence), s.own.mixture)
        on = evidence.rollout.entry[..., None] == jnp.arange(entries)
        novelty = jnp.where(on, surprise[..., None], 0.0).sum(axis=0) / jnp.maximum(on.sum(axis=0), 1)
        novelty = jnp.where(s.own.taken >= self.window, novelty, 0.0)
        there = marks.finished
        s = s.note({"cenie/novelty": (jnp.where(there, novelty, 0.0).sum(), there.sum(dtype=jnp.float32))})
        return s, replace(marks, novelty=novelty)

    def learn(self, room: Classroom, s: State, trial: Trial) -> State:
        """A student update; then what it was made of is experience, to which the mixture is fitted now and then."""
        s, key = super().learn(room, s, trial).next_key()
        key_pairs, key_fit = jax.random.split(key)
        every = self.pairs(room, trial.evidence).reshape(-1, s.own.pairs.shape[1])
        some = every[jax.random.permutation(key_pairs, len(every))[: self.taken]]
        kept = lax.dynamic_update_slice(s.own.pairs, some, (s.own.taken % self.window, 0))
        s = replace(s, own=replace(s.own, pairs=kept, taken=s.own.taken + self.taken))
        due = (s.own.taken >= self.window) & (s.updates % self.fit_every == 0)
        return when(due, self.fit, s, key_fit)

    def pairs(self, room: Classroom, e: Evidence) -> Float[Array, "T P d"]:
        """What the student went by and what it did, at each step."""
        r = e.rollout
        return jnp.concatenate([aware(e.student, r.obs, r.start), as_vectors(r.action, room.env.actions)], axis=-1)

    def fit(self, s: State, key: Key[Array, ""]) -> State:
        """A mixture of the latest pairs."""
        mixture = diagonal.fitted(key, s.own.pairs, self.components, self.fit_steps)
        return replace(s, own=replace(s.own, mixture=mixture))


def aware(student: PyTree, obs: Obs, start: Bool[Array, "T P"]) -> Float[Array, "T P n"]:
    """What the student goes by: its memory, or what it sees where it has none."""
    return student.features(obs, start) if student.recurrent else vectors(obs)
