"""What the tests of methods with a learned teacher share: small settings."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tut
from boxes import signs
from toys import tiny_maze
from tutelage.runs.run import initial_state
from tutelage.runs.trainer import programs

BUFFER = tut.BufferConfig(capacity=24, min_fill=0.3, replay_rate=0.7)
TEACHER = tut.Teacher(tut.StudentConfig(memory=False, hidden=0, head=8), tut.PPO(learning_rate=1e-3, epochs=1), z=3)
STUDENT = tut.StudentConfig(memory=False, hidden=16, head=8)

# To learn with, on mazes and on the square of which one half is hopeless.
EAGER = tut.Teacher(tut.StudentConfig(memory=False, hidden=0, head=32), tut.PPO(learning_rate=3e-3, discount=1.0), z=8)
SEEKER = tut.Teacher(
    tut.StudentConfig(memory=False, hidden=16, separate=True), tut.PPO(learning_rate=1e-2, discount=1.0), z=2
)


def tiny(method, **changes) -> tut.Config:
    """A few updates on tiny mazes, quick to compile."""
    return tiny_maze(method, **(dict(student=STUDENT, ppo=tut.PPO(epochs=1), updates=4) | changes))


def square(method, **changes) -> tut.Config:
    """Students that learn slowly on the square, so that what there is to gain depends on the levels."""
    return signs(method, **(dict(slots=32, ppo=tut.PPO(learning_rate=1e-4, epochs=1)) | changes))


def one_seed(config):
    """The state of a run's first seed."""
    return jax.tree.map(lambda x: x[0], initial_state(config))


def same(a, b) -> bool:
    """Whether two pytrees hold the same numbers."""
    return all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True))


def after_updates(config, updates):
    """All seeds of a config after so many student updates."""
    states, (_, step, _) = initial_state(config), programs(config, 1)
    while int(states.updates.min()) < updates:
        states = step(states.with_log(None), jnp.asarray(updates, jnp.int32))
    return states


def regret_found(config, updates) -> tuple[float, float]:
    """The regret of the levels of a teacher that has learned for so many updates, and of one that has not."""
    room, method = config.classroom(), config.method

    @jax.jit
    def regret(s, key):
        s, work = method.design(room, replace(s, key=key))

        def play(s):
            return method.play(room, s, work.levels, "explore")

        s, protagonist = play(s)
        _, antagonist = method.as_antagonist(s, play)
        return method.regret(protagonist.episodes, antagonist.episodes).mean()

    keys = jax.random.split(jax.random.key(1), 20)
    skilled, naive = (float(np.mean([regret(s, k) for k in keys])) for s in trained(config, updates))
    return skilled, naive


def trained(config, updates):
    """The first seed after so many student updates, and the same but for the teacher, which is as it was at first."""
    state = after_updates(config, updates).with_log(None)
    state = jax.tree.map(lambda x: x[0], state)
    teacher = one_seed(config).own.teacher
    return state, replace(state, own=replace(state.own, teacher=teacher))
