"""PAIRED: regret as NumPy has it, and a teacher that finds it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taught
import tutelage as tut
from tutelage.student.distributions import divergence
from tutelage.student.rollout import Episodes

PAIRED = tut.PAIRED(taught.BUFFER, teacher=taught.SEEKER)
RISE = 0.08


def by_hand(slots: list[list[float]], steps: int = 6) -> Episodes:
    """Episodes of the given returns, ended one a step; figures of steps where none ended mean nothing."""
    ended = np.zeros((steps, len(slots)), bool)
    returns = np.full((steps, len(slots)), 77.0, np.float32)
    for p, slot in enumerate(slots):
        for t, value in enumerate(slot):
            ended[t, p], returns[t, p] = True, value
    return Episodes(jnp.asarray(ended), jnp.asarray(returns), jnp.ones(ended.shape))


def reference(protagonist: list[float], antagonist: list[float], flexible: bool) -> float:
    def mean(x):
        return float(np.mean(x)) if x else 0.0

    def best(x):
        return max(x, default=0.0)

    a, b = antagonist, protagonist
    if flexible and best(protagonist) >= best(antagonist):
        a, b = protagonist, antagonist
    return max(best(a) - mean(b), 0.0)


returns = st.lists(st.sampled_from([-1.0, -0.25, 0.0, 0.5, 0.75, 1.0]), max_size=6)


@pytest.mark.parametrize("flexible", [False, True])
@settings(deadline=None, max_examples=60)
@given(slots=st.lists(st.tuples(returns, returns), min_size=3, max_size=3))
def test_regret_is_best_minus_mean_clipped_at_zero(flexible, slots):
    method = replace(PAIRED, flexible=flexible)
    found = method.regret(by_hand([p for p, _ in slots]), by_hand([a for _, a in slots]))
    assert np.allclose(found, [reference(p, a, flexible) for p, a in slots], atol=1e-6)


def test_regret_by_example():
    protagonist, antagonist = by_hand([[0.5, 0.0], [1.0, 0.8], []]), by_hand([[0.9, 0.1], [0.2], [0.6]])
    assert np.allclose(PAIRED.regret(protagonist, antagonist), [0.65, 0.0, 0.6])
    assert np.allclose(replace(PAIRED, flexible=True).regret(protagonist, antagonist), [0.65, 0.8, 0.6])


@pytest.fixture(scope="module")
def cycled():
    config = taught.square(PAIRED)
    before = taught.one_seed(config)
    return before, jax.jit(lambda s: PAIRED.cycle(config.classroom(), s))(before)


def test_all_three_learn_in_a_cycle_and_only_the_protagonist_counts(cycled):
    before, after = cycled
    assert not taught.same(before.learner, after.learner)
    assert not taught.same(before.own.antagonist, after.own.antagonist)
    assert not taught.same(before.own.teacher, after.own.teacher)
    assert (int(after.updates), int(after.cycles), int(after.rollouts)) == (1, 1, 1)
    assert int(after.buffer.filled) > 0, "levels are kept to be looked at"


def test_the_two_students_start_different(cycled):
    before, _ = cycled
    assert not taught.same(before.learner.student, before.own.antagonist.student)


def test_the_teacher_learns_to_find_regret():
    after, before = taught.regret_found(taught.square(PAIRED), 30)
    assert after > before + RISE, (after, before)


# Several antagonists, and students that imitate one another


def test_of_several_antagonists_the_best_counts():
    method = replace(PAIRED, antagonists=2)
    protagonist, first, second = by_hand([[0.5], [0.9], []]), by_hand([[0.2], [1.0], []]), by_hand([[0.7, 0.1], [], []])
    both = jax.tree.map(lambda *x: jnp.stack(x), first, second)
    assert np.allclose(method.regret(protagonist, both), [0.2, 0.1, 0.0])


def test_all_antagonists_learn_each_for_itself():
    method = replace(PAIRED, antagonists=3)
    config = taught.square(method, slots=8)
    before = taught.one_seed(config)
    after = jax.jit(lambda s: method.cycle(config.classroom(), s))(before)
    were, are = (s.own.antagonist.student.actor.output.weight for s in (before, after))
    assert were.shape[0] == 3
    for i in range(3):
        assert not jnp.array_equal(were[i], are[i])
        assert not jnp.array_equal(are[i], are[(i + 1) % 3])
    assert (int(after.updates), int(after.cycles), int(after.rollouts)) == (1, 1, 1)


@pytest.mark.slow
def test_students_that_imitate_one_another_stay_alike():
    """From the same start; mean divergence on random levels after as many updates."""
    levels = jax.random.uniform(jax.random.key(0), (1, 200, 2), minval=-1)
    apart = {}
    for coef in (0.0, 3.0):
        ppo = tut.PPO(learning_rate=1e-2, epochs=2, imitation_coef=coef)
        s = taught.after_updates(taught.square(PAIRED, ppo=ppo, slots=8), 20)
        s = jax.tree.map(lambda x: x[0], s.with_log(None))
        own, other = (x.student.evaluate(levels, jnp.ones((1, 200), bool))[0] for x in (s.learner, s.own.antagonist))
        apart[coef] = float(divergence(own, other).mean())
    assert apart[3.0] < 0.5 * apart[0.0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (dict(method=tut.DR()), "--ppo.imitation-coef must be 0: this method has no second student to imitate"),
        (dict(method=replace(PAIRED, antagonists=2)), "--ppo.imitation-coef is for two students"),
    ],
)
def test_imitation_is_refused_where_there_are_not_two(changes, says):
    with pytest.raises(tut.UserError, match=says):
        taught.square(**changes, ppo=tut.PPO(imitation_coef=0.1)).classroom()


@pytest.mark.parametrize("settings", [dict(antagonists=0), dict(antagonists=2, flexible=True)])
def test_casts_that_cannot_be_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        tut.PAIRED(**settings)
