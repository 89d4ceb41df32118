from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toys import tiny_maze
from tutelage.env import Discrete, Timestep
from tutelage.student import rows
from tutelage.student.nets import Flatten, StudentConfig
from tutelage.student.rollout import LONG, Rollout, episodes, gae, renewed, rollout, running_sum
from tutelage.student.rows import copied, replaced, scattered

STEPS, SLOTS = 24, 4


@dataclass(frozen=True)
class Countdown:
    """The level says how many steps an episode lasts; what is observed is (level, steps left, a draw at reset)."""

    actions = Discrete(2)
    max_steps = 10

    def reset(self, key, level):
        state = (level, level, jax.random.randint(key, (), 0, 1000))
        return state, jnp.stack(state).astype(jnp.float32)

    def step(self, key, state, action):
        level, left, draw = state
        state = (level, left - 1, draw)
        done = left == 1
        return state, Timestep(
            jnp.stack(state).astype(jnp.float32), level * 1.0 * done, done & (level < 5), done & (level >= 5)
        )

    def solved(self, episode_return):
        return episode_return > 0


@pytest.fixture(scope="module")
def student():
    return StudentConfig(hidden=8, head=4).build(Flatten(3), Discrete(2), key=jax.random.key(0))


def play(student, queue, **options) -> Rollout:
    pool = jnp.arange(1, 9)
    run = jax.jit(lambda k: rollout(k, Countdown(), student, pool, jnp.asarray(queue, jnp.int32), STEPS, **options))
    return run(jax.random.key(1))[0]


def test_a_slot_plays_its_queue_in_a_circle(student):
    r = play(student, [[0, 1, 2], [4, 4, 0]])  # levels of length 1, 2, 3 and 5, 5, 1
    lengths = np.asarray(episodes(r).length)
    for slot, cycle in enumerate([[1, 2, 3], [5, 5, 1]]):
        ends = np.flatnonzero(r.done[:, slot])
        expected = (cycle * STEPS)[: len(ends)]
        assert lengths[ends, slot].tolist() == expected
        assert np.asarray(r.entry)[ends, slot].tolist() == [n % 3 for n in range(len(ends))]
    assert np.array_equal(np.asarray(r.start)[1:], np.asarray(r.done)[:-1])
    assert r.start[0].all()


def test_an_entry_begins_the_same_way_each_time(student):
    r = play(student, [[0, 1, 2], [0, 1, 2]])
    draws = np.asarray(r.obs)[..., 2]
    for slot in range(2):
        for entry in range(3):
            mine = (np.asarray(r.entry)[:, slot] == entry) & np.asarray(r.start)[:, slot]
            assert len(set(draws[mine, slot])) == 1
    assert len(set(draws.ravel())) == 6


def test_the_end_is_where_the_last_step_led(student):
    pool, queue = jnp.arange(1, 9), jnp.array([[0, 1, 2], [6, 6, 6]])
    end = jax.jit(lambda k: rollout(k, Countdown(), student, pool, queue, STEPS))(jax.random.key(1))[1]
    level, left, _ = end
    assert level.tolist() == [1, 7], "24 steps are four rounds of 1 + 2 + 3, after which level 1 begins again"
    assert left.tolist() == [1, 7 - STEPS % 7]


def test_recorded_values_and_probabilities_are_those_of_the_unrolled_student(student):
    r = play(student, [[0, 1, 2], [4, 4, 0]])
    policy, value = student.evaluate(r.obs, r.start)
    assert jnp.allclose(policy.log_prob(r.action), r.log_prob, atol=1e-5)
    assert jnp.allclose(value, r.value, atol=1e-5)


def test_rollouts_in_the_maze_agree_with_the_unrolled_student():
    room = tiny_maze().classroom()
    learner = room.new_student(jax.random.key(0))
    levels = jax.vmap(room.design.sample)(jax.random.split(jax.random.key(1), SLOTS))
    queue = jnp.arange(SLOTS, dtype=jnp.int32)[:, None]
    r, _ = jax.jit(lambda: rollout(jax.random.key(2), room.env, learner, levels, queue, STEPS))()
    policy, value = learner.evaluate(r.obs, r.start)
    assert jnp.allclose(policy.log_prob(r.action), r.log_prob, atol=1e-5)
    assert jnp.allclose(value, r.value, atol=1e-5)


