"""What every curriculum shares: the state of one seed, and the rollout–score–update that methods are written in.

A method is written for one seed; a run `vmap`s it. Decisions go through `when`, which keeps a phase that no seed wants
from being computed, and `shared_uniform`, which makes seeds want the same phase at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import Buffer, BufferConfig
from tutelage.curricula.scores import Evidence, Marks, Reduction, ScoreName, mark
from tutelage.env import DesignSpace, Env, Level
from tutelage.student import ppo as ppos
from tutelage.student.ppo import PPO, Learner
from tutelage.student.rollout import Episodes, Rollout, episodes, gae, rollout

S = TypeVar("S", bound=PyTree)

PHASES = ("explore", "replay", "edit")
LOSSES = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "grad_norm")


@dataclass(frozen=True)
class Classroom:
    """The fixed surroundings of a curriculum: who is taught, where, and in what portions."""

    env: Env
    design: DesignSpace
    ppo: PPO
    new_student: Callable[[Key[Array, ""]], PyTree]
    slots: int
    steps: int


class Mean(NamedTuple):
    """A mean in the making."""

    total: Float[Array, ""]
    weight: Float[Array, ""]


class Journal(eqx.Module):
    """Levels offered to the buffer, in rows of P: one for every rollout of P slots that offered any."""

    levels: Level
    id: Int[Array, "*rows P"]
    parent: Int[Array, "*rows P"]
    generation: Int[Array, "*rows P"]
    birth: Int[Array, "*rows P"]
    score: Float[Array, "*rows P"]
    admitted: Bool[Array, "*rows P"]


class Log(eqx.Module):
    """What happened since the log was last taken: means by name, and the journal of levels."""

    means: dict[str, Mean]
    journal: Journal
    rows: Int[Array, ""]

    @staticmethod
    def blank(level: Level, slots: int, rows: int, more: tuple[str, ...] = ()) -> Log:
        """Nothing happened yet. `more` names quantities that only this method notes."""
        names = [f"{phase}/{x}" for phase in PHASES for x in ("return", "solved", "length", "score", "admitted")]
        names += [f"ppo/{x}" for x in LOSSES] + [*more]
        journal = Journal(
            levels=jax.tree.map(lambda x: jnp.zeros((rows, slots, *jnp.shape(x)), jnp.asarray(x).dtype), level),
            id=jnp.zeros((rows, slots), jnp.int32),
            parent=jnp.zeros((rows, slots), jnp.int32),
            generation=jnp.zeros((rows, slots), jnp.int32),
            birth=jnp.zeros((rows, slots), jnp.int32),
            score=jnp.zeros((rows, slots)),
            admitted=jnp.zeros((rows, slots), bool),
        )
        return Log({n: Mean(jnp.zeros(()), jnp.zeros(())) for n in names}, journal, jnp.zeros((), jnp.int32))

    def note(self, **totals: tuple[Array, Array]) -> Log:
        """Adds (total, weight) pairs, named `phase__quantity` or `phase/quantity`."""
        means = dict(self.means)
        for label, (total, weight) in totals.items():
            name = label.replace("__", "/")
            old = means[name]
            means[name] = Mean(old.total + total, old.weight + weight)
        return replace(self, means=means)

    def write(self, entries: Journal) -> Log:
        """Adds `[N]` entries to the journal, in as many rows as they take; what fills up the last was not admitted."""
        slots, count = self.journal.id.shape[1], entries.id.shape[0]
        rows = -(-count // slots)

        def put(all_: Array, new: Array) -> Array:
            padded = jnp.pad(new, [(0, rows * slots - count)] + [(0, 0)] * (new.ndim - 1))
            return all_.at[self.rows + jnp.arange(rows)].set(padded.reshape(rows, slots, *new.shape[1:]))

        return replace(self, journal=jax.tree.map(put, self.journal, entries), rows=self.rows + rows)


class State(eqx.Module):
    """One seed of a run."""

    key: Key[Array, ""]
    learner: Learner
    buffer: Buffer
    updates: Int[Array, ""]  # student updates
    cycles: Int[Array, ""]
    rollouts: Int[Array, ""]  # of any kind, one of 3P slots counting as 3; env steps = rollouts × slots × steps
    waits: Int[Array, ""]  # cycles since the last student update
    log: Log | None
    own: PyTree = ()  # what this method keeps besides: other agents, a model of the tasks

    def with_log(self, log: Log | None) -> State:
        """The same state with another log, or none; of one seed or of many stacked."""
        return eqx.tree_at(lambda s: s.log, self, log, is_leaf=lambda x: x is None)

    def next_key(self) -> tuple[State, Key[Array, ""]]:
        """A key that was not used before."""
        key, fresh = jax.random.split(self.key)
        return replace(self, key=key), fresh


class Trial(eqx.Module):
    """A rollout and all that was computed from it."""

    rollout: Rollout
    episodes: Episodes
    solved: Bool[Array, "T P"]
    advantage: Float[Array, "T P"]
    target: Float[Array, "T P"]
    marks: Marks

    def part(self, first: int, count: int) -> Trial:
        """What happened in `count` neighbouring slots of a rollout."""
        chosen = slice(first, first + count)
        over_time = (self.rollout, self.episodes, self.solved, self.advantage, self.target)
        r, eps, solved, advantage, target = jax.tree.map(lambda x: x[:, chosen], over_time)
        return Trial(r, eps, solved, advantage, target, jax.tree.map(lambda x: x[chosen], self.marks))


@runtime_checkable
class Curriculum(Protocol):
    """A UED method, for one seed."""

    needs: ClassVar[type | tuple[type, ...]]
    """What the design space must be: a protocol of `env.py`, or one of several."""

    @property
    def buffer(self) -> BufferConfig: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Names of the quantities that only this method notes in the log."""
        ...

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """The most rows of P levels that so many cycles can write into the journal."""
        ...

    def init(self, room: Classroom, key: Key[Array, ""]) -> State: ...

    def cycle(self, room: Classroom, s: State) -> State: ...


