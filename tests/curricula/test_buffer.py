"""The level buffer against a slow NumPy reference that recomputes everything at every step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from scipy.stats import chisquare

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import Buffer, BufferConfig, Candidates, fingerprint

BATCH = 4
# A share of staleness that makes no exact tie between different pairs of score weight and staleness.
MIXED = BufferConfig(capacity=6, staleness=0.3137, top_k=3)

insert = jax.jit(buffers.insert, static_argnums=1)
update = jax.jit(buffers.update)
visit = jax.jit(buffers.visit)
weights = jax.jit(buffers.weights, static_argnums=1)
sample = jax.jit(buffers.sample, static_argnums=(2, 3))


@dataclass
class Entry:
    level: int
    score: float
    best_return: float
    staleness: int
    id: int
    parent: int
    generation: int
    birth: int


class Reference:
    """The rules, one at a time and in double precision. A level is a number here."""

    def __init__(self, config: BufferConfig):
        self.config = config
        self.entries: list[Entry] = []
        self.next_id = 0

    def weights(self) -> np.ndarray:
        slots, share = self.config.capacity, self.config.staleness
        filled = len(self.entries)
        result = np.zeros(slots)
        if filled == 0:
            return result
        raw = self.raw_score_weights()
        by_score = raw / raw.sum() if raw.sum() > 0 else np.full(filled, 1 / filled)
        age = np.array([e.staleness for e in self.entries], float)
        by_age = age / age.sum() if age.sum() > 0 else np.full(filled, 1 / slots)
        result[:filled] = (1 - share) * by_score + share * by_age
        return result

    def raw_score_weights(self) -> np.ndarray:
        config, filled = self.config, len(self.entries)
        score = np.array([e.score for e in self.entries] + [0.0] * (config.capacity - filled))
        if config.prioritisation == "proportional":
            epsilon = 0 if config.staleness > 0 else 1e-3
            return (np.maximum(score[:filled], 0) + epsilon) ** (1 / config.temperature)
        if config.prioritisation == "top-k":
            best = np.argsort(-score[:filled], kind="stable")[: config.top_k]
            return np.isin(np.arange(filled), best).astype(float)
        order = np.argsort(-score, kind="stable")
        rank = np.empty(config.capacity)
        rank[order] = np.arange(1, config.capacity + 1)
        return (1 / rank[:filled]) ** (1 / config.temperature)

    def draw(self, slot: int) -> None:
        for entry in self.entries:
            entry.staleness += 1
        self.entries[slot].staleness = 0

    def update(self, slot: int, score: float, best_return: float) -> None:
        entry = self.entries[slot]
        entry.score = score
        entry.best_return = max(entry.best_return, best_return)

    def victim(self) -> int:
        if self.config.eviction == "score":
            return int(np.argmin([e.score for e in self.entries]))
        return int(np.argmin(self.weights()))

    def offer(self, level, score, bid, best_return, parent, generation, birth, staleness) -> tuple[bool, int]:
        """Returns whether a new entry was made, and the id of the entry that holds the level or −1."""
        for slot, entry in enumerate(self.entries):
            if entry.level == level:
                self.update(slot, score, best_return)
                entry.staleness = 0
                return False, entry.id
        entry = Entry(level, score, best_return, staleness, self.next_id, parent, generation, birth)
        if len(self.entries) < self.config.capacity:
            self.entries.append(entry)
        else:
            victim = self.victim()
            if self.entries[victim].score > bid:
                return False, -1
            self.entries[victim] = entry
        self.next_id += 1
        return True, entry.id


def to_level(number) -> dict[str, np.ndarray]:
    """A level that is a number in disguise: some bits as booleans, the rest as a float."""
    number = np.asarray(number)
    return {
        "walls": (number[..., None] >> np.arange(3)) % 2 == 1,
        "height": (number // 8 / 4).astype(np.float32),
    }


def to_number(level) -> np.ndarray:
    return np.asarray(level["walls"]) @ (2 ** np.arange(3)) + 8 * np.rint(4 * np.asarray(level["height"])).astype(int)


def empty(config: BufferConfig) -> Buffer:
    return buffers.empty(to_level(0), config)


@dataclass
class Batch:
    """N candidates."""

    level: np.ndarray
    score: np.ndarray
    best_return: np.ndarray
    valid: np.ndarray
    parent: np.ndarray
    generation: np.ndarray
    bid: np.ndarray | None = None

    @property
    def bids(self) -> np.ndarray:
        """The score where nothing else is said."""
        return self.score if self.bid is None else self.bid

    def candidates(self, birth: int) -> Candidates:
        return Candidates(
            level=to_level(self.level),
            id=np.full(len(self.level), -1, np.int32),
            parent=self.parent,
            generation=self.generation,
            birth=np.full(len(self.level), birth, np.int32),
            score=self.score,
            bid=jnp.asarray(self.bids),
            best_return=jnp.asarray(self.best_return),
            finished=jnp.asarray(self.valid),
        )


def offer_all(reference: Reference, batch: Batch, birth: int) -> tuple[list[bool], list[int]]:
    verdicts = []
    count = len(batch.level)
    for i in range(count):
        verdict = (False, -1)
        if batch.valid[i]:
            facts = (batch.level[i], batch.score[i], batch.bids[i], batch.best_return[i])
            verdict = reference.offer(*facts, batch.parent[i], batch.generation[i], birth, count - 1 - i)
        verdicts.append(verdict)
    admitted, ids = zip(*verdicts, strict=True)
    return list(admitted), list(ids)


def assert_same(buffer: Buffer, reference: Reference, config: BufferConfig) -> None:
    filled = len(reference.entries)
    assert int(buffer.filled) == filled
    assert int(buffer.next_id) == reference.next_id
    for name in ("score", "best_return", "staleness", "id", "parent", "generation", "birth"):
        expected = [getattr(e, name) for e in reference.entries]
        np.testing.assert_allclose(np.asarray(getattr(buffer, name))[:filled], expected, atol=1e-6, err_msg=name)
    assert to_number(buffer.level)[:filled].tolist() == [e.level for e in reference.entries]
    assert (np.asarray(buffer.score)[filled:] == 0).all()
    assert (np.asarray(buffer.id)[filled:] == -1).all()
    np.testing.assert_allclose(weights(buffer, config), reference.weights(), atol=1e-6)


def insert_both(buffer: Buffer, reference: Reference, config: BufferConfig, batch: Batch, birth: int) -> Buffer:
    buffer, inserted = insert(buffer, config, batch.candidates(birth))
    admitted, ids = offer_all(reference, batch, birth)
    assert inserted.admitted.tolist() == admitted
    assert inserted.id.tolist() == ids
    return buffer


def row(element):
    return st.lists(element, min_size=BATCH, max_size=BATCH)


score = st.sampled_from([-1.0, -0.25, 0.0, 0.0, 0.25, 0.5, 0.5, 1.0, 1.5])
mostly = st.sampled_from([True, True, True, False])
small = st.integers(-1, 9)


def candidates(*levels):
    """A batch of these levels, or of any."""
    level = st.just(levels) if levels else row(st.integers(0, 11))
    types = (int, "f4", "f4", bool, "i4", "i4")
    rows = st.tuples(level, *(row(x) for x in (score, score, mostly, small, small)))
    return rows.map(lambda rows: ("insert", Batch(*map(np.asarray, rows, types))))


inserts = candidates()
slots = st.integers(0, MIXED.capacity - 1)
updates = st.tuples(st.just("update"), st.tuples(row(slots), row(score), row(score), row(mostly)))
visits = st.tuples(st.just("visit"), st.tuples(row(slots), row(mostly)))
samples = st.tuples(st.just("sample"), st.integers(0, 2**16))
beginnings = st.one_of(st.just(()), st.tuples(candidates(0, 1, 2, 3), candidates(4, 5, 6, 7)))
operations = st.tuples(beginnings, st.lists(st.one_of(inserts, inserts, updates, visits, samples), max_size=8))

CONFIGS = [
    replace(MIXED, prioritisation=prioritisation, eviction=eviction)
    for prioritisation in ("rank", "proportional", "top-k")
    for eviction in ("weight", "score")
] + [
    replace(MIXED, staleness=0.0),
    replace(MIXED, staleness=0.0, prioritisation="proportional"),
    replace(MIXED, staleness=1.0),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.prioritisation}-{c.eviction}-{c.staleness}")
@settings(deadline=None, derandomize=True, max_examples=60)
@given(operations=operations)
def test_any_history_leaves_the_same_buffer_as_the_reference(config, operations):
    buffer, reference = empty(config), Reference(config)
    for birth, (name, argument) in enumerate(itertools.chain(*operations)):
        filled = len(reference.entries)
        if name == "insert":
            buffer = insert_both(buffer, reference, config, argument, birth)
        elif filled == 0:
            continue
        elif name == "update":
            index, scores, best_returns, valid = argument
            buffer = update(
                buffer, np.array(index), np.array(scores, "f4"), np.array(best_returns, "f4"), np.array(valid)
            )
            for i, slot in enumerate(index):
                if valid[i] and slot < filled:
                    reference.update(slot, scores[i], best_returns[i])
        elif name == "visit":
            index, used = np.array(argument[0]) % filled, np.array(argument[1])
            buffer = visit(buffer, index, used)
            for slot in index[used]:
                reference.draw(slot)
        else:
            index, buffer = sample(jax.random.key(argument), buffer, config, BATCH)
            for slot in index.tolist():
                assert reference.weights()[slot] > 0
                reference.draw(slot)
        assert_same(buffer, reference, config)


def random_batch(rng: np.random.Generator, count: int, levels: int) -> Batch:
    """Levels below `levels`, so that some occur twice; half the scores are rounded, so that there are ties."""
    scores = rng.normal(0.3, 0.5, count)
    scores = np.where(rng.random(count) < 0.5, np.round(scores, 1), scores).astype(np.float32)
    ints = rng.integers(-1, 100, (2, count)).astype(np.int32)
    return Batch(
        rng.integers(0, levels, count),
        scores,
        rng.random(count).astype(np.float32),
        rng.random(count) < 0.9,
        *ints,
        bid=scores + rng.normal(0, 0.2, count).astype(np.float32) * (rng.random(count) < 0.5),
    )


def test_a_buffer_of_full_size_follows_the_reference():
    config, rng = BufferConfig(), np.random.default_rng(0)
    buffer, reference = empty(config), Reference(config)
    while len(reference.entries) < config.capacity:
        buffer = insert_both(buffer, reference, config, random_batch(rng, 2000, 50_000), 0)
    for _ in range(3):
        index = rng.integers(0, config.capacity, 2000)
        buffer = visit(buffer, index, np.ones(2000, bool))
        last = {int(slot): m for m, slot in enumerate(index)}
        for slot, entry in enumerate(reference.entries):
            entry.staleness = 1999 - last[slot] if slot in last else entry.staleness + 2000
    batch = random_batch(rng, 32, 50_000)
    batch.level[5], batch.level[20] = reference.entries[17].level, batch.level[3]
    batch.valid[[3, 5, 20]] = True
    buffer = insert_both(buffer, reference, config, batch, 1)
    assert_same(buffer, reference, config)


def filled_buffer(config: BufferConfig, scores, staleness=None) -> tuple[Buffer, Reference]:
    """A buffer with the levels 0, 1, … of these scores."""
    n = len(scores)
    numbers = np.arange(n)
    batch = Batch(numbers, np.asarray(scores, "f4"), np.zeros(n, "f4"), np.ones(n, bool), numbers - 1, numbers)
    reference = Reference(config)
    buffer = insert_both(empty(config), reference, config, batch, 0)
    if staleness is not None:
        buffer = replace(buffer, staleness=buffer.staleness.at[:n].set(jnp.array(staleness)))
        for entry, age in zip(reference.entries, staleness, strict=True):
            entry.staleness = age
    return buffer, reference


@pytest.mark.parametrize("prioritisation", ["rank", "proportional", "top-k"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_an_empty_buffer_has_weight_zero_and_nothing_is_nan(prioritisation, share):
    config = BufferConfig(capacity=5, prioritisation=prioritisation, staleness=share)
    assert weights(empty(config), config).tolist() == [0.0] * 5
    index, buffer = sample(jax.random.key(0), empty(config), config, 3)
    assert index.tolist() == [0, 0, 0]
    assert not any(np.isnan(x).any() for x in jax.tree.leaves(buffer))


def test_weights_by_rank_count_free_slots_and_break_ties_by_slot():
    config = BufferConfig(capacity=5, staleness=0.0, temperature=1.0)
    buffer, _ = filled_buffer(config, [-1.0, 0.5, 0.5])
    # Ranks 5, 1, 2: the two free slots hold 0 and are third and fourth.
    expected = np.array([1 / 5, 1, 1 / 2, 0, 0]) / 1.7
    np.testing.assert_allclose(weights(buffer, config), expected, rtol=1e-6)


def test_weights_without_any_score_are_uniform_and_without_any_staleness_one_over_capacity():
    config = BufferConfig(capacity=4, staleness=0.25, prioritisation="proportional")
    buffer, _ = filled_buffer(config, [-1.0, 0.0], staleness=[0, 0])
    np.testing.assert_allclose(weights(buffer, config), [0.75 / 2 + 0.25 / 4] * 2 + [0, 0], rtol=1e-6)


@pytest.mark.parametrize("scores", [[1e-6, 2e-6], [1e6, 2e6]])
def test_proportional_weights_survive_extreme_scores_and_temperatures(scores):
    config = BufferConfig(capacity=2, staleness=1e-9, prioritisation="proportional", temperature=0.1)
    buffer, _ = filled_buffer(config, scores, staleness=[1, 1])
    np.testing.assert_allclose(weights(buffer, config), np.array([1, 1024]) / 1025, rtol=1e-5)


def test_top_k_larger_than_the_buffer_is_uniform():
    config = BufferConfig(capacity=4, staleness=0.0, prioritisation="top-k", top_k=9)
    buffer, _ = filled_buffer(config, [-1.0, 2.0, 0.0])
    np.testing.assert_allclose(weights(buffer, config), [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-6)


def assert_frequencies(counts, probabilities) -> None:
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    expected = probabilities[possible] / probabilities.sum() * counts.sum()
    assert chisquare(counts[possible], expected).pvalue > 1e-3


@pytest.mark.parametrize("prioritisation", ["rank", "proportional", "top-k"])
@pytest.mark.parametrize("staleness", [[0, 3, 1], [0, 0, 0]])
def test_sampling_is_sequential_and_follows_the_weights(prioritisation, staleness):
    config = BufferConfig(capacity=4, staleness=0.4, temperature=1.0, top_k=2, prioritisation=prioritisation)
    buffer, _ = filled_buffer(config, [0.4, 1.0, 0.7], staleness)
    keys = jax.random.split(jax.random.key(1), 20_000)
    drawn = np.asarray(jax.vmap(lambda key: sample(key, buffer, config, 3)[0])(keys))
    counts, probabilities = np.zeros((3, 3, 3)), np.ones((3, 3, 3))
    np.add.at(counts, tuple(drawn.T), 1)
    for path in itertools.product(range(3), repeat=3):
        _, reference = filled_buffer(config, [0.4, 1.0, 0.7], staleness)
        for slot in path:
            w = reference.weights()
            probabilities[path] *= w[slot] / w.sum()
            reference.draw(slot)
    assert_frequencies(counts, probabilities)


def test_more_draws_follow_the_weights():
    config = BufferConfig(capacity=40, staleness=0.4)
    rng = np.random.default_rng(0)
    buffer, reference = filled_buffer(config, rng.normal(size=30), staleness=rng.integers(0, 9, 30).tolist())
    drawn = buffers.draw_more(jax.random.key(0), buffer, config, (200, 200))
    assert drawn.shape == (200, 200)
    assert_frequencies(np.bincount(drawn.ravel(), minlength=40), reference.weights())
    assert buffers.draw_more(jax.random.key(0), buffer, config, (3, 0)).shape == (3, 0)


def test_visiting_all_drawn_slots_is_what_sampling_does():
    buffer, _ = filled_buffer(MIXED, [0.1, 0.5, 0.3, 0.2], staleness=[7, 0, 2, 2])
    index, sampled = sample(jax.random.key(3), buffer, MIXED, 9)
    visited = buffers.visit(buffer, index, jnp.ones(9, bool))
    assert sampled.staleness.tolist() == visited.staleness.tolist()


def test_staleness_counts_used_draws_since_the_last_one():
    buffer, _ = filled_buffer(MIXED, [0.1, 0.2, 0.3, 0.4])
    assert buffer.staleness[:4].tolist() == [3, 2, 1, 0]
    used = jnp.array([True, True, False, True, True])
    buffer = buffers.visit(buffer, jnp.array([2, 0, 3, 2, 1]), used)
    assert buffer.staleness[:4].tolist() == [2, 0, 1, 4]
    nothing = buffers.visit(buffer, jnp.zeros(0, jnp.int32), jnp.zeros(0, bool))
    assert nothing.staleness.tolist() == buffer.staleness.tolist()


def test_scores_that_are_not_finite_are_ignored():
    buffer, _ = filled_buffer(MIXED, [0.1, 0.2])
    bad = np.array([np.nan, np.inf, -np.inf], np.float32)
    updated = buffers.update(buffer, jnp.array([0, 1, 1]), jnp.array(bad), jnp.ones(3), jnp.ones(3, bool))
    ints = np.zeros(3, int)
    batch = Batch(np.array([0, 10, 11]), bad, np.ones(3, "f4"), np.ones(3, bool), ints, ints)
    after, inserted = insert(updated, MIXED, batch.candidates(1))
    assert not inserted.admitted.any()
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), after, buffer)))


def test_capacity_one_keeps_the_best():
    config = BufferConfig(capacity=1)
    buffer, reference = filled_buffer(config, [0.5])
    numbers = np.arange(1, 5)
    scores = np.array([0.2, 0.5, 0.9, 0.1], "f4")
    batch = Batch(numbers, scores, np.zeros(4, "f4"), np.ones(4, bool), numbers, numbers)
    buffer = insert_both(buffer, reference, config, batch, 1)
    assert_same(buffer, reference, config)
    assert (buffer.score.item(), buffer.id.item(), to_number(buffer.level).item()) == (pytest.approx(0.9), 2, 3)
    assert sample(jax.random.key(0), buffer, config, 3)[0].tolist() == [0, 0, 0]


def test_many_buffers_at_once_are_the_same_as_one_by_one():
    rng = np.random.default_rng(2)
    batches = [[random_batch(rng, BATCH, 12).candidates(5) for _ in range(3)] for _ in range(4)]
    alone = [empty(MIXED) for _ in range(3)]
    together = jax.tree.map(lambda *x: jnp.stack(x), *alone)
    for seeds in batches:
        alone, inserted = zip(*(insert(b, MIXED, a) for b, a in zip(alone, seeds, strict=True)), strict=True)
        stacked = jax.tree.map(lambda *x: np.stack(x), *seeds)
        together, inserted_together = jax.vmap(lambda b, a: insert(b, MIXED, a))(together, stacked)
        expected = jax.tree.map(lambda *x: jnp.stack(x), *zip(alone, inserted, strict=True))
        jax.tree.map(np.testing.assert_array_equal, (together, inserted_together), expected)
    assert together.filled.tolist() == [6, 6, 6]


@pytest.mark.parametrize(
    ("gate", "filled", "below", "above"),
    [
        ("fill", 4, None, 0.0),
        ("fill", 5, 0.49, 0.5),
        ("fill", 10, 0.79, 0.8),
        ("fixed", 4, None, 0.0),
        ("fixed", 5, 0.79, 0.8),
    ],
)
def test_replay_needs_the_minimum_fill_and_then_luck(gate, filled, below, above):
    config = BufferConfig(capacity=10, min_fill=0.5, replay_rate=0.8, gate=gate)
    buffer = replace(empty(config), filled=jnp.int32(filled))
    ask = partial(buffers.may_replay, buffer, config)
    assert not ask(jnp.float32(above))
    assert below is None or ask(jnp.float32(below))


def test_the_minimum_fill_is_a_whole_number_of_levels_and_at_least_one():
    assert BufferConfig(capacity=100, min_fill=0.07).min_filled == 7
    assert BufferConfig(capacity=3, min_fill=0.5).min_filled == 2
    config = BufferConfig(min_fill=0.0, gate="fixed", replay_rate=1.0)
    assert not buffers.may_replay(empty(config), config, jnp.float32(0))


def test_fingerprints_differ_in_both_halves_for_every_single_bit():
    base = np.random.default_rng(0).integers(0, 256, 16, dtype=np.uint8)
    levels = [base] + [base ^ np.uint8(1 << bit) * (np.arange(16) == byte) for byte in range(16) for bit in range(8)]

    def unpack(data):
        """Four bytes each as booleans, small integers, an integer and a float."""
        walls = (data[:4, None] >> jnp.arange(8, dtype=jnp.uint8)) % 2 == 1
        words = jax.lax.bitcast_convert_type(data[8:].reshape(2, 4), jnp.uint32)
        return {
            "walls": walls,
            "tiles": data[4:6],
            "size": jax.lax.bitcast_convert_type(data[6:8], jnp.int16),
            "seed": words[0],
            "slope": jax.lax.bitcast_convert_type(words[1], jnp.float32),
        }

    prints = np.asarray(jax.vmap(lambda data: fingerprint(unpack(data)))(jnp.array(np.stack(levels))))
    assert len(np.unique(prints[:, 0])) == len(np.unique(prints[:, 1])) == len(levels)


def test_fingerprints_know_order_and_call_both_zeros_equal():
    def of(*values):
        return tuple(fingerprint(jnp.array(values, jnp.float32)).tolist())

    assert of(1, 2, 3) != of(2, 1, 3) != of(1, 2)
    assert of(0.0, 1.0) == of(-0.0, 1.0)


def test_fingerprints_of_random_mazes_spread_evenly():
    walls = jax.random.bernoulli(jax.random.key(0), 0.3, (4096, 13, 13))
    prints = np.asarray(jax.vmap(fingerprint)(walls))
    for shift in (0, 14, 28):
        for half in (0, 1):
            assert_frequencies(np.bincount(prints[:, half] >> shift & 15, minlength=16), np.ones(16))


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity": 0},
        {"temperature": 0.0},
        {"temperature": float("nan")},
        {"top_k": 0},
        {"staleness": 1.1},
        {"min_fill": -0.1},
        {"replay_rate": 2.0},
    ],
)
def test_a_config_that_makes_no_sense_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=f"^`{next(iter(wrong))}` must .*\\.$"):
        BufferConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"prioritisation": "best"}, {"gate": "open"}, {"eviction": "oldest"}])
def test_an_unknown_choice_is_refused(wrong):
    with pytest.raises((ValueError, TypeCheckError), match=next(iter(wrong))):  # type checks of the tests come first
        BufferConfig(**wrong)
