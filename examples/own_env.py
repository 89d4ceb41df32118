"""An env of your own, from nothing to an evolved curriculum: a strip of tiles with pits to jump over."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tut


@dataclass(frozen=True)
class Jumper:
    """The student's side. A level is a strip of booleans, true where there is a pit."""

    actions = tut.Discrete(2)  # 0: step to the next tile, 1: jump over it
    max_steps = 20

    def reset(self, key, level):
        state = (level, jnp.int32(0))
        return state, self.look(state)

    def look(self, state):
        pits, position = state
        return pits[(position + jnp.arange(1, 4)) % pits.size]  # the next three tiles

    def step(self, key, state, action):
        pits, position = state
        position = position + 1 + action
        home = position >= pits.size
        fell = pits[position % pits.size] & ~home
        state = (pits, position)
        return state, tut.Timestep(self.look(state), jnp.where(home, 1.0, 0.0), home | fell, jnp.bool_(False))

    def solved(self, episode_return):
        return episode_return > 0


@dataclass(frozen=True)
class Strips:
    """The teacher's side: strips start without pits, and an edit digs or fills one."""

    length: int = 16

    def sample(self, key):
        return jnp.zeros(self.length, bool)

    def edit(self, key, level, n):
        tiles = jax.random.randint(key, (n,), 1, self.length)
        return level.at[tiles].set(~level[tiles])

    def describe(self, level):
        return {"pits": level.sum().astype(jnp.float32), "solvable": 1.0 - (level[1:] & level[:-1]).any()}

    def render(self, level):
        return np.repeat(np.where(np.asarray(level), 40, 220).astype(np.uint8)[None, :, None], 3, axis=2).repeat(16, 0)

    def to_json(self, level):
        return {"pits": np.flatnonzero(level).tolist()}

    def from_json(self, data):
        return jnp.zeros(self.length, bool).at[jnp.asarray(data["pits"], int)].set(True)


if __name__ == "__main__":
    config = tut.Config(
        env=tut.OwnDomain("jumper", Jumper(), Strips()),
        method=tut.ACCEL(tut.BufferConfig(capacity=64, min_fill=0.01, gate="fixed"), edits=2),
        student=tut.StudentConfig(memory=False, hidden=32),
        ppo=tut.PPO(learning_rate=3e-3, entropy_coef=0.01),
        slots=16,
        steps=32,
        updates=150,
    )
    run = tut.train(config, "runs/jumper", on_progress=lambda p: print(p.updates, p.row.get("buffer/pits")))
    print("pits in the buffer's levels, from first to last:", [round(r["buffer/pits"], 1) for r in run.metrics()])
