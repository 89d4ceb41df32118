"""POET: pairs of a level and a student that specialises in it, from one plain level on (Wang et al. 2019).

The paper's algorithm, in our words; the numbers are those in the comments below. One iteration is one student update.

     1  every so many iterations, reproduce:
     2      which students are good enough on their own levels? those levels may be parents
     3      mutate some of them
     4      keep the children on which the parents' students are neither hopeless nor at the end (minimal criterion)
     5      the most novel child first:
     6          all students try it, as they are and after a step of their own
     7          if the best of these meets the minimal criterion, level and student are the newest pair: the oldest goes
     8  every student takes a step of evolution strategies on its own level
     9  every so many iterations, transfer:
    10      all students try all levels, as they are and after a step there
    11      on each level the best of these takes over

A round plays many attempts side by side (`attempts.py`) and draws its conclusion. A cycle of the training is a round,
so that one program plays whatever a round needs, for all pairs of all seeds at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.curricula import buffer as buffers
from tutelage.curricula.attempts import Attempts, Results, attempt_all
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.log import Journal
from tutelage.curricula.novelty import to_nearest
from tutelage.curricula.record import blank
from tutelage.curricula.seeds import when
from tutelage.curricula.state import State
from tutelage.env import Level, Mutable
from tutelage.student import es as strategies
from tutelage.student.controller import Population
from tutelage.student.es import ES, Moments
from tutelage.student.learning import Learner

REMEMBERED = 4096  # environments, the latest ones, that novelty is measured against
NOTES = ("replaced", "attempted", "environments", "solved", "solved_after")

# Rounds, by their numbers in a state.
STEP, TRANSFER, JUDGE, APPRAISE, SCREEN, TRY, ADMIT = range(7)


class Colony(eqx.Module):
    """What POET keeps besides its N pairs: where it stands in an iteration, and what is under trial."""

    round: Int[Array, ""]
    direct: Float[Array, "N N"]
    """Scores on each level (of this row) of each student (of this column)."""
    proposals: Float[Array, "N N n"]
    """What has come of each student after a step on each level. Those of a child are in the first row."""
    litter: Level
    """Children, `[C, …]`."""
    parents: Int[Array, " C"]
    rank: Float[Array, " C"]
    """Novelty of the children that may be tried; −∞ for others."""
    known: Float[Array, "K d"]
    """Traits of every environment ever admitted, the latest ones."""
    admitted: Int[Array, ""]
    solved: Bool[Array, " N"]
    """Whether the pair's level was ever solved by its student."""
    solutions: Int[Array, ""]
    left_over: Int[Array, ""]
    """Env steps that are not counted as a rollout yet."""


