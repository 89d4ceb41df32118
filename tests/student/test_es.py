"""Evolution strategies beside a plain NumPy version, and a student that learns by them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Course, Signs, signs
from tutelage.env import Box, Discrete
from tutelage.runs.run import initial_state
from tutelage.student import es as strategies
from tutelage.student.controller import Controller, Crowd
from tutelage.student.learning import Lesson
from tutelage.student.nets import Flatten
from tutelage.student.rollout import Episodes, Rollout, rollout

SLOTS = 12
QUICK = tut.ES(
    learning_rate=0.05, learning_rate_decay=0.7, learning_rate_floor=0.02, sigma=0.2, sigma_decay=0.8, sigma_floor=0.1
)


def fitness(theta: np.ndarray) -> np.ndarray:
    """Something to climb that is not linear; two of the slots tie."""
    returns = -((theta - np.linspace(-1, 1, theta.shape[-1])) ** 2).sum(-1) + np.sin(5 * theta[:, 0])
    returns[7] = returns[2]
    return returns.astype(np.float32)


def lesson_of(returns: np.ndarray) -> Lesson:
    """A rollout in which each slot ended two episodes with these returns on average, and began another."""
    both = np.stack([returns - 1, returns + 1, np.full_like(returns, 99)])
    ended = jnp.array([[True], [True], [False]]) & jnp.ones((3, SLOTS), bool)
    nothing = jnp.zeros((3, SLOTS))
    r = Rollout(nothing, nothing, nothing, nothing, None, nothing, ended, ended, ended, ended.astype(jnp.int32))
    return Lesson(r, Episodes(ended, jnp.asarray(both), nothing), nothing, nothing)


def ranks_by_hand(returns):
    order = sorted(range(len(returns)), key=lambda i: (returns[i], i))
    u = np.empty(len(returns))
    for place, i in enumerate(order):
        u[i] = place / (len(returns) - 1) - 0.5
    return u


def test_updates_equal_a_numpy_version():
    """Six of them: noise in pairs, ranks, gradient, weight decay, Adam, what decays and where it ends."""
    es = QUICK
    learner = es.begin(jax.random.key(3), Controller(Flatten(3), 4, Box(2), key=jax.random.key(0)))
    theta = np.asarray(strategies.flat(learner.student), np.float64)
    mean, square, rate, sigma = np.zeros_like(theta), np.zeros_like(theta), es.learning_rate, es.sigma
    learn, seen = jax.jit(lambda learner, lesson: es.learn(jax.random.key(9), learner, lesson)), []
    for t in range(1, 7):
        crowd = es.players(learner, SLOTS)
        played = np.stack([np.asarray(strategies.flat(member_of(crowd, k))) for k in range(SLOTS)])
        noise = (played[0::2] - theta) / sigma
        np.testing.assert_allclose(played[1::2], theta - sigma * noise, atol=1e-5)
        seen.append(noise)
        returns = fitness(played)
        learner, noted = learn(learner, lesson_of(returns))

        u = ranks_by_hand(returns)
        g = sum((u[2 * k] - u[2 * k + 1]) * noise[k] for k in range(SLOTS // 2)) / (SLOTS // 2 * sigma)
        assert float(noted["es/grad_norm"]) == pytest.approx(np.linalg.norm(g), rel=1e-3)
        assert float(noted["es/sigma"]) == pytest.approx(sigma, rel=1e-5)
        assert float(noted["es/learning_rate"]) == pytest.approx(rate, rel=1e-5)
        assert float(noted["es/deviation"]) == pytest.approx(returns.std(), rel=1e-4)
        d = -g + 0.01 * theta
        mean, square = 0.9 * mean + 0.1 * d, 0.999 * square + 0.001 * d**2
        step = rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        theta = theta - step * mean / (np.sqrt(square) + 1e-8)
        np.testing.assert_allclose(strategies.flat(learner.student), theta, atol=2e-5)
        rate, sigma = max(rate * 0.7, 0.02), max(sigma * 0.8, 0.1)
        theta = np.asarray(strategies.flat(learner.student), np.float64)
    assert (rate, sigma) == (0.02, 0.1), "both have come to their floors"
    pooled = np.concatenate(seen)
    assert abs(pooled.mean()) < 0.1
    assert pooled.std() == pytest.approx(1, abs=0.1)
    assert len(np.unique(pooled[:, 0])) == len(pooled), "new noise for every pair and update"


def member_of(crowd: Crowd, slot: int):
    return jax.tree.map(lambda x: x[..., slot], crowd.members)


def test_the_gradient_of_a_slope_points_up_it():
    """Of a linear function the estimate has its direction; of ranks, whatever their scale."""
    slope = jnp.linspace(-1.0, 1.0, 20)

    def returns(key):
        noise = jax.vmap(lambda k: strategies.perturbation(key, k, 20))(jnp.arange(2000))
        return jnp.stack([noise @ slope, -noise @ slope], axis=1).ravel()

    key = jax.random.key(0)
    for scale in (1.0, 1e6):
        g = jax.jit(lambda key, scale=scale: strategies.estimate(key, scale * returns(key), jnp.float32(0.1), 20))(key)
        assert float(g @ slope / jnp.linalg.norm(g) / jnp.linalg.norm(slope)) > 0.97


@pytest.mark.parametrize("actions", [Box(2, -1.0, 3.0), Discrete(4)])
def test_in_a_crowd_each_acts_as_it_would_alone(actions):
    students = jax.vmap(lambda k: Controller(Flatten(3), 5, actions, key=k))(jax.random.split(jax.random.key(0), 6))
    crowd = Crowd.of(students)
    obs, start = jax.random.normal(jax.random.key(1), (7, 6, 3)), jnp.zeros((7, 6), bool)
    (policy, value), (_, step, _) = crowd.evaluate(obs, start), crowd.act(crowd.memory(6), obs[2], start[2])
    for k in (0, 5):
        alone = jax.tree.map(lambda x, k=k: x[k], students)
        want, _ = alone.evaluate(obs[:, k : k + 1], start[:, k : k + 1])
        np.testing.assert_allclose(policy.mode()[:, k], want.mode()[:, 0], atol=1e-6)
        np.testing.assert_allclose(step.mode()[k], want.mode()[2, 0], atol=1e-6)
    assert (value == 0).all()
    if isinstance(actions, Box):
        assert float(policy.mode().min()) >= -1
        assert float(policy.mode().max()) <= 3
    else:
        assert set(np.unique(policy.mode())) <= set(range(4))


def test_students_with_memory_can_be_a_crowd():
    """In a rollout every slot remembers what its own student saw."""
    config = tut.StudentConfig(hidden=4, head=4)
    build = lambda key: config.build(Flatten(2), Discrete(4), key=key)  # noqa: E731
    students = jax.vmap(build)(jax.random.split(jax.random.key(0), 3))
    pool, queue = jax.random.uniform(jax.random.key(1), (3, 2)), jnp.arange(3, dtype=jnp.int32)[:, None]
    play = jax.jit(lambda student: rollout(jax.random.key(2), Signs(), student, pool, queue, 6)[0])
    together = play(Crowd.of(students))
    for k in range(3):
        alone = play(jax.tree.map(lambda x, k=k: x[k], students))
        np.testing.assert_allclose(together.value[:, k], alone.value[:, k], atol=1e-5)
        np.testing.assert_array_equal(together.action[:, k], alone.action[:, k])


LEARNER = dict(
    student=tut.StudentConfig(memory=False, hidden=8, separate=True, critic="none"),
    ppo=None,
    slots=32,
    steps=2,
)


def direct(method=None, **changes) -> tut.Config:
    """ES on the square."""
    method = tut.DR(tut.BufferConfig(capacity=8), score="learnability") if method is None else method
    return signs(method, **(LEARNER | dict(es=tut.ES(learning_rate=0.1, sigma=0.2, levels=16)) | changes))


def test_a_student_learns_by_it_under_domain_randomisation():
    """Half of the levels can be solved; of its perturbed copies' episodes, a quarter are at first."""
    course = Course(direct(seeds=2), 6, 20)
    assert course.mean(1, "explore/solved") < 0.32
    assert course.mean(-1, "explore/solved") > 0.4
    assert course.mean(-1, "es/deviation") > 0
    last = course.states[-1]
    assert last.updates.tolist() == last.rollouts.tolist() == [120, 120]
    assert not any(name.startswith("ppo/") for name in last.log.means)


