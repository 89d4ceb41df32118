import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.curricula.scores import SCORES, Evidence, mark
from tutelage.student.rollout import Rollout, episodes

STEPS, SLOTS, ENTRIES = 30, 4, 3


def evidence(seed: int = 0, done_rate: float = 0.2) -> Evidence:
    rng = np.random.default_rng(seed)
    done = rng.random((STEPS, SLOTS)) < done_rate
    done[:, 3] = False  # one slot never finishes an episode
    start = np.concatenate([np.ones((1, SLOTS), bool), done[:-1]])
    entry = (np.cumsum(start, axis=0) - 1) % ENTRIES
    value, reward, advantage = rng.normal(size=(3, STEPS, SLOTS)).astype(np.float32)
    as_ = lambda x, t=jnp.float32: jnp.asarray(x, t)  # noqa: E731
    r = Rollout(
        obs=None,
        action=None,
        log_prob=as_(value),
        value=as_(value),
        next_value=None,
        reward=as_(reward),
        terminated=jnp.asarray(done),
        truncated=jnp.zeros((STEPS, SLOTS), bool),
        start=jnp.asarray(start),
        entry=as_(entry, jnp.int32),
    )
    e = episodes(r)
    return Evidence(r, e, as_(advantage), e.returns > 0)


def by_hand(name: str, over: str, e: Evidence, known: np.ndarray | None):
    """Cuts the rollout into episodes and scores them one by one."""
    value, reward, advantage = (np.asarray(x, np.float64) for x in (e.rollout.value, e.rollout.reward, e.advantage))
    done, entry = np.asarray(e.rollout.done), np.asarray(e.rollout.entry)
    found: dict[tuple[int, int], list] = {}
    for p in range(SLOTS):
        first = 0
        for t in np.flatnonzero(done[:, p]):
            span = slice(first, t + 1)
            found.setdefault((p, entry[t, p]), []).append((advantage[span, p], value[span, p], reward[span, p].sum()))
            first = t + 1
    score, best = np.zeros((SLOTS, ENTRIES)), np.zeros((SLOTS, ENTRIES))
    for (p, q), every in found.items():
        played = every[:1] if over == "first" else every
        g_max = max([r for _, _, r in played] + ([known[p, q]] if known is not None else []))
        best[p, q] = g_max
        if name == "learnability":
            solved = [float(r > 0) for _, _, r in played]
            share = np.mean(solved) if over == "mean" else solved[-1]
            score[p, q] = share * (1 - share)
            continue
        one = {
            "pvl": lambda a, v, g: np.maximum(a, 0).mean(),
            "value-l1": lambda a, v, g: np.abs(a).mean(),
            "signed-value-loss": lambda a, v, g: a.mean(),
            "maxmc": lambda a, v, g: (g - v).mean(),
        }[name]
        each = [one(a, v, g_max) for a, v, _ in played]
        score[p, q] = np.mean(each) if over == "mean" else each[-1]
    return score, best, np.array([[(p, q) in found for q in range(ENTRIES)] for p in range(SLOTS)])


@pytest.mark.parametrize("over", ["mean", "last", "first"])
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("known", [None, 0.7])
def test_scores_equal_a_plain_computation(name, over, known):
    e = evidence()
    before = None if known is None else np.full((SLOTS, ENTRIES), known, np.float32)
    marks = mark(name, over, e, None if before is None else jnp.asarray(before), ENTRIES)
    score, best, finished = by_hand(name, over, e, before)
    assert finished.any()
    assert not finished.all()
    assert np.array_equal(marks.finished, finished)
    assert np.allclose(marks.score, score, atol=1e-5)
    assert np.allclose(marks.best_return, best, atol=1e-5)


@pytest.mark.parametrize("name", SCORES)
def test_no_finished_episode_is_no_score_rather_than_an_infinite_one(name):
    marks = mark(name, "mean", evidence(done_rate=0.0), None, ENTRIES)
    assert not marks.finished.any()
    assert np.isfinite(marks.score).all()
    assert np.isfinite(marks.best_return).all()


def test_several_episodes_on_one_level_are_really_averaged():
    e = evidence(done_rate=0.5)
    mean, last = (np.asarray(mark("pvl", over, e, None, ENTRIES).score) for over in ("mean", "last"))
    assert not np.allclose(mean, last)