@dataclass(frozen=True)
class POET:
    """Paired open-ended trailblazer (Wang et al. 2019).

    Every level has a student of its own; both come from pairs that were there before. There is no generalist: a
    population is evaluated by whichever of its students is best on a level.
    """

    needs: ClassVar[type | tuple[type, ...]] = Mutable
    teaches: ClassVar[tuple[type, ...]] = (ES,)

    capacity: int = 20
    """N, the most pairs there are: 20 in the paper, 25 as released."""
    reproduce_every: int = 150
    """Iterations between two reproductions: 150 in the paper, 200 as released."""
    transfer_every: int = 25
    """Iterations between two transfers."""
    parent_score: float = 200.0
    """The return from which on a level may have children."""
    children: int = 8
    """Children of a reproduction, of which one is admitted at most: 8 as released, 512 in the paper."""
    lowest_score: float = 50.0
    """The minimal criterion's lower end: 50 in the paper, 25 as released."""
    highest_score: float = 300.0
    """Its upper end: 300 in the paper, 340 as released."""
    neighbours: int = 5
    """How many of the nearest environments, of all that ever were, novelty is the mean distance to."""
    child_step: Literal["sgd", "adam"] = "sgd"
    """The step that students take on a child: as released, without moments; or one of Adam, as on other levels."""

    notes = tuple(f"poet/{name}" for name in NOTES)
    """Share of transfers that replaced a student, and how many there were; environments admitted and solved so far;
    iterations from admission to solution."""

    def __post_init__(self):
        for name in ("capacity", "reproduce_every", "transfer_every", "children", "neighbours"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, not {getattr(self, name)}.")
        if not self.lowest_score <= self.highest_score:
            raise ValueError("`lowest_score` must not be above `highest_score`.")

    @property
    def buffer(self) -> BufferConfig:
        """The pairs, as a buffer from which nothing is replayed."""
        n = self.capacity
        return BufferConfig(capacity=n, prioritisation="top-k", top_k=n, staleness=0.0, min_fill=0.0, replay_rate=0.0)

    def journal_rows(self, room: Classroom, cycles: int) -> int:
        """One level a reproduction, and the first."""
        return cycles // self.reproduce_every + 2

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """One pair: the plainest level and a fresh student."""
        self._check(room)
        key, key_student, key_level = jax.random.split(key, 3)
        level = room.design.plainest(key_level)  # type: ignore[attr-defined]
        student = room.new_student(key_student)
        theta, n = strategies.flat(student), self.capacity
        zero = jnp.zeros((), jnp.int32)
        many = lambda x: jnp.zeros((n, *x.shape), x.dtype).at[0].set(x)  # noqa: E731
        population = Population(jax.tree.map(many, student), zero + 1)
        moments = jax.tree.map(lambda x: jnp.zeros((n, *x.shape), x.dtype), Moments.zero(theta))
        empty = buffers.empty(level, self.buffer)
        record = replace(empty.record, level=jax.tree.map(many, level), id=empty.id.at[0].set(0))
        buffer = replace(empty, **vars(record), filled=zero + 1, next_id=zero + 1)
        return State(
            key,
            Learner(population, moments),
            buffer,
            zero,
            zero,
            zero,
            zero,
            None,
            self._colony(room, level, theta.size),
        )

    def _check(self, room: Classroom) -> None:
        assert isinstance(room.learning, ES)
        if room.learning.levels != 1:
            raise ValueError(
                f"`es.levels` is for a single student; with poet it must be 1, not {room.learning.levels}."
            )
        if self.children > room.slots:
            raise ValueError(f"`method.children` must be at most `slots`, {room.slots}, not {self.children}.")
        if self.capacity**2 * (room.slots + 1) * room.env.max_steps >= 2**31:
            raise ValueError(
                "`method.capacity`² × (`slots` + 1) × the env's max_steps must be below 2³¹, so that the steps of a "
                "round can be counted."
            )

    def _colony(self, room: Classroom, level: Level, size: int) -> Colony:
        traits = room.design.traits(level)  # type: ignore[attr-defined]
        n, c, zero = self.capacity, self.children, jnp.zeros((), jnp.int32)
        return Colony(
            round=zero + STEP,
            direct=jnp.zeros((n, n)),
            proposals=jnp.zeros((n, n, size)),
            litter=blank(level, c).level,
            parents=jnp.zeros(c, jnp.int32),
            rank=jnp.full(c, -jnp.inf),
            known=jnp.zeros((REMEMBERED, traits.size)).at[0].set(traits),
            admitted=zero + 1,
            solved=jnp.zeros(n, bool),
            solutions=zero,
            left_over=zero,
        )

    def cycle(self, room: Classroom, s: State) -> State:
        """Plays the round that is due, and draws its conclusion."""
        s, key = s.next_cycle().next_key()
        s, results = self.play(room, s, key)
        conclude = {
            STEP: self.step,
            TRANSFER: self.propose,
            JUDGE: self.judge,
            APPRAISE: self.reproduce,
            SCREEN: self.screen,
            TRY: self.propose_for_child,
            ADMIT: self.admit,
        }
        due = s.own.round
        for number, act in conclude.items():
            s = when(due == number, partial(act, room), s, key, results)
        return s

    # What a round plays. Of N levels × N students × (the student as it is, then its 2M perturbations), it wants some;
    # rounds of one level, or of one student a level, are in the first row.

    def play(self, room: Classroom, s: State, key: Key[Array, ""]) -> tuple[State, Results]:
        """What comes of the attempts of the round that is due, `[N, N, 1 + 2M]`."""
        assert isinstance(room.learning, ES)
        attempts, agents = self.attempts(room, s), self.agents(s)
        sources = jnp.concatenate([agents, s.own.proposals.reshape(-1, agents.shape[1])])
        levels = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), s.buffer.level, s.own.litter)
        usual = self.capacity * (room.slots + 1)
        flat = jax.tree.map(jnp.ravel, attempts)
        results = attempt_all(key, room.env, self.unflatten(s), sources, levels, flat, usual)
        results = jax.tree.map(lambda x: x.reshape(attempts.wanted.shape), results)
        return self._counted(room, s, attempts, results), results

    def attempts(self, room: Classroom, s: State) -> Attempts:
        """What the round that is due plays."""
        n, due = self.capacity, s.own.round
        row, column, part = jnp.meshgrid(*map(jnp.arange, (n, n, room.slots + 1)), indexing="ij")
        is_due = lambda *rounds: jnp.stack([due == r for r in rounds]).any()  # noqa: E731
        there = (row < s.buffer.filled) & (column < s.buffer.filled)
        whole, first, other = part == 0, row == 0, row != column
        child = n + jnp.argmax(s.own.rank)
        litter = jnp.clip(part, 0, self.children - 1)
        wanted = jnp.select(
            [due == TRANSFER, due == JUDGE, due == SCREEN, is_due(STEP, TRY)],
            [
                there & (whole | other),
                there & whole & other,
                first & (column == 0) & (part < self.children),
                there & first,
            ],
            there & first & whole,
        )
        level = jnp.select(
            [is_due(TRANSFER, JUDGE), is_due(STEP, APPRAISE), due == SCREEN], [row, column, n + litter], child
        )
        proposed = n + row * n + column
        source = jnp.select([is_due(JUDGE, ADMIT), due == SCREEN], [proposed, s.own.parents[litter]], column)
        return Attempts(
            source=source,
            noise=(row * n + column) * (room.slots // 2) + (part - 1) // 2,
            scale=jnp.where(part % 2 == 1, 1.0, -1.0) * jnp.where(whole | (due == SCREEN), 0.0, self._sigma(room, s)),
            level=level,
            wanted=wanted,
        )

    def _sigma(self, room: Classroom, s: State) -> Float[Array, "N N 1"]:
        """Each rollout's noise: its student's, by a transfer's rows and a step's columns; a child's is as at first."""
        es: Any = room.learning
        own, due = es.sigma_after(s.learner.optimiser.count), s.own.round
        return jnp.select([due == STEP, due == TRANSFER], [own[None, :, None], own[:, None, None]], es.sigma)

    def _counted(self, room: Classroom, s: State, attempts: Attempts, results: Results) -> State:
        """Env steps, in rollouts; and what is noted of episodes."""
        unit = room.slots * room.steps
        steps = s.own.left_over + jnp.sum(results.length)
        s = replace(s, rollouts=s.rollouts + steps // unit, own=replace(s.own, left_over=steps % unit))
        for phase, due in (("explore", STEP), ("edit", SCREEN)):
            here = attempts.wanted & (s.own.round == due)
            weight = jnp.sum(here, dtype=jnp.float32)
            figures = {"return": results.returns, "length": results.length, "solved": room.env.solved(results.returns)}
            totals = {name: jnp.where(here, x, 0).sum(dtype=jnp.float32) for name, x in figures.items()}
            s = s.note({f"{phase}/{name}": (total, weight) for name, total in totals.items()})
        return s

    # What students become.

    def step(self, room: Classroom, s: State, key: Key[Array, ""], results: Results) -> State:
        """Every student takes a step on its own level."""  # 8
        es: Any = room.learning
        returns, agents, moments = results.returns[0], self.agents(s), s.learner.optimiser
        gradients = self._gradients(room, key, returns[None, :, 1:], es.sigma_after(moments.count)[None])[0]
        noted = jax.vmap(es.noted)(agents, gradients, returns[:, 1:], moments)
        active, number = self.active(s), s.buffer.filled.astype(jnp.float32)
        s = s.note({name: (jnp.where(active, x, 0.0).sum(), number) for name, x in noted.items()})
        s = self._scored(room, s, returns[:, 0])
        s = when(s.cycles == 1, lambda s: self._written(s, jnp.int32(0)), s)
        s = self._with(s, active, *jax.vmap(es.ascend)(agents, gradients, moments))
        transfer = (s.updates % self.transfer_every == 0) & (s.buffer.filled > 1)
        s = replace(s, updates=s.updates + 1, waits=jnp.zeros((), jnp.int32))
        return self._next(s, jnp.where(transfer, TRANSFER, self._after_iteration(s)))

    def propose(self, room: Classroom, s: State, key: Key[Array, ""], results: Results) -> State:
        """What each student would be after a step on each level, made with the moments of the student there."""  # 10
        es: Any = room.learning
        agents, moments = self.agents(s), s.learner.optimiser
        gradients = self._gradients(room, key, results.returns[..., 1:], es.sigma_after(moments.count)[:, None])
        there = jax.vmap(lambda theta, g, m: es.ascend(theta, g, m)[0], in_axes=(0, 0, None))
        proposals = jax.vmap(there, in_axes=(None, 0, 0))(agents, gradients, moments)
        own = replace(s.own, direct=results.returns[..., 0], proposals=proposals)
        return self._next(replace(s, own=own), JUDGE)

    def judge(self, room: Classroom, s: State, key: Key[Array, ""], results: Results) -> State:
        """On each level the best of all students and proposals takes over; whoever was there stays on a tie."""  # 11
        n, agents = self.capacity, self.agents(s)
        proposed, winner, best = best_of(s.own.direct, results.returns[..., 0], self.active(s))
        replaced = self.active(s) & (proposed | (winner != jnp.arange(n)))
        theta = jnp.where(proposed[:, None], s.own.proposals[jnp.arange(n), winner], agents[winner])
        fresh = jax.tree.map(jnp.zeros_like, s.learner.optimiser)
        s = self._with(s, replaced, theta, fresh)
        s = self._scored(room, s, best)
        number, one = s.buffer.filled.astype(jnp.float32), jnp.float32(1)
        s = s.note({"poet/replaced": (replaced.sum(dtype=jnp.float32), number), "poet/attempted": (number, one)})
        return self._next(s, self._after_iteration(s))

    # Where levels come from.

    def reproduce(self, room: Classroom, s: State, key: Key[Array, ""], results: Results) -> State:
        """Mutates levels on which their students are good enough."""  # 2, 3
        s, key = self._scored(room, s, results.returns[0, :, 0]).next_key()
        able = self.active(s) & (s.buffer.score >= self.parent_score)
        key_parents, key_mutate = jax.random.split(key)
        parents = jax.random.categorical(key_parents, jnp.where(able, 0.0, -jnp.inf), shape=(self.children,))
        parents = jnp.where(able.any(), parents, 0).astype(jnp.int32)
        keys = jax.random.split(key_mutate, self.children)
        litter = jax.vmap(room.design.mutate)(keys, s.buffer.record.at(parents).level)  # type: ignore[attr-defined]
        own = replace(s.own, litter=litter, parents=parents)
        return self._next(replace(s, own=own), jnp.where(able.any(), SCREEN, STEP))

    def screen(self, room: Classroom, s: State, key: Key[Array, ""], results: Results) -> State:
        """Ranks by novelty the children that meet the minimal criterion and are of no kind there is."""  # 4, 5
        traits = jax.vmap(room.design.traits)  # type: ignore[attr-defined]
        kinds, there = traits(s.own.litter), traits(s.buffer.level)
        again = ((kinds[:, None] == there).all(axis=-1) & self.active(s)).any(axis=1)
        fine = self.meets(results.returns[0, 0, : self.children]) & ~again
        new = novelty(kinds, s.own.known, jnp.minimum(s.own.admitted, REMEMBERED), self.neighbours)
        return self._try_next(s, jnp.where(fine, new, -jnp.inf))

    def propose_for_child(self, room: Classroom, s: State, key: Key[Array, ""], results: Results) -> State:
        """What each student would be after a step on the child that is being tried."""  # 6
        es: Any = room.learning
        agents, returns = self.agents(s), results.returns[:1, :, 1:]
        gradients = self._gradients(room, key, returns, jnp.full((1, 1), es.sigma))[0]
        if self.child_step == "sgd":
            proposals = jax.vmap(es.climb)(agents, gradients)
        else:
            proposals = jax.vmap(lambda theta, g: es.ascend(theta, g, Moments.zero(theta))[0])(agents, gradients)
        direct = s.own.direct.at[0].set(results.returns[0, :, 0])
        own = replace(s.own, direct=direct, proposals=s.own.proposals.at[0].set(proposals))
        return self._next(replace(s, own=own), ADMIT)

    def admit(self, room: Classroom, s: State, key: Key[Array, ""], results: Results) -> State:
        """The child and the best student on it are a pair, if that one meets the minimal criterion."""  # 7
        tried = jnp.stack([s.own.direct[0], results.returns[0, :, 0]])
        tried = jnp.where(self.active(s), tried, -jnp.inf)
        best, (proposed, winner) = tried.max(), jnp.unravel_index(jnp.argmax(tried), tried.shape)
        theta = jnp.where(proposed == 1, s.own.proposals[0, winner], self.agents(s)[winner])
        good = self.meets(best)
        s = s.note({"edit/admitted": (good.astype(jnp.float32), jnp.float32(1))})
        child = jnp.argmax(s.own.rank)
        left = jnp.where(good, -jnp.inf, s.own.rank).at[child].set(-jnp.inf)
        s = when(good, partial(self._settled, room), s, child, theta, best)
        return self._try_next(s, left)

    def _settled(
        self, room: Classroom, s: State, child: Int[Array, ""], theta: Float[Array, " n"], score: Float[Array, ""]
    ) -> State:
        """A child in the place of the oldest pair, or in a free one."""
        n, old, own = self.capacity, s.buffer, s.own
        full = old.filled == n
        place = jnp.where(full, jnp.argmin(jnp.where(self.active(s), old.id, 2**30)), old.filled)
        level = jax.tree.map(lambda x: x[child], own.litter)
        parent = own.parents[child]
        facts = {
            "id": old.next_id,
            "parent": old.id[parent],
            "generation": old.generation[parent] + 1,
            "birth": s.updates,
            "score": score,
            "best_return": score,
            "fingerprint": buffers.fingerprint(level),
        }
        put = lambda all_, new: all_.at[place].set(new)  # noqa: E731
        buffer = replace(
            old,
            level=jax.tree.map(put, old.level, level),
            filled=jnp.where(full, n, old.filled + 1),
            next_id=old.next_id + 1,
            **{name: put(getattr(old, name), new) for name, new in facts.items()},
        )
        known = own.known.at[own.admitted % REMEMBERED].set(room.design.traits(level))  # type: ignore[attr-defined]
        own = replace(own, known=known, admitted=own.admitted + 1, solved=own.solved.at[place].set(False))
        s = replace(s, buffer=buffer, own=own)
        here = jnp.arange(n) == place
        fresh = jax.tree.map(jnp.zeros_like, s.learner.optimiser)
        s = self._with(s, here, jnp.broadcast_to(theta, (n, theta.size)), fresh)
        return self._written(s, place)

    # What they share.

    def active(self, s: State) -> Bool[Array, " N"]:
        """Which places hold a pair."""
        return jnp.arange(self.capacity) < s.buffer.filled

    def agents(self, s: State) -> Float[Array, "N n"]:
        """The students as vectors."""
        return jax.vmap(strategies.flat)(s.learner.student.members)

    def unflatten(self, s: State) -> Callable[[Float[Array, " n"]], Any]:
        """What makes a student from a vector."""
        return strategies.unflattener(jax.tree.map(lambda x: x[0], s.learner.student.members))

    def meets(self, score: Float[Array, "*n"]) -> Bool[Array, "*n"]:
        """The minimal criterion: neither too hard nor too easy."""
        return (score >= self.lowest_score) & (score <= self.highest_score)

    def _gradients(
        self, room: Classroom, key: Key[Array, ""], returns: Float[Array, "R N P"], sigma: Float[Array, "..."]
    ) -> Float[Array, "R N n"]:
        """From the returns of each student's perturbations, for each of some rows."""
        size, rows = self._size(room), returns.shape[0]
        numbers = jnp.arange(rows * self.capacity).reshape(rows, -1) * (room.slots // 2)
        one = lambda returns, sigma, first: strategies.estimate(key, returns, sigma, size, first)  # noqa: E731
        return jax.vmap(jax.vmap(one))(returns, jnp.broadcast_to(sigma, returns.shape[:2]), numbers)

    def _size(self, room: Classroom) -> int:
        return jax.eval_shape(lambda key: strategies.flat(room.new_student(key)), jax.random.key(0)).size

    def _with(self, s: State, where: Bool[Array, " N"], agents: Float[Array, "N n"], moments: Moments) -> State:
        """Other students in some places."""
        wide = lambda x: where.reshape(where.shape + (1,) * (x.ndim - 1))  # noqa: E731
        choose = lambda new, old: jnp.where(wide(old), new, old)  # noqa: E731
        population = s.learner.student
        members = jax.tree.map(choose, jax.vmap(self.unflatten(s))(agents), population.members)
        moments = jax.tree.map(choose, moments, s.learner.optimiser)
        return replace(s, learner=Learner(Population(members, s.buffer.filled), moments))

    def _scored(self, room: Classroom, s: State, score: Float[Array, " N"]) -> State:
        """Takes note of the students' returns on their own levels."""
        active, buffer, own = self.active(s), s.buffer, s.own
        before = jnp.where(s.updates > buffer.birth, buffer.best_return, score)
        best = jnp.where(active, jnp.maximum(before, score), 0.0)
        solved = active & room.env.solved(score)
        new = solved & ~own.solved
        after = jnp.where(new, s.updates - buffer.birth, 0).sum(dtype=jnp.float32)
        own = replace(own, solved=own.solved | solved, solutions=own.solutions + new.sum(dtype=jnp.int32))
        buffer = replace(buffer, score=jnp.where(active, score, 0.0), best_return=best)
        one = jnp.float32(1)
        s = s.note(
            {
                "poet/environments": (own.admitted.astype(jnp.float32), one),
                "poet/solved": (own.solutions.astype(jnp.float32), one),
                "poet/solved_after": (after, new.sum(dtype=jnp.float32)),
            }
        )
        return replace(s, buffer=buffer, own=own)

    def _written(self, s: State, place: Int[Array, ""]) -> State:
        """The pair's level goes into the journal."""
        if s.log is None:
            return s
        entry = s.buffer.record.at(place[None])
        return replace(s, log=s.log.write(Journal(**vars(entry), admitted=jnp.ones(1, bool))))

    def _try_next(self, s: State, rank: Float[Array, " C"]) -> State:
        """On to the most novel child that is left, or to the students' steps."""
        s = replace(s, own=replace(s.own, rank=rank))
        return self._next(s, jnp.where(jnp.isfinite(rank).any(), TRY, STEP))

    def _after_iteration(self, s: State) -> Array:
        """How the next iteration begins."""  # 1
        return jnp.where(s.updates % self.reproduce_every == 0, APPRAISE, STEP)

    def _next(self, s: State, number: Int[Array, ""] | int) -> State:
        return replace(s, own=replace(s.own, round=jnp.asarray(number, jnp.int32)))


def best_of(
    direct: Float[Array, "N N"], proposed: Float[Array, "N N"], active: Bool[Array, " N"]
) -> tuple[Bool[Array, " N"], Int[Array, " N"], Float[Array, " N"]]:
    """On each level: whether a proposal is best, whose it is (or which student is), and its score.

    Of equal ones the level's own student comes first, then students as they are, then proposals.
    """
    n = len(active)
    others = ~jnp.eye(n, dtype=bool) & active
    own = jnp.diagonal(direct)[:, None]
    found = jnp.concatenate([own, jnp.where(others, direct, -jnp.inf), jnp.where(others, proposed, -jnp.inf)], axis=1)
    at = jnp.argmax(found, axis=1)
    is_own = at == 0
    return ~is_own & (at > n), jnp.where(is_own, jnp.arange(n), (at - 1) % n), found.max(axis=1)


def novelty(
    kinds: Float[Array, "C d"], known: Float[Array, "K d"], count: Int[Array, ""], neighbours: int
) -> Float[Array, " C"]:
    """Mean Euclidean distance to the nearest of the first `count` that are known, or to all if that is fewer."""
    return to_nearest(kinds, known, jnp.arange(len(known)) < count, neighbours)
