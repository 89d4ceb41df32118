"""POET: its rounds on planted scores, its attempts beside a plain loop, and what comes of a short run."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, Signs, signs
from toys import tiny_maze
from tutelage.curricula import attempts as attempting
from tutelage.curricula import poet
from tutelage.curricula.attempts import Attempts, Results, attempt_all
from tutelage.curricula.poet import best_of, novelty
from tutelage.env import Discrete
from tutelage.runs import checkpoint
from tutelage.runs.run import initial_state
from tutelage.student import es as strategies
from tutelage.student.controller import Controller
from tutelage.student.nets import Flatten

N, C, P = 3, 4, 8
METHOD = tut.POET(
    capacity=N,
    reproduce_every=2,
    transfer_every=2,
    parent_score=0.4,
    children=C,
    lowest_score=0.2,
    highest_score=2.0,
    neighbours=2,
)
LEARNER = dict(
    student=tut.StudentConfig(memory=False, hidden=6, separate=True, critic="none"),
    ppo=None,
    es=tut.ES(learning_rate=0.1, sigma=0.3),
    slots=P,
)


def colony(method=METHOD, **changes) -> tut.Config:
    return signs(method, **(LEARNER | changes))


@pytest.fixture(scope="module")
def course():
    return Course(colony(seeds=2), 3, 6)


@pytest.fixture(scope="module")
def planted(course):
    """The first seed with all places taken by students that can be told apart, on levels of three kinds."""
    s = jax.tree.map(lambda x: x[0], initial_state(course.config))
    agents = jnp.arange(N)[:, None] + jnp.zeros((N, METHOD.agents(s).shape[1]))
    levels = jnp.array([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]])
    buffer = replace(s.buffer, level=levels, id=jnp.array([7, 5, 6]), filled=jnp.int32(N), next_id=jnp.int32(8))
    moments = jax.tree.map(lambda x: x + 1, s.learner.optimiser)
    s = replace(s, buffer=buffer, learner=replace(s.learner, optimiser=moments), updates=jnp.int32(9))
    return METHOD._with(s, jnp.ones(N, bool), agents, moments)


def results_of(first_row=None, direct=None) -> Results:
    """Results of a round: the scores of students as they are."""
    returns = jnp.zeros((N, N, P + 1))
    if first_row is not None:
        returns = returns.at[0, :, 0].set(jnp.array(first_row))
    if direct is not None:
        returns = returns.at[:, :, 0].set(jnp.array(direct))
    return Results(returns, jnp.zeros(returns.shape, jnp.int32))


def agents_of(s) -> list[float]:
    return [float(x) for x in METHOD.agents(s)[:, 0]]


KEY = jax.random.key(0)

# Attempts


@pytest.mark.parametrize("lanes", [5, 100])
def test_attempts_come_to_what_a_plain_loop_comes_to(lanes, monkeypatch):
    """More of them than lanes, some not wanted, of two seeds at once; and into fewer lanes at the end."""
    monkeypatch.setattr(attempting, "lanes_for", lambda usual, most: (lanes, 3))
    monkeypatch.setattr(attempting, "BETWEEN", 3)
    build = lambda key: Controller(Flatten(2), 4, Discrete(4), key=key)  # noqa: E731
    like = build(KEY)
    sources = jax.random.normal(KEY, (2, 3, strategies.flat(like).size))
    levels = jax.random.uniform(jax.random.key(1), (2, 4, 2), minval=-1.0)
    number = jnp.arange(17)
    one = Attempts(number % 3, number // 2, jnp.where(number % 2 == 0, 0.5, -0.5), number % 4, number % 5 != 2)
    both = jax.tree.map(lambda x: jnp.stack([x, x[::-1]]), one)
    keys = jax.random.split(jax.random.key(2), 2)
    unflatten = strategies.unflattener(like)
    play = jax.vmap(lambda key, *given: attempt_all(key, Signs(), unflatten, *given, usual=10))
    results = jax.jit(play)(keys, sources, levels, both)
    for s in range(2):
        for j in range(17):
            source, noise, scale, level, wanted = (np.asarray(x)[s, j] for x in both)
            if not wanted:
                assert results.length[s, j] == results.returns[s, j] == 0
                continue
            epsilon = strategies.perturbation(keys[s], jnp.int32(noise), sources.shape[-1])
            student = unflatten(sources[s, source] + scale * epsilon)
            x, y = np.asarray(levels[s, level])
            action = int(student.evaluate(jnp.array([[[x, y]]]), jnp.ones((1, 1), bool))[0].mode()[0, 0])
            assert float(results.returns[s, j]) == (1.0 if x > 0 and action == (3 if y > 0 else 0) else 0.0)
            assert int(results.length[s, j]) == 2


# Transfer


def test_on_each_level_the_best_takes_over_and_whoever_is_there_stays_on_a_tie():
    direct = jnp.array([[5.0, 9.0, 1.0], [3.0, 7.0, 7.0], [0.0, 0.0, 2.0]])
    proposed = jnp.array([[99.0, 8.0, 9.0], [7.0, 99.0, 1.0], [1.0, 3.0, 99.0]])
    is_proposal, who, score = best_of(direct, proposed, jnp.ones(3, bool))
    assert is_proposal.tolist() == [False, False, True]
    assert who.tolist() == [1, 1, 1], "its own proposals, here 99, do not count"
    assert score.tolist() == [9.0, 7.0, 3.0]
    is_proposal, who, _ = best_of(direct, proposed, jnp.array([True, False, True]))
    assert (bool(is_proposal[0]), int(who[0])) == (True, 2), "places without a pair are out of it"


def test_who_takes_over_begins_with_fresh_moments(course, planted):
    direct = jnp.array([[1.0, 5.0, 0.0], [0.0, 9.0, 9.0], [0.0, 0.0, 2.0]])
    proposals = 10 + jnp.arange(N * N).reshape(N, N, 1) + jnp.zeros_like(planted.own.proposals)
    s = replace(planted, own=replace(planted.own, direct=direct, proposals=proposals))
    s = METHOD.judge(course.room, s, KEY, results_of(direct=[[0, 4.0, 0], [0, 0, 9.0], [3.0, 3.0, 0]]))
    assert agents_of(s) == [1.0, 1.0, 16.0], "the student of level 1 as it is; its own; a proposal of student 0"
    assert s.buffer.score.tolist() == [5.0, 9.0, 3.0]
    assert s.learner.optimiser.count.tolist() == [0, 1, 0]
    assert s.learner.optimiser.mean[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert int(s.own.round) == poet.STEP


def test_proposals_are_made_with_the_moments_of_the_student_there(course, planted):
    s = planted
    moments = replace(s.learner.optimiser, mean=jnp.arange(N)[:, None] + jnp.zeros_like(s.learner.optimiser.mean))
    s = replace(s, learner=replace(s.learner, optimiser=moments))
    returns = jax.random.normal(KEY, (N, N, P + 1))
    after = METHOD.propose(course.room, s, KEY, Results(returns, jnp.zeros(returns.shape, jnp.int32)))
    es, agents = course.config.es, METHOD.agents(s)
    for target, source in ((0, 1), (2, 0)):
        there = jax.tree.map(lambda x, t=target: x[t], moments)
        first = (target * N + source) * (P // 2)
        sigma = es.sigma_after(there.count)
        g = strategies.estimate(KEY, returns[target, source, 1:], sigma, agents.shape[1], first)
        want, _ = es.ascend(agents[source], g, there)
        np.testing.assert_allclose(after.own.proposals[target, source], want, atol=1e-5)
    np.testing.assert_array_equal(after.own.direct, returns[..., 0])
    assert int(after.own.round) == poet.JUDGE


# Reproduction


def test_parents_are_levels_on_which_students_are_good_enough(course, planted):
    s = METHOD.reproduce(course.room, planted, KEY, results_of([0.1, 0.4, 0.0]))
    assert s.own.parents.tolist() == [1] * C
    assert int(s.own.round) == poet.SCREEN
    assert (jnp.abs(s.own.litter - 0.5) <= 0.2 + 1e-6).all()
    none = METHOD.reproduce(course.room, planted, KEY, results_of([0.1, 0.39, 0.0]))
    assert int(none.own.round) == poet.STEP


def test_novelty_is_the_mean_distance_to_the_nearest():
    random = np.random.default_rng(0)
    kinds, known = random.normal(size=(6, 5)).astype(np.float32), random.normal(size=(9, 5)).astype(np.float32)
    for count, k in ((9, 5), (3, 5), (1, 2)):
        want = [np.sort(np.linalg.norm(known[:count] - kind, axis=1))[:k].mean() for kind in kinds]
        np.testing.assert_allclose(
            novelty(jnp.asarray(kinds), jnp.asarray(known), jnp.int32(count), k), want, rtol=1e-5
        )


def test_children_must_meet_the_minimal_criterion_and_be_of_a_new_kind(course, planted):
    litter = jnp.array([[0.3, 0.3], [0.7, 0.1], [0.5, 0.5], [0.9, 0.1]])
    known = planted.own.known.at[:2].set(jnp.array([[0.7, 0.0], [0.3, 0.0]]))
    s = replace(planted, own=replace(planted.own, litter=litter, known=known, admitted=jnp.int32(2)))
    returns = jnp.zeros((N, N, P + 1)).at[0, 0, :C].set(jnp.array([0.2, 2.0, 1.0, 2.1]))
    s = METHOD.screen(course.room, s, KEY, Results(returns, jnp.zeros(returns.shape, jnp.int32)))
    assert np.isfinite(s.own.rank).tolist() == [True, True, False, False], "at both ends; known; too easy"
    assert float(s.own.rank[0]) == pytest.approx((0.3 + 0.5) / 2)
    assert int(s.own.round) == poet.TRY


def trying(planted, direct):
    """Children 2 and 0 may be tried, in this order; scores of the students as they are on child 2."""
    litter = jnp.array([[0.3, 0.3], [0.7, 0.1], [0.1, 0.9], [0.9, 0.1]])
    own = replace(
        planted.own,
        litter=litter,
        parents=jnp.array([0, 1, 2, 0]),
        rank=jnp.array([1.0, -jnp.inf, 2.0, -jnp.inf]),
        direct=planted.own.direct.at[0].set(jnp.array(direct)),
        proposals=planted.own.proposals.at[0].set(20 + jnp.arange(N)[:, None]),
    )
    return replace(planted, own=own)


def test_a_child_takes_the_place_of_the_oldest_pair(course, planted):
    s = METHOD.admit(course.room, trying(planted, [0.1, 0.5, 0.4]), KEY, results_of([0.3, 0.6, 0.2]))
    assert s.buffer.id.tolist() == [7, 8, 6], "5 was the oldest"
    assert np.allclose(s.buffer.level[1], [0.1, 0.9])
    assert (int(s.buffer.parent[1]), int(s.buffer.generation[1]), int(s.buffer.birth[1])) == (6, 1, 9)
    assert float(s.buffer.score[1]) == pytest.approx(0.6)
    assert agents_of(s) == [0.0, 21.0, 2.0], "the proposal of student 1"
    assert s.learner.optimiser.count.tolist() == [1, 0, 1]
    assert int(s.own.round) == poet.STEP, "one child at most"
    assert int(s.own.admitted) == int(planted.own.admitted) + 1
    assert np.allclose(s.own.known[int(planted.own.admitted)], [0.1, 0.9])


def test_a_child_that_is_too_easy_for_the_best_makes_room_for_the_next(course, planted):
    s = METHOD.admit(course.room, trying(planted, [0.1, 0.5, 2.1]), KEY, results_of([0.3, 0.6, 0.2]))
    assert s.buffer.id.tolist() == [7, 5, 6]
    assert np.isfinite(s.own.rank).tolist() == [True, False, False, False]
    assert int(s.own.round) == poet.TRY
    s = METHOD.admit(course.room, s, KEY, results_of([0.0, 0.0, 0.0]))
    assert int(s.own.round) == poet.STEP


def test_as_released_students_step_on_a_child_without_moments(course, planted):
    returns = jax.random.normal(KEY, (N, N, P + 1))
    results = Results(returns, jnp.zeros(returns.shape, jnp.int32))
    es, agents = course.config.es, METHOD.agents(planted)
    for kind in ("sgd", "adam"):
        method = replace(METHOD, child_step=kind)
        after = method.propose_for_child(course.room, planted, KEY, results)
        g = strategies.estimate(KEY, returns[0, 1, 1:], jnp.float32(es.sigma), agents.shape[1], P // 2)
        moved = np.asarray(after.own.proposals[0, 1] - agents[1])
        if kind == "sgd":
            np.testing.assert_allclose(moved, es.learning_rate * (g - es.weight_decay * agents[1]), atol=1e-5)
        else:
            np.testing.assert_allclose(np.abs(moved), es.learning_rate, rtol=1e-3)
        assert int(after.own.round) == poet.ADMIT


# Whole runs


def test_pairs_multiply_and_the_oldest_go(course):
    last = course.states[-1]
    assert last.updates.tolist() == [18, 18]
    assert (last.cycles > 18).all(), "there are rounds without a student update"
    for s in range(2):
        levels = course.admitted(s)
        assert [level["id"] for level in levels] == list(range(len(levels)))
        assert len(levels) == int(last.own.admitted[s]) > N
        assert sorted(last.buffer.id[s].tolist()) == [len(levels) - N + k for k in range(N)], "the newest are there"
        generation = {-1: -1}
        for level in levels:
            generation[level["id"]] = level["generation"]
            assert level["generation"] == generation[level["parent"]] + 1
            assert level["birth"] % METHOD.reproduce_every == 0


def test_students_learn_and_are_replaced(course):
    assert course.mean(1, "explore/solved") < course.mean(-1, "explore/solved")
    assert 0 < course.mean(-1, "poet/attempted") <= N
    assert 0 <= course.mean(-1, "poet/replaced") <= 1
    assert course.mean(-1, "poet/solved") > 0


def test_env_steps_are_those_that_were_walked(course):
    """Two an episode; what is no whole rollout yet is kept for later."""
    for s in range(2):
        walked = int(course.states[-1].rollouts[s]) * P * 8 + int(course.states[-1].own.left_over[s])
        steps = sum(float(state.log.means["explore/length"].total[s]) for state in course.states[1:])
        assert walked >= steps
        assert walked % 2 == 0


def test_a_new_pair_has_the_score_it_was_admitted_with():
    state = initial_state(colony())
    assert state.buffer.filled.tolist() == [1]
    assert state.buffer.id[0].tolist() == [0, -1, -1]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: tiny_maze(METHOD, ppo=None, es=tut.ES()).classroom(),
            "poet cannot run on maze: it needs a design space",
        ),
        (lambda: signs(METHOD).classroom(), "poet teaches students that learn by `es`, not by `ppo`"),
        (lambda: colony(slots=2).classroom(), "--method.children must be at most --slots, 2, not 4"),
        (lambda: colony(es=tut.ES(levels=2)).classroom(), "--es.levels is for a single student"),
        (lambda: colony(replace(METHOD, capacity=20_000)).classroom(), "must be below 2³¹"),
    ],
)
def test_what_does_not_fit_is_refused(make, says):
    with pytest.raises(tut.UserError, match=says):
        make()


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="must be at least 1"):
        tut.POET(capacity=0)
    with pytest.raises(ValueError, match="must not be above"):
        tut.POET(lowest_score=400.0)


def test_a_population_is_evaluated_by_its_specialists(course):
    """On each level plays the student that does best there; places without a student are out of it."""
    from tutelage.env import TestLevel
    from tutelage.runs.evaluate import evaluate
    from tutelage.student.controller import Population

    actions, like = Discrete(4), Controller(Flatten(2), 4, Discrete(4), key=KEY)

    def always(action):
        last = like.layers[-1]
        numbers = 0 * last.weight, 9 * jax.nn.one_hot(action, actions.n)
        return eqx.tree_at(lambda c: (c.layers[-1].weight, c.layers[-1].bias), like, numbers)

    def stacked(*students):
        return jax.tree.map(lambda *x: jnp.stack(x), *students)

    both = stacked(
        Population(stacked(always(1), always(3), always(0)), jnp.int32(3)),
        Population(stacked(always(1), always(3), always(0)), jnp.int32(2)),
    )
    up, down = (
        TestLevel(name, Signs(), lambda key, y=y: jnp.array([0.5, y])) for name, y in (("up", 0.5), ("down", -0.5))
    )
    solved = {(r.level, r.seed): r.solved_rate for r in evaluate(both, [4, 5], (up, down), 3)}
    assert solved == {("up", 4): 1, ("down", 4): 1, ("up", 5): 1, ("down", 5): 0}


@pytest.mark.slow
def test_on_real_terrain_a_run_resumes_with_the_same_bytes(tmp_path):
    """Walkers that fall within a second, through steps, transfers and reproductions."""
    plain = tut.preset("bipedal-poet", "poet", slots=8, steps=50, updates=6, seeds=2, checkpoint_every=3, log_every=3)
    method = tut.POET(
        capacity=3,
        reproduce_every=2,
        transfer_every=2,
        parent_score=-1e3,
        children=4,
        lowest_score=-1e3,
        highest_score=1e3,
    )
    config = replace(plain, method=method, env=replace(plain.env, max_steps=50), eval_every=0, archive_every=0)
    run = tut.train(config, tmp_path / "run")
    assert (np.asarray(run.state().buffer.filled) > 1).all(), "children were admitted"
    newest = checkpoint.path_of(run.path / "checkpoints", 6)
    good, rows, levels = newest.read_bytes(), run.metrics(), run.levels()
    newest.write_bytes(good[:1000])
    again = tut.resume(run.path, warn=lambda text: None)
    assert newest.read_bytes() == good
    for before, after in zip(rows, again.metrics(), strict=True):
        assert before | {"steps_per_second": 0} == after | {"steps_per_second": 0}
    for field in ("seed", "id", "parent", "generation", "birth", "score"):
        assert np.array_equal(getattr(levels, field), getattr(again.levels(), field))