@pytest.mark.parametrize("new_level", ["rollout", "episode"])
def test_slots_that_share_a_level_play_the_same(new_level):
    seen = []

    class Watched(tut.DR):
        def learn(self, room, s, trial):
            jax.debug.callback(lambda obs: seen.append(np.asarray(obs)), trial.rollout.obs)
            return super().learn(room, s, trial)

    config = direct(Watched(tut.BufferConfig(capacity=8), "learnability", new_level=new_level), steps=4)
    room = config.classroom()
    state = jax.tree.map(lambda x: x[0], initial_state(config))
    jax.block_until_ready(jax.jit(lambda s: config.method.cycle(room, s))(state))
    (obs,) = seen  # the student sees its level
    for first in range(0, 32, 2):
        assert (obs[:, first] == obs[:, first + 1]).all()
    assert len(np.unique(obs[0], axis=0)) == 16
    assert len(np.unique(obs[:, 0], axis=0)) == (2 if new_level == "episode" else 1)


def refusals():
    es, ppo = tut.ES(), tut.PPO()
    return {
        "neither": (lambda: signs(tut.DR(), ppo=None), "by ppo or by es: one of them must be given"),
        "both": (lambda: signs(tut.DR(), ppo=ppo, es=es), "by ppo or by es: one of them must be given"),
        "another method": (
            lambda: direct(tut.ACCEL(tut.BufferConfig(capacity=8))).classroom(),
            "accel teaches students that learn by `ppo`, not by `es`; those are taught by dr",
        ),
        "a score of values": (
            lambda: direct(tut.DR(tut.BufferConfig(capacity=8))).classroom(),
            "the score pvl needs a critic",
        ),
        "odd slots": (lambda: direct(slots=33).classroom(), "must be a multiple of 32"),
        "no critic": (
            lambda: signs(tut.DR(), student=LEARNER["student"]).classroom(),
            "ppo needs a critic",
        ),
    }


@pytest.mark.parametrize("case", list(refusals()))
def test_what_does_not_fit_is_refused(case):
    make, says = refusals()[case]
    with pytest.raises(tut.UserError, match=says):
        make()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (dict(sigma_floor=1.0), "`sigma` must be positive, and so must `sigma_floor`"),
        (dict(learning_rate_decay=1.5), "`learning_rate_decay` must lie in"),
        (dict(levels=0), "at least 1"),
        (dict(weight_decay=-1.0), "must not be negative"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        tut.ES(**settings)
