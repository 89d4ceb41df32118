from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.curricula.scores import SCORES, Evidence, Score, check_score, mark, negative_advantage
from tutelage.student.ppo import PPO
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
    return Evidence(r, e, as_(advantage), e.returns > 0, learning=PPO(discount=0.9, gae_lambda=0.7))


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
            "pvl-sum": lambda a, v, g: np.maximum(a, 0).sum(),
            "value-l1": lambda a, v, g: np.abs(a).mean(),
            "signed-value-loss": lambda a, v, g: a.mean(),
            "maxmc": lambda a, v, g: (g - v).mean(),
        }[name]
        each = [one(a, v, g_max) for a, v, _ in played]
        score[p, q] = np.mean(each) if over == "mean" else each[-1]
    return score, best, np.array([[(p, q) in found for q in range(ENTRIES)] for p in range(SLOTS)])


EPISODIC = [name for name, score in SCORES.items() if isinstance(score, Score) and name != "random"]


@pytest.mark.parametrize("over", ["mean", "last", "first"])
@pytest.mark.parametrize("name", EPISODIC)
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


@pytest.mark.parametrize("name", [*EPISODIC, "mna"])
def test_no_finished_episode_is_no_score_rather_than_an_infinite_one(name):
    marks = mark(name, "mean", evidence(done_rate=0.0), None, ENTRIES)
    assert not marks.finished.any()
    assert np.isfinite(marks.score).all()
    assert np.isfinite(marks.best_return).all()


def test_several_episodes_on_one_level_are_really_averaged():
    e = evidence(done_rate=0.5)
    mean, last = (np.asarray(mark("pvl", over, e, None, ENTRIES).score) for over in ("mean", "last"))
    assert not np.allclose(mean, last)


def test_scores_by_chance_are_spread_evenly_and_come_from_the_key_alone():
    scores = [
        np.asarray(mark("random", "last", replace(evidence(seed), chance=jax.random.key(7)), None, ENTRIES).score)
        for seed in range(40)
    ]
    known = np.concatenate([x[x > 0] for x in scores])
    assert abs(known.mean() - 0.5) < 0.05
    assert abs(known.std() - 12**-0.5) < 0.03
    again = mark("random", "last", replace(evidence(0), chance=jax.random.key(7)), None, ENTRIES).score
    other = mark("random", "last", replace(evidence(0), chance=jax.random.key(8)), None, ENTRIES).score
    assert np.array_equal(again, scores[0])
    assert not np.allclose(other, scores[0])


def real_advantages(e: Evidence) -> Evidence:
    """With the advantages that go with its rewards and values, those at the rollout's end bootstrapped."""
    ppo = PPO(discount=0.9, gae_lambda=0.7, bootstrap=True, time_limit="end")
    r = replace(e.rollout, next_value=jnp.asarray(np.random.default_rng(9).normal(size=e.advantage.shape), jnp.float32))
    return replace(e, rollout=r, advantage=ppo.advantages(r)[0], learning=ppo)


def test_mna_is_how_far_estimates_fall_below_the_best_before_them():
    """By n-step returns: S_{t,k} = G_{k+1} − max(V_t, G_1 … G_{k+1}), λ-averaged over k."""
    e = real_advantages(evidence())
    r, gamma, lam = e.rollout, e.learning.discount, e.learning.gae_lambda
    reward, value, after, done = (np.asarray(x, np.float64) for x in (r.reward, r.value, r.next_value, r.done))
    expected = np.zeros_like(value)
    for p in range(SLOTS):
        for t in range(STEPS):
            paid, best, total, k = 0.0, value[t, p], 0.0, 0
            while True:
                j = t + k
                paid += gamma**k * reward[j, p]
                last = bool(done[j, p]) or j == STEPS - 1
                outlook = 0.0 if done[j, p] else (after[j, p] if j == STEPS - 1 else value[j + 1, p])
                estimate = paid + gamma ** (k + 1) * outlook
                best = max(best, estimate)
                total += lam**k * (1.0 if last else 1 - lam) * (estimate - best)
                if last:
                    break
                k += 1
            expected[t, p] = total
    assert np.allclose(negative_advantage(e), expected, atol=1e-5)
    assert (expected < -0.1).any()


def test_mna_counts_every_step_on_a_level_that_was_ever_solved():
    e = real_advantages(evidence())
    marks = mark("mna", "mean", e, None, ENTRIES)
    each, entry = np.asarray(negative_advantage(e)), np.asarray(e.rollout.entry)
    for p in range(SLOTS):
        for q in range(ENTRIES):
            solved = bool(marks.finished[p, q]) and float(marks.best_return[p, q]) > 0
            total = -each[:, p][entry[:, p] == q].sum() / STEPS
            assert float(marks.score[p, q]) == pytest.approx(total if solved else 0.0, abs=1e-5)
    known = jnp.full((SLOTS, ENTRIES), 1.0)
    assert (np.asarray(mark("mna", "mean", e, known, ENTRIES).score) >= np.asarray(marks.score) - 1e-6).all()


@pytest.mark.parametrize(
    ("name", "over", "after", "says"),
    [("mna", "last", "redraw", "must be mean"), ("pace", "mean", "redraw", "after_episode` to repeat")],
)
def test_what_a_score_cannot_be_computed_with_is_refused(name, over, after, says):
    with pytest.raises(ValueError, match=says):
        check_score(name, over, after, PPO())
    check_score(name, "mean", "repeat", PPO())