@dataclass(frozen=True)
class Curated:
    """What methods that keep a level buffer have in common."""

    needs: ClassVar[type | tuple[type, ...]] = DesignSpace

    buffer: BufferConfig = BufferConfig()
    """The level replay buffer."""
    score: ScoreName = "pvl"
    """Estimate of regret: positive value loss, MaxMC, value L1, signed value loss; or learnability p(1 − p)."""
    score_over: Reduction = "mean"
    """Score of a level that finished several episodes in one rollout: their mean, or the last one."""
    after_episode: Literal["redraw", "repeat"] = "redraw"
    """What a replay slot plays when an episode ends: 'redraw' a level from the buffer, or 'repeat' the same one."""

    @property
    def notes(self) -> tuple[str, ...]:
        """No quantities but those every method notes."""
        return ()

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """One for each cycle."""
        return cycles

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student and an empty buffer."""
        key, key_student, key_level = jax.random.split(key, 3)
        example = jax.eval_shape(room.design.sample, key_level)
        zero = jnp.zeros((), jnp.int32)
        learner = Learner.of(room.new_student(key_student), room.ppo)
        buffer = buffers.empty(jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), example), self.buffer)
        return State(key, learner, buffer, zero, zero, zero, zero, None)

    def decide(self, s: State) -> Bool[Array, ""]:
        """Whether the next levels come from the buffer."""
        return buffers.may_replay(s.buffer, self.buffer, shared_uniform(s, 0))

    def generate(self, room: Classroom, key: Key[Array, ""], count: int | None = None) -> Level:
        """New levels from the design space: one a slot, or as many as asked for."""
        return jax.vmap(room.design.sample)(jax.random.split(key, room.slots if count is None else count))

    def play(self, room: Classroom, s: State, levels: Level, phase: str) -> tuple[State, Trial]:
        """Rolls the student out on one level a slot, each repeated while the rollout lasts, and scores them."""
        return self.play_together(room, s, {phase: levels})

    def play_together(
        self, room: Classroom, s: State, groups: Mapping[str, Level], best: Float[Array, " N"] | None = None
    ) -> tuple[State, Trial]:
        """`play` for several groups of levels side by side in one rollout, each called by its phase.

        The slots are in the order of the groups; `best` are the best returns known of their levels, −∞ for none.
        """
        pool = jax.tree.map(lambda *x: jnp.concatenate(x), *groups.values())
        sizes = [jax.tree.leaves(levels)[0].shape[0] for levels in groups.values()]
        queue = jnp.arange(sum(sizes), dtype=jnp.int32)[:, None]
        s, trial = self._perform(room, s, pool, queue, None if best is None else best[:, None])
        first = 0
        for phase, size in zip(groups, sizes, strict=True):
            s = _note_episodes(s, trial.part(first, size), phase)
            first += size
        return s, trial

    def play_buffer(self, room: Classroom, s: State) -> tuple[State, Trial, Int[Array, " P"]]:
        """Replays levels drawn from the buffer and renews their scores. Also returns the P levels drawn first."""
        s, key_first, key_more = _two_keys(s)
        first, buffer = buffers.sample(key_first, s.buffer, self.buffer, room.slots)
        more = buffers.draw_more(key_more, buffer, self.buffer, (room.slots, self._queue_length(room) - 1))
        queue = jnp.concatenate([first[:, None], more], axis=1)
        s = replace(s, buffer=buffer)
        s, trial = self._roll_out(room, s, buffer.levels, queue, buffer.best_return[queue], "replay")
        buffer = _account_for_queue(buffer, queue, trial.rollout.entry)
        marks = jax.tree.map(jnp.ravel, trial.marks)
        buffer = buffers.update(buffer, queue.ravel(), marks.score, marks.best_return, marks.finished)
        return replace(s, buffer=buffer), trial, first

    def learn(self, room: Classroom, s: State, trial: Trial) -> State:
        """One student update on a rollout."""
        s, key = s.next_key()
        batch = ppos.make_batch(trial.rollout, trial.advantage, trial.target)
        learner, losses = ppos.update(key, s.learner, batch, room.ppo)
        log = s.log and s.log.note(**{f"ppo__{name}": (value, jnp.ones(())) for name, value in losses.items()})
        zero = jnp.zeros((), jnp.int32)
        return replace(s, learner=learner, updates=s.updates + 1, waits=zero, log=log)

    def offer(
        self, s: State, levels: Level, trial: Trial, phase: str, parents: Int[Array, " P"] | None = None
    ) -> State:
        """Offers freshly scored levels to the buffer; `parents` are the buffer slots they were edited from."""
        none = jnp.full(trial.marks.score.shape[0], -1, jnp.int32)
        parent = none if parents is None else s.buffer.id[parents]
        generation = none + 1 if parents is None else s.buffer.generation[parents] + 1
        marks = jax.tree.map(lambda x: x[:, 0], trial.marks)
        buffer, inserted = buffers.insert(
            s.buffer, self.buffer, levels, marks.score, marks.best_return, marks.finished, parent, generation, s.updates
        )
        log = s.log
        if log is not None:
            birth = jnp.broadcast_to(s.updates, parent.shape)
            entries = Journal(levels, inserted.id, parent, generation, birth, marks.score, inserted.admitted)
            share = (inserted.admitted.sum(dtype=jnp.float32), jnp.float32(parent.shape[0]))
            log = log.write(entries).note(**{f"{phase}__admitted": share})
        return replace(s, buffer=buffer, log=log)

    def _queue_length(self, room: Classroom) -> int:
        """Levels drawn ahead for a slot; one that plays more episodes than this starts its queue again."""
        return 1 if self.after_episode == "repeat" else min(64, room.steps)

    def _roll_out(
        self, room: Classroom, s: State, pool: Level, queue: Int[Array, "P Q"], best: Array | None, phase: str
    ) -> tuple[State, Trial]:
        s, trial = self._perform(room, s, pool, queue, best)
        return _note_episodes(s, trial, phase), trial

    def _perform(
        self, room: Classroom, s: State, pool: Level, queue: Int[Array, "P Q"], best: Array | None
    ) -> tuple[State, Trial]:
        s, key = s.next_key()
        ppo = room.ppo
        student = s.learner.student
        r, _ = rollout(key, room.env, student, pool, queue, room.steps, next_values=ppo.bootstrap)
        eps = episodes(r)
        solved = room.env.solved(eps.returns)
        learner, reward = s.learner.scaled_rewards(r)
        s = replace(s, learner=learner)
        advantage, target = gae(
            replace(r, reward=reward), discount=ppo.discount, gae_lambda=ppo.gae_lambda, bootstrap=ppo.bootstrap
        )
        marks = mark(self.score, self.score_over, Evidence(r, eps, advantage, solved), best, queue.shape[1])
        rollouts = s.rollouts + queue.shape[0] // room.slots
        return replace(s, rollouts=rollouts), Trial(r, eps, solved, advantage, target, marks)


def _two_keys(s: State) -> tuple[State, Key[Array, ""], Key[Array, ""]]:
    s, key = s.next_key()
    return s, *jax.random.split(key)


def _account_for_queue(buffer: Buffer, queue: Int[Array, "P Q"], entry: Int[Array, "T P"]) -> Buffer:
    """Of the levels drawn ahead, those that were really played count as drawn."""
    used = (entry[..., None] == jnp.arange(queue.shape[1])).any(axis=0)
    return buffers.visit(buffer, queue[:, 1:].T.ravel(), used[:, 1:].T.ravel())


def _note_episodes(s: State, trial: Trial, phase: str) -> State:
    return replace(s, log=s.log and s.log.note(**_episode_totals(phase, trial)))


def _episode_totals(phase: str, trial: Trial) -> dict[str, tuple[Array, Array]]:
    ended, finished = trial.episodes.ended, trial.marks.finished

    def over_episodes(x: Array) -> tuple[Array, Array]:
        return jnp.where(ended, x, 0.0).sum(), ended.sum(dtype=jnp.float32)

    return {
        f"{phase}__return": over_episodes(trial.episodes.returns),
        f"{phase}__solved": over_episodes(trial.solved),
        f"{phase}__length": over_episodes(trial.episodes.length),
        f"{phase}__score": (jnp.where(finished, trial.marks.score, 0.0).sum(), finished.sum(dtype=jnp.float32)),
    }


def shared_uniform(s: State, purpose: int) -> Float[Array, ""]:
    """A uniform number that depends on how far the student is, not on the seed.

    All seeds of a run see the same numbers at the same update and so take the same decisions, except while their
    buffers differ in fill. A seed run alone sees the very same numbers.
    """
    key = jax.random.key(0x7075)
    for part in (purpose, s.updates, s.waits):
        key = jax.random.fold_in(key, part)
    return jax.random.uniform(key)


def when(wanted: Bool[Array, ""], act: Callable[[S], S], s: S) -> S:
    """`act(s)` where wanted, else `s`.

    Under `vmap`, `lax.cond` would compute both branches always. This computes `act` if any member wants it, for all of
    them, and keeps the result for those that do.
    """

    @custom_vmap
    def one(wanted, s):
        return lax.cond(wanted, act, lambda s: s, s)

    @one.def_vmap
    def many(size, batched, wanted, s):
        wanted, s = jax.tree.map(
            lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), (wanted, s), tuple(batched)
        )

        def some(s):
            changed = jax.vmap(act)(s)
            return jax.tree.map(lambda new, old: jnp.where(_as_wide_as(wanted, new), new, old), changed, s)

        out = lax.cond(wanted.any(), some, lambda s: s, s)
        return out, jax.tree.map(lambda _: True, out)

    return one(wanted, s)


def _as_wide_as(flags: Bool[Array, " n"], x: Array) -> Array:
    return flags.reshape(flags.shape + (1,) * (x.ndim - 1))


def next_cycle(s: State) -> State:
    """Counts a cycle."""
    return replace(s, cycles=s.cycles + 1, waits=s.waits + 1)


def survey(room: Classroom, method: Curriculum, s: State) -> dict[str, Float[Array, ""]]:
    """The buffer in numbers: fill, scores, ages, and the complexity of its levels (plain means over filled slots).

    Quantities that end in `_replay` are weighted by the replay distribution instead.
    """
    b = s.buffer
    filled = jnp.arange(b.score.shape[0]) < b.filled
    weight = buffers.weights(b, method.buffer)
    facts = dict(jax.vmap(room.design.describe)(b.levels))
    facts["generation"] = b.generation.astype(jnp.float32)
    out = {f"buffer/{k}": _mean(x, filled) for k, x in facts.items()}
    out |= {f"buffer/{k}_replay": _mean(x, weight * filled) for k, x in facts.items()}
    out["buffer/fill"] = b.filled / b.score.shape[0]
    out["buffer/score"] = _mean(b.score, filled)
    out["buffer/max_score"] = jnp.where(filled, b.score, 0.0).max()
    out["buffer/staleness"] = _mean(b.staleness, filled)
    return out


def _mean(x: Array, weight: Array) -> Float[Array, ""]:
    """Weighted mean over the entries that are not NaN; 0 where there is none."""
    weight = jnp.where(jnp.isnan(x), 0.0, weight)
    return jnp.where(weight > 0, x * weight, 0.0).sum() / jnp.maximum(weight.sum(), 1e-9)