def gae_in_numpy(r: Rollout, discount: float, lam: float, bootstrap: bool, time_limit: str = "cut"):
    value, reward = np.asarray(r.value, np.float64), np.asarray(r.reward, np.float64)
    done, truncated = np.asarray(r.done), np.asarray(r.truncated)
    advantage = np.zeros_like(value)
    for p in range(value.shape[1]):
        following = 0.0
        for t in reversed(range(len(value))):
            ends = done[t, p] or t == len(value) - 1
            if not ends:
                next_value = value[t + 1, p]
            else:
                following = 0.0
                cut_short = (truncated[t, p] and time_limit == "cut") or not done[t, p]
                next_value = float(r.next_value[t, p]) if bootstrap and cut_short else 0.0
            following = reward[t, p] + discount * next_value - value[t, p] + discount * lam * following
            advantage[t, p] = following
    return advantage


@pytest.mark.parametrize(("bootstrap", "time_limit"), [(False, "cut"), (True, "cut"), (True, "end")])
def test_gae_equals_a_plain_loop(student, bootstrap, time_limit):
    r = play(student, [[0, 1, 2], [4, 6, 0], [7, 7, 7]], next_values=bootstrap)
    assert r.truncated.any()
    assert r.terminated.any()
    assert not r.done[-1].all()
    advantage, target = gae(r, discount=0.9, gae_lambda=0.8, bootstrap=bootstrap, time_limit=time_limit)
    expected = gae_in_numpy(r, 0.9, 0.8, bootstrap, time_limit)
    assert np.allclose(advantage, expected, atol=1e-5)
    assert np.allclose(target, expected + np.asarray(r.value), atol=1e-5)


def test_the_value_after_a_step_is_that_of_the_next_observation(student):
    r = play(student, [[7, 7, 7]], next_values=True)
    inside = ~np.asarray(r.done)[:-1]
    assert np.allclose(np.asarray(r.next_value)[:-1][inside], np.asarray(r.value)[1:][inside], atol=1e-5)


def test_running_sums_start_anew_with_each_episode():
    x = jnp.arange(1.0, 7.0)[:, None]
    start = jnp.array([1, 0, 0, 1, 0, 1], bool)[:, None]
    assert running_sum(x, start)[:, 0].tolist() == [1, 3, 6, 4, 9, 6]


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("numbers", [3, LONG])
def test_episodes_that_are_done_are_replaced_and_no_others(backend, numbers, monkeypatch) -> None:
    """However much a slot holds, and however it is written, for one seed or several."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    done = jnp.array([[True, False, False, True], [False, False, True, True]])
    entry = jnp.array([[1, 0, 2, 0], [2, 1, 0, 1]])
    openings = jax.random.normal(jax.random.key(0), (2, 4, 3, numbers))
    going = jax.random.normal(jax.random.key(1), (2, 4, numbers))

    def one(done, entry, openings, going):
        find = lambda x: x[jnp.arange(4), entry]  # noqa: E731
        return renewed(done, find, (openings, openings[..., 0]), (going, going[..., 0]))

    states, obs = jax.vmap(one)(done, entry, openings, going)
    for s in range(2):
        for p in range(4):
            want = openings[s, p, entry[s, p]] if done[s, p] else going[s, p]
            np.testing.assert_array_equal(states[s, p], want)
            assert obs[s, p] == want[0]


def test_rows_are_replaced_by_a_kernel_as_by_xla() -> None:
    """Rows of lengths that a program does not copy at once, more of them than it looks after or than there are new."""
    old, new = (jax.random.normal(jax.random.key(k), (rows, 700)) for k, rows in ((0, 73), (1, 4)))
    wanted = (jnp.arange(73) % 3 != 1) & (jnp.arange(73) // 32 != 1)
    row = jax.random.randint(jax.random.key(2), (73,), 0, 4)
    want = np.where(wanted[:, None], new[row], old)
    np.testing.assert_array_equal(copied(old, wanted, new, row, interpret=True), want)
    np.testing.assert_array_equal(scattered(old, wanted, new, row), want)


def test_rows_of_several_seeds_are_replaced_by_xla(monkeypatch) -> None:
    """Where kernels run; what one seed's slots take from is its own."""
    monkeypatch.setattr(rows, "kernels_run_here", lambda: True)
    old, new = (jax.random.normal(jax.random.key(k), (2, 5, 8)) for k in (0, 1))
    wanted, row = jnp.arange(5) > 2, jnp.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    have = jax.vmap(replaced, in_axes=(0, None, 0, 0))(old, wanted, new, row)
    for seed in range(2):
        np.testing.assert_array_equal(have[seed], np.where(wanted[:, None], new[seed][row[seed]], old[seed]))
