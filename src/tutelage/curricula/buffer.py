"""The level replay buffer: a pytree of K slots, and pure functions that read it or return a changed one.

All functions speak of one buffer; `jax.vmap` makes them speak of many. The rules are those of prioritised level
replay (Jiang et al. 2021) as ACCEL (Parker-Holder et al. 2022) uses them. Slots fill from the front and are never
emptied, so the filled slots are always 0 … filled − 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from tutelage.curricula.record import Record, blank
from tutelage.env import Level
from tutelage.errors import check_choices

Prioritisation = Literal["rank", "proportional", "top-k"]
Gate = Literal["fill", "fixed"]
Eviction = Literal["weight", "score"]


@dataclass(frozen=True)
class BufferConfig:
    """How levels are kept and replayed."""

    capacity: int = 4000
    """Number of slots K."""

    prioritisation: Prioritisation = "rank"
    """How a score becomes a weight: by 1/rank, in proportion to it, or one for the best `top_k` levels alone."""

    temperature: float = 0.3
    """Weights by rank or in proportion are raised to the power 1/temperature; small is greedy."""

    top_k: int = 32
    """How many of the best levels have weight under top-k prioritisation."""

    staleness: float = 0.3
    """Share of the replay distribution that goes to levels in proportion to how long ago they were drawn."""

    min_fill: float = 0.5
    """No replay before this fraction of the slots is filled."""

    replay_rate: float = 0.8
    """Probability of a replay cycle once the buffer is filled enough."""

    gate: Gate = "fill"
    """Replay with probability min(filled fraction, replay_rate), or with replay_rate alone (fixed)."""

    eviction: Eviction = "weight"
    """A full buffer gives up the slot of smallest replay weight, or of smallest score."""

    novelty: float = 0.0
    """Share of the score's part of the replay distribution that goes to levels by their novelty instead: how far a
    level lies from those that the buffer had when it came, or what the method takes novelty for."""

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ValueError(f"`capacity` must be at least 1, not {self.capacity}.")
        if not self.temperature > 0:
            raise ValueError(f"`temperature` must be positive, not {self.temperature}.")
        if self.top_k < 1:
            raise ValueError(f"`top_k` must be at least 1, not {self.top_k}.")
        for name in ("staleness", "min_fill", "replay_rate", "novelty"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must lie in [0, 1], not {getattr(self, name)}.")
        check_choices(self, prioritisation=Prioritisation, gate=Gate, eviction=Eviction)

    @property
    def min_filled(self) -> int:
        """The fewest filled slots with which the buffer may replay: at least one."""
        return max(1, math.ceil(self.min_fill * self.capacity - 1e-6))  # 0.07 · 100 is a little more than 7


class Buffer(Record):
    """K records, one a slot. What an unfilled slot holds besides score 0 and id −1 means nothing.

    buffer = empty(level, config)                              # room for levels like this one
    buffer, verdict = insert(buffer, config, candidates)       # those good enough are in
    slots, buffer = sample(key, buffer, config, 32)            # 32 to replay: `buffer.record.at(slots)`
    buffer = update(buffer, slots, scores, returns, finished)  # what the student made of them
    """

    best_return: Float[Array, " K"]
    """The largest undiscounted return seen on the level."""
    staleness: Int[Array, " K"]
    """Replay draws since the level was last drawn."""
    filled: Int[Array, ""]
    fingerprint: UInt32[Array, "K 2"]
    next_id: Int[Array, ""]
    novelty: Float[Array, " K"] | None = None
    """A second score, where the config gives it a share."""


class Candidates(Record):
    """N levels that are offered to a buffer. Their ids are not read."""

    bid: Float[Array, " N"]
    """What is weighed against the score of the level that would have to go: mostly the candidate's own score."""
    best_return: Float[Array, " N"]
    finished: Bool[Array, " N"]
    """An episode ended on the level, so that the score is one."""
    novelty: Float[Array, " N"] | None = None
    """Where the buffer keeps it."""


