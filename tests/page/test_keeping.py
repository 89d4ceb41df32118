"""The buffer of a page keeps what the library's buffer keeps, offered one level after another."""

import jax
import jax.numpy as jnp
import numpy as np

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import BufferConfig, Candidates
from tutelage.page import keeping
from tutelage.page.keeping import Candidate, Renewal

CONFIG = BufferConfig(capacity=4, staleness=0.0, temperature=0.3)  # in a batch, the first are the stalest
LEVEL = {"walls": jnp.zeros(3, bool)}


def levels(n):
    return {"walls": (jnp.arange(n)[:, None] >> jnp.arange(3) & 1).astype(bool)}


def candidate(n, score):
    level = jax.tree.map(lambda x: x[n], levels(8))
    return Candidate(level, jnp.int32(-1), jnp.int32(n), jnp.int32(n), jnp.float32(score), jnp.float32(score))


def test_one_after_another_is_as_all_at_once():
    """Eight levels for four slots: the same levels, scores and ids remain, and the same were admitted."""
    scores = [0.1, 0.4, 0.2, 0.3, 0.05, 0.6, 0.25, 0.5]
    insert = jax.jit(lambda buffer, candidate: keeping.insert(CONFIG, buffer, candidate))
    buffer, told = buffers.empty(LEVEL, CONFIG), []
    for n, score in enumerate(scores):
        buffer, inserted = insert(buffer, candidate(n, score))
        told.append((bool(inserted.admitted), int(inserted.id)))
    facts = jax.tree.map(lambda *x: jnp.stack(x), *(candidate(n, score) for n, score in enumerate(scores)))
    many = Candidates(**facts._asdict(), id=jnp.full(8, -1, jnp.int32), bid=facts.score, finished=jnp.ones(8, bool))
    together, inserted = buffers.insert(buffers.empty(LEVEL, CONFIG), CONFIG, many)
    for name in ("level", "id", "generation", "birth", "score", "best_return"):
        jax.tree.map(np.testing.assert_array_equal, getattr(buffer, name), getattr(together, name))
    assert told == list(zip(inserted.admitted.tolist(), inserted.id.tolist(), strict=True))


def test_what_is_picked_was_renewed():
    """A renewed level has its new score, the larger of its returns, and is the one that greed picks."""
    buffer = buffers.empty(LEVEL, CONFIG)
    for n in range(3):
        buffer, _ = keeping.insert(CONFIG, buffer, candidate(n, 0.1))
    buffer = keeping.renew(buffer, Renewal(jnp.int32(1), jnp.float32(9.0), jnp.float32(0.05)))
    np.testing.assert_allclose(buffer.score[:3], [0.1, 9.0, 0.1])
    np.testing.assert_allclose(buffer.best_return[:3], [0.1, 0.1, 0.1])
    greedy = BufferConfig(capacity=4, staleness=0.0, temperature=0.01)
    buffer, slot = keeping.pick(greedy, jax.random.key(0), buffer)
    assert (int(slot), buffer.staleness[:3].tolist()) == (1, [1, 0, 1])


def test_a_page_has_the_rules_of_the_run():
    assert keeping.small(CONFIG) == BufferConfig(capacity=keeping.CAPACITY, staleness=0.0, temperature=0.3)
