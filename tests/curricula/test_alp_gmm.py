"""ALP-GMM: its learning progress against a plain loop, its rules of sampling, and what it finds."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, signs
from toys import tiny_maze
from tutelage.curricula import mixture as mixtures
from tutelage.curricula import progress
from tutelage.curricula.alp_gmm import SIDE, Knowledge, finished
from tutelage.curricula.mixture import Mixture
from tutelage.curricula.progress import History

METHOD = tut.ALPGMM(
    tut.BufferConfig(capacity=64), fit_rate=60, most=5, lowest_return=0.0, highest_return=1.0, history=4096
)
UPDATES, STRIDE = 60, 6


@pytest.fixture(scope="module")
def course():
    return Course(signs(METHOD, seeds=2), UPDATES // STRIDE, STRIDE)


def alp_by_hand(tasks, rewards):
    """One task after another, each compared with all before it."""
    alps = []
    for i, (task, reward) in enumerate(zip(tasks, rewards, strict=True)):
        distance = ((tasks[:i] - task) ** 2).sum(axis=1)
        alps.append(abs(reward - rewards[distance.argmin()]) if i > progress.FEW else np.float32(0))
    return np.array(alps)


def remembered(tasks, rewards, sizes, capacity, room=40):
    """Told in portions, each padded to `room` places."""
    history, alps = History.new(capacity, tasks.shape[1]), []
    tell = jax.jit(progress.remember)
    start = 0
    for size in sizes:
        fill = room - size
        part = np.pad(tasks[start : start + size], ((0, fill), (0, 0)), constant_values=0.5)
        reward = np.pad(rewards[start : start + size], (0, fill), constant_values=7.0)
        history, alp = tell(history, part, reward, np.arange(room) < size)
        assert (alp[size:] == 0).all()
        alps.append(np.asarray(alp[:size]))
        start += size
    return history, np.concatenate(alps)


@pytest.mark.parametrize("blocks", [(64, 16_384), (7, 11)])
def test_alp_equals_a_plain_nearest_neighbour_search(monkeypatch, blocks):
    monkeypatch.setattr(progress, "QUERIES", blocks[0])
    monkeypatch.setattr(progress, "BLOCK", blocks[1])
    random = np.random.default_rng(0)
    sizes = [3, 0, 2, 1, 40, 17, 1, 36]
    tasks = random.uniform(0, SIDE, (sum(sizes), 3)).astype(np.float32)
    rewards = random.uniform(size=sum(sizes)).astype(np.float32)
    history, alps = remembered(tasks, rewards, sizes, capacity=128)
    assert np.array_equal(alps, alp_by_hand(tasks, rewards))
    assert (alps[:6] == 0).all()
    assert (alps[6:] > 0).all()
    assert np.array_equal(history.latest(50), np.concatenate([tasks, alps[:, None]], axis=1)[-50:])


def test_the_oldest_tasks_are_forgotten_when_the_history_is_full():
    random = np.random.default_rng(1)
    tasks = random.uniform(0, SIDE, (90, 2)).astype(np.float32)
    rewards = random.uniform(size=90).astype(np.float32)
    history, alps = remembered(tasks, rewards, [1] * 90, capacity=20, room=1)
    for i in range(20, 90):
        known = np.arange(i - 19, i)  # its own place is taken by the task that is told
        near = known[((tasks[known] - tasks[i]) ** 2).sum(1).argmin()]
        assert alps[i] == abs(rewards[i] - rewards[near])
    assert np.array_equal(history.latest(20)[:, :2], tasks[-20:])
    assert int(history.count) == 90


def test_finished_episodes_are_told_in_order_of_time_with_their_tasks(course):
    state = jax.tree.map(lambda x: x[0], course.states[2].with_log(None))
    room = course.room
    tasks = METHOD.propose(jax.random.key(0), state.own, (8, 5))
    queue = jnp.arange(40, dtype=jnp.int32).reshape(8, 5)
    levels = tasks.reshape(40, 2) - 1.0

    @jax.jit
    def play(s):
        _, trial = METHOD.play_queue(room, s, levels, queue, None)
        return trial, finished(tasks, trial)

    trial, (ended, (told, returns)) = play(state)
    assert ended.tolist() == [True] * 32 + [False] * 8, "4 episodes of 2 steps in each of 8 slots"
    obs, ends = np.asarray(trial.rollout.obs), np.asarray(trial.episodes.ended)
    time, slot = np.nonzero(ends)
    assert np.array_equal(np.asarray(told)[:32] - 1.0, obs[time, slot])
    assert np.array_equal(np.asarray(returns)[:32], np.asarray(trial.episodes.returns)[time, slot])


def knowledge(means, weights, spread=1e-3, n=2):
    k = len(weights)
    factors = jnp.broadcast_to(spread * jnp.eye(n + 1), (k, n + 1, n + 1))
    return Knowledge(History.new(64, n), Mixture(jnp.asarray(weights), jnp.asarray(means), factors))


def proposed(method, teacher, n=4000):
    return np.asarray(jax.jit(lambda key: method.propose(key, teacher, (n,)))(jax.random.key(0)))


def test_components_are_picked_in_proportion_to_their_mean_alp():
    teacher = knowledge([[0.5, 0.5, 0.1], [1.5, 1.5, 0.3], [0.5, 1.5, 0.0], [1.0, 1.0, 9.0]], [0.7, 0.1, 0.2, 0.0])
    tasks = proposed(replace(METHOD, random_rate=0.0), teacher)
    near = [(np.abs(tasks - centre).max(axis=1) < 0.05).mean() for centre in ([0.5, 0.5], [1.5, 1.5], [0.5, 1.5])]
    assert np.allclose(near, [0.25, 0.75, 0.0], atol=0.03)


def test_a_share_of_tasks_is_uniform():
    teacher = knowledge([[0.5, 0.5, 0.1]], [1.0])
    tasks = proposed(replace(METHOD, random_rate=0.2), teacher)
    astray = np.abs(tasks - 0.5).max(axis=1) > 0.05
    assert abs(astray.mean() - 0.2) < 0.03
    assert np.allclose(tasks[astray].mean(axis=0), SIDE / 2, atol=0.08)


def test_all_tasks_are_uniform_before_the_first_fit_and_without_any_progress():
    for teacher in (
        Knowledge(History.new(64, 2), mixtures.nothing(3, 3)),
        knowledge([[0.5, 0.5, 0.0], [1.5, 1.5, 0.0]], [0.5, 0.5]),
    ):
        tasks = proposed(replace(METHOD, random_rate=0.0), teacher)
        assert np.isfinite(tasks).all()
        assert np.allclose(tasks.mean(axis=0), 1.0, atol=0.05)
        assert np.allclose(tasks.var(axis=0), SIDE**2 / 12, atol=0.03)


def test_tasks_beyond_the_box_are_moved_to_its_border():
    tasks = proposed(replace(METHOD, random_rate=0.0), knowledge([[0.0, 2.0, 0.1]], [1.0], spread=0.3))
    assert tasks.min() == 0.0
    assert tasks.max() == SIDE
    assert abs((tasks[:, 0] == 0).mean() - 0.5) < 0.05


def test_returns_are_scaled_to_0_and_1(course):
    method = replace(METHOD, lowest_return=0.25, highest_return=0.75)
    state = jax.tree.map(lambda x: x[0], course.states[0].with_log(None))
    after = jax.jit(lambda s: method.cycle(course.room, s))(state)
    rewards = np.asarray(after.own.history.rewards)[: int(after.own.history.count)]
    assert set(rewards.tolist()) <= {0.0, 0.5, 1.0}
    assert len(rewards) == 32


PLANTED = np.array([[0.2, 0.9], [1.1, 1.6]])  # corners of the region where there is something to learn


def inside(tasks):
    return ((tasks >= PLANTED[0]) & (tasks <= PLANTED[1])).all(axis=-1)


@pytest.mark.parametrize("seed", range(2))
def test_it_finds_a_planted_region_where_there_is_progress(seed):
    """Outside, every return is the same. Inside, returns rise with the number of visits, as a learner's would.

    The region is 12 % of the space. Of the tasks that are not drawn at random, at least 60 % come to lie in it.
    """
    method = tut.ALPGMM(fit_rate=100, most=6, random_rate=0.2, history=4096)
    rise = 2000.0

    def step(carry, key):
        teacher, visits = carry
        key_tasks, key_fit = jax.random.split(key)
        tasks = method.propose(key_tasks, teacher, (50,))
        planted = ((tasks >= PLANTED[0]) & (tasks <= PLANTED[1])).all(axis=-1)
        skill = jnp.minimum((visits + jnp.cumsum(planted)) / rise, 1.0)
        rewards = jnp.where(planted, skill * (0.5 + 0.5 * jnp.sin(9 * tasks[:, 0]) ** 2), 0.1)
        teacher, alps = method.observe(key_fit, teacher, tasks, rewards, jnp.ones(50, bool))
        return (teacher, visits + planted.sum()), (tasks, alps)

    start = Knowledge(History.new(4096, 2), mixtures.nothing(6, 3))
    keys = jax.random.split(jax.random.key(seed), 60)
    _, (tasks, alps) = jax.jit(lambda: jax.lax.scan(step, (start, jnp.int32(0)), keys))()
    share = inside(np.asarray(tasks)).mean(axis=1)
    area = np.prod(PLANTED[1] - PLANTED[0]) / SIDE**2
    assert share[:2].mean() < area + 0.1, "nothing is known at first"
    assert share[20:].mean() > 0.2 * area + 0.8 * 0.6
    assert np.asarray(alps)[20:].mean() > 2 * np.asarray(alps)[:2].mean()


def test_its_tasks_move_to_where_the_student_can_learn(course):
    """Right of x = 0 the env can be solved: of all tasks half at first, later at least 70 %. The student learns."""

    def right(i):
        history = jax.tree.map(lambda x: x[0], course.states[i].own.history)
        return float((history.latest(150)[:, 0] > SIDE / 2).mean())

    assert right(-1) > 0.7
    assert course.mean(-1, "explore/solved") > course.mean(1, "explore/solved") + 0.3
    assert 2 <= course.mean(-1, "alp_gmm/components") <= 5
    assert course.mean(-1, "alp_gmm/alp") > 0


def test_each_rollout_is_an_update(course):
    last = course.states[-1]
    assert last.updates.tolist() == last.cycles.tolist() == last.rollouts.tolist() == [UPDATES] * 2
    assert last.own.history.count.tolist() == [UPDATES * 32] * 2, "4 episodes in each of 8 slots"


def test_mazes_are_refused_by_name_with_a_list_of_what_can_be_done():
    says = r"alp-gmm cannot run on maze: it needs a design space of the kind BoxDesign\. maze can be trained with dr, "
    with pytest.raises(tut.UserError, match=says):
        tiny_maze(METHOD).classroom()
    with pytest.raises(tut.UserError, match=says):
        tut.preset("maze", "alp-gmm")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (dict(fewest=5, most=4), "at most `most`"),
        (dict(fit_rate=10), "at least `most`"),
        (dict(lowest_return=1.0, highest_return=1.0), "below `highest_return`"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        tut.ALPGMM(**settings)