class Inserted(NamedTuple):
    """What became of each of N candidates."""

    admitted: Bool[Array, " N"]
    """A new entry was made (a later candidate of the same batch may have replaced it again)."""
    id: Int[Array, " N"]
    """Id of the new entry, or of the entry that already held this level; −1 if there is none."""


def empty(level_example: Level, config: BufferConfig) -> Buffer:
    """A buffer without levels, for levels of the structure, shapes and types of `level_example`."""
    slots = config.capacity
    return Buffer(
        **vars(blank(level_example, slots)),
        best_return=jnp.zeros(slots),
        staleness=jnp.zeros(slots, jnp.int32),
        filled=jnp.int32(0),
        fingerprint=jnp.zeros((slots, 2), jnp.uint32),
        next_id=jnp.int32(0),
        novelty=jnp.zeros(slots) if config.novelty else None,
    )


def weights(buffer: Buffer, config: BufferConfig) -> Float[Array, " K"]:
    """The replay distribution w = (1 − ς)·w_S + ς·w_C, with ς = `config.staleness`; 0 on unfilled slots.

    w_S is normalised over the filled slots; if all their score weights are zero it is uniform over them. With β the
    temperature, the score weight of a slot is

    - rank: (1/rank)^(1/β), rank 1 the best of *all* K slots: unfilled ones hold score 0 and take up ranks too;
    - proportional: (max(score, 0) + ε)^(1/β), ε = 0 if ς > 0 and 10⁻³ otherwise;
    - top-k: 1 for the k best filled slots, 0 for the others.

    Where the config gives novelty a share ν, w_S is (1 − ν)·w_S + ν·w_N, with w_N what novelty as the score would give.
    Among equal scores the lower slot has the better rank. w_C is the staleness, normalised over the filled slots; if
    it is zero everywhere each filled slot has 1/K, so that w sums to less than 1 while slots are free. An empty buffer
    has w = 0.
    """
    return _weights(_standing(buffer), buffer.staleness, buffer.filled, config)


