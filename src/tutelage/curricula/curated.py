"""The steps that methods are written in: decide, generate, play, replay, learn, offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import Buffer, BufferConfig, Candidates
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.log import Journal, Totals
from tutelage.curricula.novelty import novelty
from tutelage.curricula.record import newborn
from tutelage.curricula.scores import Evidence, Marks, Reduction, ScoreName, check_score, mark
from tutelage.curricula.seeds import shared_uniform, when
from tutelage.curricula.state import State
from tutelage.env import DesignSpace, Level
from tutelage.student.distributions import Distribution
from tutelage.student.learning import Lesson
from tutelage.student.ppo import PPO
from tutelage.student.rollout import Episodes, Rollout, episodes, rollout


class Trial(eqx.Module):
    """A rollout and all that was computed from it."""

    evidence: Evidence
    target: Float[Array, "T P"]
    marks: Marks
    imitated: Distribution | None = None
    """What another student would have done at each step, where it is to be imitated."""
    counts: Bool[Array, "T P"] | None = None
    """The steps to learn from, where not all are."""

    @property
    def rollout(self) -> Rollout:
        """What happened, step by step."""
        return self.evidence.rollout

    @property
    def episodes(self) -> Episodes:
        """What happened, episode by episode."""
        return self.evidence.episodes

    @property
    def solved(self) -> Bool[Array, "T P"]:
        """Whether the return so far counts as solved."""
        return self.evidence.solved

    @property
    def advantage(self) -> Float[Array, "T P"]:
        """Generalised advantage estimates."""
        return self.evidence.advantage

    def part(self, first: int, count: int) -> Trial:
        """What happened in `count` neighbouring slots of a rollout."""
        chosen = slice(first, first + count)
        e = self.evidence
        over_time = (e.rollout, e.episodes, e.advantage, e.solved, self.target)
        r, eps, advantage, solved, target = jax.tree.map(lambda x: x[:, chosen], over_time)
        evidence = replace(e, rollout=r, episodes=eps, advantage=advantage, solved=solved)
        return Trial(evidence, target, jax.tree.map(lambda x: x[chosen], self.marks))

    @property
    def first_marks(self) -> Marks:
        """What became of the first level of every slot, `[P]` each."""
        return jax.tree.map(lambda x: x[:, 0], self.marks)


@dataclass(frozen=True)
class Curated:
    """What methods that keep a level buffer have in common."""

    needs: ClassVar[type | tuple[type, ...]] = DesignSpace
    teaches: ClassVar[tuple[type, ...]] = (PPO,)
    measures_novelty: ClassVar[bool] = True
    imitates: ClassVar[bool] = False

    buffer: BufferConfig = BufferConfig()
    """The level replay buffer."""
    score: ScoreName = "pvl"
    """Estimate of regret: positive value loss, as the mean over an episode's steps or as their sum, MaxMC, value L1,
    signed value loss, maximum negative advantage (mna); or of what can be learned: learnability p(1 − p), the
    parameters' change (pace); or none: random."""
    score_over: Reduction = "mean"
    """Score of a level that finished several episodes in one rollout: their mean, or that of the last or first one."""
    score_memory: float = 0.0
    """Share of a level's former score in its new one when it is replayed: 0 keeps nothing but the last rollout's."""
    admission: Literal["score", "first"] = "score"
    """What decides whether a new level is admitted: the score it is stored with, or that of its first episode (the
    reference implementation, with score-over last)."""
    after_episode: Literal["redraw", "repeat"] = "redraw"
    """What a replay slot plays when an episode ends: 'redraw' a level from the buffer, or 'repeat' the same one."""

    notes = tuple[str, ...]()
    """No quantities but those every method notes."""

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """One for each cycle."""
        return cycles

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student and an empty buffer."""
        check_score(self.score, self.score_over, self.after_episode, room.learning)
        if not 0 <= self.score_memory < 1:
            raise ValueError(f"`method.score_memory` must lie in [0, 1), not {self.score_memory}.")
        if self.buffer.novelty and not self.measures_novelty:
            raise ValueError("`method.buffer.novelty` must be 0: this method measures no novelty of levels.")
        if not self.imitates and isinstance(room.learning, PPO) and room.learning.imitation_coef:
            raise ValueError("`ppo.imitation_coef` must be 0: this method has no second student to imitate.")
        key, key_student, key_level = jax.random.split(key, 3)
        level = jax.eval_shape(room.design.sample, key_level)
        zero = jnp.zeros((), jnp.int32)
        learner = room.learning.begin(key_student, room.new_student(key_student))
        return State(key, learner, buffers.empty(level, self.buffer), zero, zero, zero, zero, None)

    def decide(self, s: State) -> Bool[Array, ""]:
        """Whether the next levels come from the buffer."""
        return buffers.may_replay(s.buffer, self.buffer, shared_uniform(s, 0))

    def generate(self, room: Classroom, key: Key[Array, ""], count: int | None = None) -> Level:
        """As many new levels from the design space as asked for; or one a slot, where all slots may have their own."""
        together = room.learning.together(room.slots) if count is None else 1
        count = room.slots // together if count is None else count
        levels = jax.vmap(room.design.sample)(jax.random.split(key, count))
        return jax.tree.map(lambda x: jnp.repeat(x, together, axis=0), levels) if together > 1 else levels

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
        s, trial = self.play_queue(room, s, pool, queue, None if best is None else best[:, None])
        if self.buffer.novelty and trial.marks.novelty is None:
            new = novelty(room.design, s.buffer, pool)
            trial = replace(trial, marks=replace(trial.marks, novelty=new[:, None]))
        first = 0
        for phase, size in zip(groups, sizes, strict=True):
            s = s.note(episode_totals(phase, trial.part(first, size)))
            first += size
        return s, trial

    def play_buffer(self, room: Classroom, s: State) -> tuple[State, Trial, Int[Array, " P"]]:
        """Replays levels drawn from the buffer and renews their scores. Also returns the P levels drawn first."""
        s, key = s.next_key()
        key_first, key_more = jax.random.split(key)
        first, buffer = buffers.sample(key_first, s.buffer, self.buffer, room.slots)
        more = buffers.draw_more(key_more, buffer, self.buffer, (room.slots, self.queue_length(room) - 1))
        queue = jnp.concatenate([first[:, None], more], axis=1)
        s = replace(s, buffer=buffer)
        s, trial = self.play_queue(room, s, buffer.level, queue, buffer.best_return[queue])
        s = s.note(episode_totals("replay", trial))
        s = replace(s, buffer=_account_for_queue(buffer, queue, trial.rollout.entry))
        return self.renew(s, queue.ravel(), jax.tree.map(jnp.ravel, trial.marks)), trial, first

    def play_queue(
        self, room: Classroom, s: State, pool: Level, queue: Int[Array, "P Q"], best: Float[Array, "P Q"] | None
    ) -> tuple[State, Trial]:
        """Rolls the student out, every slot on the levels of its queue in turn, and scores them."""
        s, key = s.next_key()
        learning, slots = room.learning, queue.shape[0]
        players = learning.players(s.learner, slots)
        r, _ = rollout(key, room.env, players, pool, queue, room.steps, next_values=learning.next_values)
        eps = episodes(r)
        solved = room.env.solved(eps.returns)
        learner, advantage, target = learning.appraise(s.learner, r)
        s = replace(s, learner=learner, rollouts=s.rollouts + slots // room.slots)
        evidence = Evidence(r, eps, advantage, solved, players, learning, room.env.solved, random.fold_in(key, 1))
        s, marks = self.judge(room, s, evidence, best, queue.shape[1])
        return s, Trial(evidence, target, marks)

    def judge(
        self, room: Classroom, s: State, evidence: Evidence, best: Float[Array, "P Q"] | None, entries: int
    ) -> tuple[State, Marks]:
        """Scores the levels of a rollout. A score that learns does so here, and keeps in `s.own` what it knows."""
        return s, mark(self.score, self.score_over, evidence, best, entries)

    def renew(self, s: State, slots: Int[Array, " N"], marks: Marks) -> State:
        """Overwrites the scores of replayed levels, N marks of as many slots of the buffer."""
        score = marks.score
        if self.score_memory:
            score = self.score_memory * s.buffer.score[slots] + (1 - self.score_memory) * score
        given = (score, marks.best_return, marks.finished, marks.novelty)
        return replace(s, buffer=buffers.update(s.buffer, slots, *given))

    def queue_length(self, room: Classroom) -> int:
        """Levels drawn ahead for a slot; one that plays more episodes than this starts its queue again."""
        return 1 if self.after_episode == "repeat" else min(64, room.steps)

    def learn(self, room: Classroom, s: State, trial: Trial) -> State:
        """One student update on a rollout."""
        s, key = s.next_key()
        more = (trial.imitated, trial.counts)
        lesson = Lesson(trial.rollout, trial.episodes, trial.advantage, trial.target, *more)
        learner, noted = room.learning.learn(key, s.learner, lesson)
        s = s.note({name: (value, jnp.ones(())) for name, value in noted.items()})
        return replace(s, learner=learner, updates=s.updates + 1, waits=jnp.zeros((), jnp.int32))

    def offer(
        self, s: State, levels: Level, trial: Trial, phase: str, parents: Int[Array, " P"] | None = None
    ) -> State:
        """Offers freshly scored levels to the buffer; `parents` are the buffer slots they were edited from."""
        marks = trial.first_marks
        ancestry = None if parents is None else s.buffer.record.at(parents)
        record = newborn(levels, marks.score, s.updates, ancestry)
        bid = marks.score if self.admission == "score" else self._first_score(trial)
        known = {"best_return": marks.best_return, "finished": marks.finished, "novelty": marks.novelty}
        candidates = Candidates(**vars(record), bid=bid, **known)
        buffer, inserted = buffers.insert(s.buffer, self.buffer, candidates)
        s = replace(s, buffer=buffer)
        if s.log is None:
            return s
        entries = Journal(**vars(replace(record, id=inserted.id)), admitted=inserted.admitted)
        share = (inserted.admitted.sum(dtype=jnp.float32), jnp.float32(marks.score.shape[0]))
        return replace(s, log=s.log.write(entries)).note({f"{phase}/admitted": share})

    def _first_score(self, trial: Trial) -> Float[Array, " P"]:
        entries = trial.marks.score.shape[1]
        return mark(self.score, "first", trial.evidence, None, entries).score[:, 0]


@runtime_checkable
class Replaying(Protocol):
    """A method each of whose cycles either looks at new levels or replays known ones."""

    def decide(self, s: State) -> Bool[Array, ""]: ...

    def explore(self, room: Classroom, s: State) -> State: ...

    def replay(self, room: Classroom, s: State) -> State: ...


def explore_or_replay(method: Replaying, room: Classroom, s: State) -> State:
    """One cycle: as the method decides."""
    replay = method.decide(s)
    s = when(~replay, partial(method.explore, room), s.next_cycle())
    return when(replay, partial(method.replay, room), s)


def _account_for_queue(buffer: Buffer, queue: Int[Array, "P Q"], entry: Int[Array, "T P"]) -> Buffer:
    """Counts as drawn those of the levels drawn ahead that were really played."""
    used = (entry[..., None] == jnp.arange(queue.shape[1])).any(axis=0)
    return buffers.visit(buffer, queue[:, 1:].T.ravel(), used[:, 1:].T.ravel())


def episode_totals(phase: str, trial: Trial) -> Totals:
    """What is noted of a rollout: means over the episodes that ended, and the score over the levels that have one."""
    ended, finished = trial.episodes.ended, trial.marks.finished

    def over_episodes(x: Array) -> tuple[Array, Array]:
        return jnp.where(ended, x, 0.0).sum(), ended.sum(dtype=jnp.float32)

    return {
        f"{phase}/return": over_episodes(trial.episodes.returns),
        f"{phase}/solved": over_episodes(trial.solved),
        f"{phase}/length": over_episodes(trial.episodes.length),
        f"{phase}/score": (jnp.where(finished, trial.marks.score, 0.0).sum(), finished.sum(dtype=jnp.float32)),
    }
