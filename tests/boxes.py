"""A tiny env whose levels are points of a square: cheap to compile, and half of it can never be solved."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tut
from tutelage.runs.run import initial_state
from tutelage.runs.trainer import programs


@dataclass(frozen=True)
class Signs:
    """Two steps, each of which pays if the action says which sign the level's y has. Left of x = 0 nothing pays."""

    actions = tut.Discrete(4)
    max_steps = 2

    def reset(self, key, level):
        state = (level, jnp.int32(0))
        return state, level

    def step(self, key, state, action):
        level, t = state
        right = action == jnp.where(level[1] > 0, 3, 0)
        reward = jnp.where(right & (level[0] > 0), 0.5, 0.0)
        return (level, t + 1), tut.Timestep(level, reward, t + 1 >= self.max_steps, jnp.bool_(False))

    def solved(self, episode_return):
        return episode_return > 0.75


@dataclass(frozen=True)
class Square:
    """Points of [−1, 1] × [−1, 1]."""

    @property
    def low(self):
        return np.array([-1.0, -1.0])

    @property
    def high(self):
        return np.array([1.0, 1.0])

    def from_vector(self, key, vector):
        return vector

    def sample(self, key):
        return jax.random.uniform(key, (2,), minval=-1.0)

    def edit(self, key, level, n):
        return jnp.clip(level + 0.1 * jax.random.normal(key, (n, 2)).sum(0), -1.0, 1.0)

    def plainest(self, key):
        return jnp.array([0.5, 0.5])

    def mutate(self, key, level):
        moved = level + 0.2 * jax.random.randint(key, (2,), -1, 2)
        return jnp.clip(jnp.round(10 * moved) / 10, -1.0, 1.0)

    def traits(self, level):
        return level

    def describe(self, level):
        return {"x": level[0], "y": level[1], "solvable": (level[0] > 0).astype(jnp.float32)}

    def render(self, level):
        return np.zeros((4, 4, 3), np.uint8)

    def to_json(self, level):
        return {"at": np.asarray(level).tolist()}

    def from_json(self, data):
        return jnp.asarray(data["at"], jnp.float32)


def signs(method, **changes) -> tut.Config:
    """The env with a student without memory."""
    settings = dict(
        env=tut.OwnDomain("signs", Signs(), Square()),
        method=method,
        student=tut.StudentConfig(memory=False, hidden=16, head=8),
        ppo=tut.PPO(learning_rate=3e-3, entropy_coef=0.01, epochs=2),
        slots=8,
        steps=8,
        updates=12,
        log_every=4,
        eval_every=0,
        checkpoint_every=4,
        archive_every=0,
    )
    return tut.Config(**(settings | changes))


class Course:
    """A method taken a few updates at a time: `states[i]` after `i · stride` updates, with the log of that stretch."""

    def __init__(self, config: tut.Config, strides: int, stride: int = 1):
        self.config = config
        self.room, step, _ = programs(config, 1)  # those of a run, so that whichever comes second need not trace them
        self.states = [initial_state(config)]
        for n in range(strides):
            before = jax.tree.map(jnp.copy, self.states[-1].with_log(None))
            self.states.append(step(before, jnp.asarray((n + 1) * stride, jnp.int32)))

    def mean(self, i: int, name: str) -> float:
        """A quantity of the log of stretch i, over all seeds."""
        total, weight = self.states[i].log.means[name]
        return float(total.sum() / weight.sum())

    def admitted(self, seed: int = 0) -> list[dict[str, int]]:
        """Every level that was admitted, in order."""
        out = []
        for state in self.states[1:]:
            j, rows = jax.device_get(state.log.journal), int(state.log.rows[seed])
            assert rows <= j.id.shape[1], "the journal was too short"
            for row, p in zip(*np.nonzero(j.admitted[seed, :rows]), strict=True):
                out.append({k: int(getattr(j, k)[seed, row, p]) for k in ("id", "parent", "generation", "birth")})
        return out
