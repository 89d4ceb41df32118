"""XLand-MiniGrid: the teacher designs tasks, from picking up an object to making it out of two others.

python examples/xland_rules.py

A level says which object must be held, which others lie about, and whether the object must first be made: then it is
not there, and comes of putting the first two others side by side. Levels start with the object alone; an edit changes
the object, adds or removes another, or turns making on or off. For a GPU; on a CPU,
`python examples/xland_rules.py --updates 5` shows that it runs.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["tutelage", "xminigrid==0.9.3"]
# ///

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xminigrid
from xminigrid.core.constants import Colors, Tiles
from xminigrid.types import RuleSet

import tutelage as tut

OTHERS = 6  # at most
KINDS = jnp.array([Tiles.BALL, Tiles.SQUARE, Tiles.PYRAMID, Tiles.KEY, Tiles.STAR], jnp.uint8)
COLOURS = jnp.array([Colors.RED, Colors.GREEN, Colors.BLUE, Colors.YELLOW, Colors.PURPLE], jnp.uint8)
HOLD, NEAR_MAKES = 1, 3  # XLand's numbers of a goal, and of a rule


class Task(NamedTuple):
    """A level."""

    wanted: jax.Array  # a kind and a colour
    others: jax.Array  # as many as OTHERS of them; zero where there is none
    made: jax.Array  # whether the one that is wanted must be made


def ruleset(task: Task) -> RuleSet:
    """The task as XLand has it."""
    recipe = jnp.concatenate([jnp.array([NEAR_MAKES], jnp.uint8), *task.others[:2], task.wanted])
    goal = jnp.concatenate([jnp.array([HOLD], jnp.uint8), task.wanted, jnp.zeros(2, jnp.uint8)])
    there = jnp.where(task.made, 0, task.wanted)[None]
    return RuleSet(goal, jnp.where(task.made, recipe, 0)[None], jnp.concatenate([there, task.others]))


@dataclass(frozen=True, eq=False)
class XLand:
    """The student's side: it sees what lies before it, what it carries, and what is wanted."""

    game: Any
    params: Any
    max_steps: int = 80
    actions = tut.Discrete(xminigrid.core.constants.NUM_ACTIONS)

    def reset(self, key, task):
        params = self.params.replace(ruleset=ruleset(task), max_steps=self.max_steps)
        step = self.game.reset(params, key)
        return (task, step), self.look(task, step)

    def look(self, task, step):
        seen = jnp.concatenate([step.observation.reshape(-1, 2), step.state.agent.pocket[None], task.wanted[None]])
        return jnp.concatenate([jax.nn.one_hot(seen[:, n], 13).ravel() for n in (0, 1)])

    def step(self, key, state, action):
        task, before = state
        params = self.params.replace(ruleset=ruleset(task), max_steps=self.max_steps)
        after = self.game.step(params, before, action)
        won = after.discount == 0
        late = (after.state.step_num >= self.max_steps) & ~won
        return (task, after), tut.Timestep(self.look(task, after), after.reward.astype(jnp.float32), won, late)

    def solved(self, episode_return):
        return episode_return > 0


@dataclass(frozen=True)
class Tasks:
    """The teacher's side."""

    def sample(self, key):
        return Task(self.thing(key), jnp.zeros((OTHERS, 2), jnp.uint8), jnp.bool_(False))

    def thing(self, key):
        kind, colour = jax.random.randint(key, (2,), 0, len(KINDS))
        return jnp.stack([KINDS[kind], COLOURS[colour]])

    def edit(self, key, task, n):
        def change(task, key):
            key_what, key_where, key_thing = jax.random.split(key, 3)
            where, thing = jax.random.randint(key_where, (), 0, OTHERS), self.thing(key_thing)
            kinds = (
                lambda: task._replace(wanted=thing),
                lambda: task._replace(others=task.others.at[where].set(thing)),
                lambda: task._replace(others=task.others.at[where].set(0)),
                lambda: task._replace(made=~task.made),
            )
            return jax.lax.switch(jax.random.randint(key_what, (), 0, len(kinds)), kinds), None

        return jax.lax.scan(change, task, jax.random.split(key, n))[0]

    def describe(self, task):
        others = (task.others[:, 0] > 0).sum()
        missing = task.made & (task.others[:2, 0] == 0).any()
        return {
            "others": others.astype(jnp.float32),
            "made": task.made.astype(jnp.float32),
            "solvable": 1.0 - missing,
        }

    def render(self, task):
        picture = np.full((24, 24 * (OTHERS + 1), 3), 230, np.uint8)
        palette = np.array([[0, 0, 0], [200, 40, 40], [40, 160, 60], [50, 80, 200], [140, 60, 170], [220, 190, 40]])
        for n, (kind, colour) in enumerate(np.concatenate([task.wanted[None], task.others])):
            size = {0: 0, 3: 6, 4: 10, 5: 8, 7: 4, 12: 9}[int(kind)]
            picture[12 - size : 12 + size, 24 * n + 12 - size : 24 * n + 12 + size] = palette[int(colour)]
        picture[:2, :24] = 0 if task.made else 230
        return picture

    def to_json(self, task):
        return {"wanted": task.wanted.tolist(), "others": task.others.tolist(), "made": bool(task.made)}

    def from_json(self, data):
        wanted, others = (jnp.asarray(data[name], jnp.uint8) for name in ("wanted", "others"))
        if wanted.shape != (2,) or others.shape != (OTHERS, 2):
            raise ValueError(f"A task has one thing that is wanted and {OTHERS} others, each a kind and a colour.")
        return Task(wanted, others, jnp.bool_(data["made"]))


def config(**changes) -> tut.Config:
    """The training, with any of its settings changed."""
    game, params = xminigrid.make("XLand-MiniGrid-R1-9x9")
    env, tasks = XLand(game, params), Tasks()

    def crafted(key):
        wanted, first, second = (tasks.thing(k) for k in jax.random.split(key, 3))
        others = jnp.zeros((OTHERS, 2), jnp.uint8).at[:2].set(jnp.stack([first, second]))
        return Task(wanted, others, jnp.bool_(True))

    suite = (tut.TestLevel("hold", env, tasks.sample), tut.TestLevel("make", env, crafted))
    settings = dict(
        env=tut.OwnDomain("xland", env, tasks, suite),
        method=tut.ACCEL(tut.BufferConfig(capacity=1000, min_fill=0.02, gate="fixed"), edits=2),
        student=tut.StudentConfig(cell="gru", hidden=128),
        ppo=tut.PPO(learning_rate=1e-3, discount=0.99, entropy_coef=0.01),
        slots=64,
        steps=128,
        updates=1000,
    )
    return tut.Config(**(settings | changes))


if __name__ == "__main__":
    updates = int(sys.argv[2]) if sys.argv[1:2] == ["--updates"] else 1000
    run = tut.train(config(updates=updates), "runs/xland", on_progress=lambda p: print(p.updates, p.row))
    for result in run.evaluate(episodes=100):
        print(result.level, round(result.solved_rate, 2))