def may_replay(buffer: Buffer, config: BufferConfig, u: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether this cycle replays, given `u` uniform in [0, 1): filled enough, and u < min(filled fraction, p) or p."""
    rate = jnp.float32(config.replay_rate)
    if config.gate == "fill":
        rate = jnp.minimum(buffer.filled / config.capacity, rate)
    return (buffer.filled >= config.min_filled) & (u < rate)


def sample(key: Key[Array, ""], buffer: Buffer, config: BufferConfig, n: int) -> tuple[Int[Array, " n"], Buffer]:
    """Draws `n` slots one after another, with replacement: each draw ages all slots by 1 and sets its own to 0.

    Scores do not change meanwhile, so only the staleness part of the mixture is drawn in sequence: a coin decides for
    each draw which part it comes from, and all draws from the score part are made beforehand. Either part is an
    exponential race: the slot of largest w/e, e ~ Exp(1), has probability w/Σw. The buffer must hold a level.
    """
    race_key, coin_key = jax.random.split(key)
    race = _race(race_key, (n, config.capacity))
    slots, filled = jnp.arange(config.capacity), _filled(buffer)
    # Staleness that is zero everywhere has a rule of its own. Only the first draw can meet it, unless there is but
    # one level: draw from the whole mixture then.
    whole = jnp.all((buffer.staleness == 0) | ~filled) & (jnp.arange(n) == 0)
    by_staleness = (jax.random.uniform(coin_key, (n,)) < config.staleness) & ~whole
    w_score = _score_weights(_standing(buffer), buffer.filled, config)
    fixed = jnp.argmax(jnp.where(whole[:, None], weights(buffer, config), w_score) * race, axis=1)

    def draw(staleness, x):
        by_staleness, fixed, race = x
        stale = jnp.argmax(jnp.where(filled, staleness, 0) * race)
        index = jnp.where(by_staleness, stale, fixed).astype(jnp.int32)
        return jnp.where(slots == index, 0, staleness + 1), index

    staleness, index = lax.scan(draw, buffer.staleness, (by_staleness, fixed, race))
    return index, replace(buffer, staleness=staleness)


def draw_more(key: Key[Array, ""], buffer: Buffer, config: BufferConfig, shape: tuple[int, ...]) -> Int[Array, "..."]:
    """Independent draws from the current weights that leave no trace: levels a rollout may need later (see `visit`)."""
    cumulative = jnp.cumsum(weights(buffer, config))
    point = jax.random.uniform(key, shape) * cumulative[-1]
    index = jnp.searchsorted(cumulative, point, side="right", method="scan_unrolled")
    return jnp.clip(index, 0, jnp.maximum(buffer.filled - 1, 0)).astype(jnp.int32)  # rounding may overshoot


def visit(buffer: Buffer, index: Int[Array, " N"], used: Bool[Array, " N"]) -> Buffer:
    """Accounts for draws that were really used, in order: each ages all slots by 1 and sets its own to 0.

    With M used draws, a slot drawn last as number m of them ends at staleness M − m, any other M older than before.
    """
    order, total = jnp.cumsum(used, dtype=jnp.int32), jnp.sum(used, dtype=jnp.int32)
    last = jnp.zeros_like(buffer.staleness).at[index].max(jnp.where(used, order, 0))
    staleness = jnp.where(last > 0, total - last, buffer.staleness + total)
    return replace(buffer, staleness=staleness)


def update(
    buffer: Buffer,
    index: Int[Array, " N"],
    scores: Float[Array, " N"],
    best_returns: Float[Array, " N"],
    valid: Bool[Array, " N"],
    novelties: Float[Array, " N"] | None = None,
) -> Buffer:
    """Overwrites the scores of replayed slots; of several valid results for a slot the last wins.

    The best return of a slot is the largest of all. A result whose score is not finite is not valid.
    """
    valid = valid & jnp.isfinite(scores) & (index < buffer.filled)
    last = jnp.full_like(buffer.staleness, -1).at[index].max(jnp.where(valid, jnp.arange(index.size), -1))
    score = jnp.where(last >= 0, scores[last], buffer.score)
    best_return = buffer.best_return.at[index].max(jnp.where(valid, best_returns, -jnp.inf))
    novelty = buffer.novelty
    if novelty is not None and novelties is not None:
        novelty = jnp.where(last >= 0, novelties[last], novelty)
    return replace(buffer, score=score, best_return=best_return, novelty=novelty)


def cull(key: Key[Array, ""], buffer: Buffer, share: float) -> Buffer:
    """Leaves a random share of the levels, at least one, in the first slots and in their order. The rest are free."""
    filled = _filled(buffer)
    lot = jnp.where(filled, jax.random.uniform(key, filled.shape), 2.0)
    count = jnp.ceil(share * buffer.filled - 1e-3).astype(jnp.int32)
    count = jnp.clip(count, jnp.minimum(buffer.filled, 1), buffer.filled)
    stays = jnp.argsort(jnp.argsort(lot)) < count
    order = jnp.argsort(~stays, stable=True)
    slots = {name: x for name, x in vars(buffer).items() if name not in ("filled", "next_id")}
    moved = replace(buffer, **jax.tree.map(lambda x: x[order], slots), filled=count)
    free = ~_filled(moved)
    return replace(
        moved,
        id=jnp.where(free, -1, moved.id),
        score=jnp.where(free, 0.0, moved.score),
        staleness=jnp.where(free, 0, moved.staleness),
        novelty=None if moved.novelty is None else jnp.where(free, 0.0, moved.novelty),
    )


def insert(buffer: Buffer, config: BufferConfig, candidates: Candidates) -> tuple[Buffer, Inserted]:
    """Offers N candidates in order, each to the buffer the one before has left.

    - not finished, or its score is not finite: skipped;
    - the level is stored already (equal `fingerprint`): no new entry; the stored score is overwritten, the best return
      is the larger one, the staleness is 0;
    - a slot is free: admitted at the next one;
    - full: the victim is the slot of smallest weight (or score), the lowest of equals; the candidate takes its place
      if score(victim) ≤ its bid, and is dropped otherwise.

    Candidate i is admitted with staleness N − 1 − i and the next unused id. Weights are compared in float32.
    """
    prints = jax.vmap(fingerprint)(candidates.level)
    book, verdict = _judge(buffer, config, candidates, prints)
    entry = _entries(verdict)
    ids = buffer.next_id + jnp.cumsum(verdict.admitted, dtype=jnp.int32) - 1
    # Each slot is written at most once: places beyond the last slot, all different, are dropped.
    spare = config.capacity + jnp.arange(verdict.slot.size)
    place = jnp.where(entry.lasts & verdict.admitted, verdict.slot, spare)

    def put(old: Array, new: Array) -> Array:
        return old.at[place].set(new, mode="drop", unique_indices=True)

    best_return = put(buffer.best_return, candidates.best_return)
    held = jax.tree.map(put, buffer.record, replace(candidates.record, id=ids))
    changed = Buffer(
        **vars(replace(held, score=book.standing.score.value)),
        best_return=best_return.at[verdict.slot].max(jnp.where(entry.lasts, candidates.best_return, -jnp.inf)),
        staleness=book.staleness,
        filled=book.filled,
        fingerprint=put(buffer.fingerprint, prints),
        next_id=buffer.next_id + verdict.admitted.sum(dtype=jnp.int32),
        novelty=None if book.standing.novelty is None else book.standing.novelty.value,
    )
    held_as = jnp.where(entry.source >= 0, ids[entry.source], buffer.id[verdict.slot])
    return changed, Inserted(verdict.admitted, jnp.where(verdict.hit, held_as, -1))


def fingerprint(level: Level) -> UInt32[Array, "2"]:
    """Two independent 32-bit hashes over the bits of all leaves (0.0 and −0.0 count as equal).

    Two different levels share a fingerprint with probability 2⁻⁶⁴, about 5·10⁻²⁰; levels that differ in a single
    32-bit word never do. A million candidates offered to 4000 slots meet a false duplicate with probability 2·10⁻¹⁰.

    Each hash is Σ_p mix(word_p ⊕ mix(p ⊕ seed)) mod 2³²: every position has its own bijection of words.
    """
    words = jnp.concatenate([_words(leaf) for leaf in jax.tree.leaves(level)])
    position = jnp.arange(words.size, dtype=jnp.uint32)
    seeds = (0x2545F491, 0x9E3779B9)
    return jnp.stack([jnp.sum(_mix(words ^ _mix(position ^ seed)), dtype=jnp.uint32) for seed in map(np.uint32, seeds)])


class _Ranked(NamedTuple):
    """A number of every slot, and its rank among them."""

    value: Float[Array, " K"]
    rank: Int[Array, " K"]

    def put(self, slot: Int[Array, ""], new: Float[Array, ""], here: Bool[Array, " K"]) -> _Ranked:
        """With a new value in this slot, if it is `here`; else `new` is what is there."""
        return _Ranked(jnp.where(here, new, self.value), _rerank(self.rank, self.value, slot, new))


class _Standing(NamedTuple):
    """What the levels are worth."""

    score: _Ranked
    novelty: _Ranked | None


def _standing(buffer: Buffer) -> _Standing:
    ranked = lambda x: _Ranked(x, _ranks(x))  # noqa: E731
    return _Standing(ranked(buffer.score), None if buffer.novelty is None else ranked(buffer.novelty))


class _Candidate(NamedTuple):
    number: Int[Array, ""]
    score: Float[Array, ""]
    novelty: Float[Array, ""] | None
    bid: Float[Array, ""]
    valid: Bool[Array, ""]
    same: Bool[Array, " N"]  # which candidates of the batch are this very level


class _Book(NamedTuple):
    """What the admission of one candidate can change for the next. The levels themselves stay outside the loop."""

    standing: _Standing
    staleness: Int[Array, " K"]
    filled: Int[Array, ""]
    holder: Int[Array, " N"]  # the slot that holds each candidate's level now, −1 if none


class _Verdict(NamedTuple):
    slot: Int[Array, "..."]
    admitted: Bool[Array, "..."]
    merged: Bool[Array, "..."]

    @property
    def hit(self) -> Bool[Array, "..."]:
        """The slot holds the candidate's level."""
        return self.admitted | self.merged


class _Entries(NamedTuple):
    """Where the buffer entry that each candidate went to comes from, and whether it is still there."""

    source: Int[Array, " N"]  # the candidate whose admission made it, −1 if it was there before
    lasts: Bool[Array, " N"]  # no later candidate of the batch took its place


def _judge(
    buffer: Buffer, config: BufferConfig, candidates: Candidates, prints: UInt32[Array, "N 2"]
) -> tuple[_Book, _Verdict]:
    """Goes through the candidates one after another, with all but the levels themselves."""
    stored = _equal(prints, buffer.fingerprint) & _filled(buffer)
    queue = _Candidate(
        number=jnp.arange(prints.shape[0], dtype=jnp.int32),
        score=candidates.score,
        novelty=None if buffer.novelty is None else candidates.novelty,
        bid=candidates.bid,
        valid=candidates.finished & jnp.isfinite(candidates.score),
        same=_equal(prints, prints),
    )
    book = _Book(
        standing=_standing(buffer),
        staleness=buffer.staleness,
        filled=buffer.filled,
        holder=jnp.where(stored.any(1), stored.argmax(1), -1).astype(jnp.int32),
    )
    return lax.scan(lambda book, candidate: _offer(book, candidate, config), book, queue)


def _offer(book: _Book, candidate: _Candidate, config: BufferConfig) -> tuple[_Book, _Verdict]:
    capacity, batch = config.capacity, book.holder.size
    score, novelty = book.standing
    full = book.filled == capacity
    if config.eviction == "weight":
        worst = jnp.argmin(_weights(book.standing, book.staleness, book.filled, config))
    else:
        worst = jnp.argmin(score.value)
    free = jnp.where(full, worst, book.filled).astype(jnp.int32)
    fits = ~full | (score.value[free] <= candidate.bid)
    holder = book.holder[candidate.number]
    merged = candidate.valid & (holder >= 0)
    admitted = candidate.valid & (holder < 0) & fits

    slot = jnp.where(merged, holder, free)
    new_score = jnp.where(merged | admitted, candidate.score, score.value[slot])
    age = jnp.where(merged, 0, batch - 1 - candidate.number)
    here = (jnp.arange(capacity) == slot) & (merged | admitted)
    moved = jnp.where(candidate.same, slot, jnp.where(book.holder == slot, -1, book.holder))
    if novelty is not None:
        assert candidate.novelty is not None, "a buffer that keeps novelties must be told them"
        new = jnp.where(merged | admitted, candidate.novelty, novelty.value[slot])
        novelty = novelty.put(slot, new, here)
    book = _Book(
        standing=_Standing(score.put(slot, new_score, here), novelty),
        staleness=jnp.where(here, age, book.staleness),
        filled=book.filled + (admitted & ~full),
        holder=jnp.where(admitted, moved, book.holder),
    )
    return book, _Verdict(slot, admitted, merged)


def _entries(verdict: _Verdict) -> _Entries:
    """For candidate i, among those that went to its slot: the last one admitted up to it, and any admitted after it."""
    hit = verdict.hit
    number = jnp.arange(hit.size)
    admitted_here = (verdict.slot[:, None] == verdict.slot) & verdict.admitted & hit[:, None]
    later = number > number[:, None]
    source = jnp.max(jnp.where(admitted_here & ~later, number, -1), axis=1)
    return _Entries(source, hit & ~jnp.any(admitted_here & later, axis=1))


def _filled(buffer: Buffer) -> Bool[Array, " K"]:
    return jnp.arange(buffer.score.size) < buffer.filled


def _ranks(score: Float[Array, " K"]) -> Int[Array, " K"]:
    """1 for the largest score; the lower slot first among equals."""
    order = jnp.argsort(score, descending=True, stable=True)
    return jnp.zeros_like(order).at[order].set(jnp.arange(1, score.size + 1), unique_indices=True).astype(jnp.int32)


def _rerank(
    rank: Int[Array, " K"], score: Float[Array, " K"], slot: Int[Array, ""], new: Float[Array, ""]
) -> Int[Array, " K"]:
    """The ranks after `score[slot]` becomes `new`, without a sort.

    Let j ≺ i mean that j ranks before i: score_j > score_i, or they are equal and j < i. When slot j changes, every
    other rank_i changes by [j ≺ i now] − [j ≺ i before], and rank_j = K − Σ_{i≠j} [j ≺ i now].
    """
    slots = jnp.arange(score.size)

    def before(value):
        return (value > score) | ((value == score) & (slot < slots))

    now = before(new)
    others = rank + now.astype(jnp.int32) - before(score[slot]).astype(jnp.int32)
    own = score.size - jnp.sum(now & (slots != slot), dtype=jnp.int32)
    return jnp.where(slots == slot, own, others)


def _weights(
    standing: _Standing, staleness: Int[Array, " K"], filled: Int[Array, ""], config: BufferConfig
) -> Float[Array, " K"]:
    mask = jnp.arange(staleness.size) < filled
    w_score = _score_weights(standing, filled, config)
    w_stale = _normalise(jnp.where(mask, staleness, 0).astype(jnp.float32), jnp.where(mask, 1 / staleness.size, 0.0))
    return (1 - config.staleness) * w_score + config.staleness * w_stale


def _score_weights(standing: _Standing, filled: Int[Array, ""], config: BufferConfig) -> Float[Array, " K"]:
    w_score = _ranked_weights(standing.score, filled, config)
    if standing.novelty is None:
        return w_score
    return (1 - config.novelty) * w_score + config.novelty * _ranked_weights(standing.novelty, filled, config)


def _ranked_weights(ranked: _Ranked, filled: Int[Array, ""], config: BufferConfig) -> Float[Array, " K"]:
    score, rank = ranked
    mask = jnp.arange(score.size) < filled
    if config.prioritisation == "rank":
        table = np.arange(1, score.size + 1, dtype=np.float64) ** (-1 / config.temperature)
        raw = jnp.asarray(table, jnp.float32)[rank - 1]
    elif config.prioritisation == "proportional":
        raw = jnp.maximum(score, 0) + (0 if config.staleness > 0 else 1e-3)
        # Relative to the largest, so that no temperature overflows or makes all of them vanish.
        largest = jnp.max(jnp.where(mask, raw, 0))
        raw = (raw / jnp.where(largest > 0, largest, 1)) ** (1 / config.temperature)
    else:
        # Free slots (score 0, behind all filled ones) outrank exactly the negative scores.
        among_filled = rank - jnp.where(score < 0, score.size - filled, 0)
        raw = (among_filled <= config.top_k).astype(jnp.float32)
    return _normalise(jnp.where(mask, raw, 0), mask / jnp.maximum(filled, 1))


def _normalise(raw: Float[Array, " K"], otherwise: Float[Array, " K"]) -> Float[Array, " K"]:
    """`raw` over its sum, or `otherwise` if that is zero."""
    total = jnp.sum(raw)
    return jnp.where(total > 0, raw / jnp.where(total > 0, total, 1), otherwise)


def _race(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    """1/e with e ~ Exp(1). From 32 random bits, finer near e = 0 than `jax.random.exponential`, and never infinite."""
    u = (jax.random.bits(key, shape, jnp.uint32).astype(jnp.float32) + 0.5) * 2.0**-32
    return -1 / jnp.log1p(-u)


def _equal(a: UInt32[Array, "A 2"], b: UInt32[Array, "B 2"]) -> Bool[Array, "A B"]:
    return jnp.all(a[:, None] == b, axis=-1)


def _words(leaf: Array) -> UInt32[Array, " words"]:
    """The bits of an array as 32-bit words, at least one for each element."""
    x = jnp.asarray(leaf).reshape(-1)
    if x.dtype == jnp.bool_:
        return x.astype(jnp.uint32)
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = jnp.where(x == 0, jnp.zeros_like(x), x)  # −0.0 equals 0.0
    bits = lax.bitcast_convert_type(x, {1: jnp.uint8, 2: jnp.uint16}.get(x.dtype.itemsize, jnp.uint32))
    return bits.reshape(-1).astype(jnp.uint32)


def _mix(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """A bijection of words in which each input bit moves about half of the output bits: MurmurHash3's last step."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
