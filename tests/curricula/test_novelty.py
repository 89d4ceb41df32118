"""Levels are novel where they lie far from others; extinctions leave a random share of them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, Square, signs
from tutelage.curricula.buffer import Buffer, BufferConfig, Candidates, cull, empty, fingerprint, insert, weights
from tutelage.curricula.novelty import NEIGHBOURS, novelty
from tutelage.curricula.record import newborn

K, FILLED = 12, 9
CONFIG = BufferConfig(capacity=K, staleness=0.2, temperature=0.5, novelty=0.4)


def filled(seed: int = 0, count: int = FILLED, config: BufferConfig = CONFIG) -> Buffer:
    """A buffer with random levels, scores and novelties."""
    rng = np.random.default_rng(seed)
    level, score, new = rng.uniform(-1, 1, (K, 2)), rng.random(K), rng.random(K)
    there = np.arange(K) < count
    blank = empty(jnp.zeros(2), config)
    level = jnp.asarray(level, jnp.float32)
    return replace(
        blank,
        level=level,
        score=jnp.asarray(np.where(there, score, 0), jnp.float32),
        novelty=jnp.asarray(np.where(there, new, 0), jnp.float32),
        id=jnp.where(there, jnp.arange(K), -1).astype(jnp.int32),
        staleness=jnp.asarray(np.where(there, rng.integers(0, 9, K), 0), jnp.int32),
        fingerprint=jax.vmap(fingerprint)(level),
        filled=jnp.int32(count),
        next_id=jnp.int32(count),
    )


def weights_by_hand(b: Buffer, config: BufferConfig) -> np.ndarray:
    def by_rank(x):
        rank = np.empty(K)
        rank[np.argsort(-np.asarray(x), kind="stable")] = np.arange(1, K + 1)
        raw = np.where(np.arange(K) < int(b.filled), rank ** (-1 / config.temperature), 0)
        return raw / raw.sum()

    stale = np.asarray(b.staleness, float)
    mixed = (1 - config.novelty) * by_rank(b.score) + config.novelty * by_rank(b.novelty)
    return (1 - config.staleness) * mixed + config.staleness * stale / stale.sum()


def test_the_replay_distribution_is_shared_by_score_and_novelty():
    np.testing.assert_allclose(weights(filled(), CONFIG), weights_by_hand(filled(), CONFIG), atol=1e-6)


def test_a_full_buffer_gives_up_the_level_of_smallest_weight_novelty_counted():
    """Four candidates one after another, beside a plain loop."""
    rng = np.random.default_rng(5)
    b = filled(count=K)
    levels = jnp.asarray(rng.uniform(-1, 1, (4, 2)), jnp.float32)
    scores, new = jnp.asarray(rng.random(4), jnp.float32), jnp.asarray(rng.random(4), jnp.float32)
    record = newborn(levels, scores, jnp.int32(0))
    one = Candidates(**vars(record), bid=scores, best_return=scores, finished=jnp.ones(4, bool), novelty=new)
    after, verdict = jax.jit(lambda b, c: insert(b, CONFIG, c))(b, one)
    plain = {name: np.asarray(getattr(b, name)).copy() for name in ("score", "novelty", "staleness", "level")}
    for i in range(4):
        now = replace(b, **{name: jnp.asarray(x) for name, x in plain.items()})
        worst = int(np.argmin(weights_by_hand(now, CONFIG).astype(np.float32)))
        if plain["score"][worst] <= scores[i]:
            changes = {"score": scores[i], "novelty": new[i], "staleness": 3 - i, "level": levels[i]}
            for name, x in changes.items():
                plain[name][worst] = x
    assert verdict.admitted.any()
    for name, x in plain.items():
        np.testing.assert_allclose(getattr(after, name), x, atol=1e-6)


def test_novelty_is_the_mean_distance_to_the_nearest_others():
    b, design = filled(), Square()
    levels = jnp.concatenate([jnp.array([[0.1, 0.2]]), b.level[3:4]])
    known = np.asarray(b.level, np.float64)[:FILLED]
    facts = lambda x: np.column_stack([x[:, 0] > 0, x])  # noqa: E731  # solvable, x, y
    mean, deviation = facts(known).mean(0), facts(known).std(0)
    units = lambda x: (facts(x) - mean) / np.where(deviation > 0, deviation, 1)  # noqa: E731
    found = jax.jit(lambda b, x: novelty(design, b, x))(b, levels)
    for i, others in enumerate((known, np.delete(known, 3, axis=0))):
        distance = np.linalg.norm(units(np.asarray(levels, np.float64)[i : i + 1]) - units(others), axis=1)
        assert float(found[i]) == pytest.approx(np.sort(distance)[:NEIGHBOURS].mean(), abs=1e-5)
    assert not novelty(design, empty(jnp.zeros(2), CONFIG), levels).any(), "nothing is known, nothing is far"


@pytest.mark.slow
def test_diverse_buffers_are_more_diverse():
    """Planted: new levels lie near one point but for one in eight, and scores are all alike."""
    spread = {}
    for share in (0.0, 0.9):
        buffer = BufferConfig(capacity=16, min_fill=0.2, replay_rate=0.7, novelty=share)
        course = Course(signs(tut.ACCEL(buffer, edits=1), seeds=4), 1, 40)
        spread[share] = float(np.asarray(course.states[-1].buffer.level).std(axis=1).mean())
    assert spread[0.9] > 1.1 * spread[0.0]


@pytest.mark.parametrize(("share", "left"), [(0.5, 5), (0.01, 1), (1.0, 9)])
def test_an_extinction_leaves_a_random_share(share, left):
    b, seen = filled(), np.zeros(K)
    some = jax.jit(jax.vmap(lambda key: cull(key, b, share)))(jax.random.split(jax.random.key(0), 400))
    assert (np.asarray(some.filled) == left).all()
    for i in range(400):
        ids = np.asarray(some.id[i])
        assert (ids[left:] == -1).all()
        assert (np.diff(ids[:left]) > 0).all(), "in their order"
        seen[ids[:left]] += 1
        np.testing.assert_array_equal(some.level[i, :left], b.level[ids[:left]])
        np.testing.assert_array_equal(some.score[i], np.append(b.score[ids[:left]], np.zeros(K - left)))
    assert (np.abs(seen[:FILLED] / 400 - left / FILLED) < 0.1).all()
    assert int(some.next_id[0]) == FILLED


@pytest.mark.slow
def test_accel_goes_on_from_the_survivors():
    buffer = BufferConfig(capacity=24, min_fill=0.25, replay_rate=1.0)
    method = tut.ACCEL(buffer, edits=2, extinction_every=8, survivors=0.3)
    course = Course(signs(method, seeds=2), 10)
    fill = [state.buffer.filled.max() for state in course.states]
    assert int(fill[8]) == 24
    assert int(fill[9]) <= 8 + 8, "the survivors and the children of one replay"
    ids = np.asarray(course.states[9].buffer.id)
    parents = np.asarray(course.states[9].buffer.parent)
    for seed in range(2):
        new = ids[seed] >= int(course.states[8].buffer.next_id[seed])
        assert (parents[seed][new] >= 0).all()


@pytest.mark.parametrize("settings", [dict(extinction_every=-1), dict(survivors=0.0), dict(survivors=1.5)])
def test_extinctions_that_cannot_be_are_refused(settings):
    with pytest.raises(ValueError, match="extinction_every"):
        tut.ACCEL(**settings)


@pytest.mark.parametrize("method", [tut.SFL, tut.NCC, tut.DR, tut.ALPGMM])
def test_methods_that_measure_no_novelty_say_so(method):
    with pytest.raises(tut.UserError, match=r"--method.buffer.novelty must be 0: this method measures no novelty"):
        signs(method(BufferConfig(capacity=8, novelty=0.5))).classroom()
