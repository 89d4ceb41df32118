"""Craftax: prioritised replay of worlds, which are drawn from seeds, and of how dangerous they are.

python examples/craftax_worlds.py

A level is a seed, from which Craftax makes a world, and two of its parameters: how often zombies appear, and how many
cows there are to eat. Robust PLR keeps the worlds from which the student still has most to learn. For a GPU; on a CPU,
`python examples/craftax_worlds.py --updates 20` shows that it runs.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["tutelage", "craftax==1.6.1"]
# ///

import sys

from craftax.craftax_env import make_craftax_env_from_name

import tutelage as tut
from tutelage.interop.gymnax import domain

BOUNDS = {"spawn_zombie_base_chance": (0.0, 0.1), "spawn_cow_chance": (0.0, 0.3)}


def config(**changes) -> tut.Config:
    """The training, with any of its settings changed."""
    game = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=False)
    settings = dict(
        env=domain("craftax", game, BOUNDS, max_steps=256, seeded=True, generator="uniform"),
        method=tut.RobustPLR(tut.BufferConfig(capacity=2000, min_fill=0.1), "maxmc"),
        student=tut.StudentConfig(cell="gru", hidden=256),
        ppo=tut.PPO(learning_rate=3e-4, discount=0.99, entropy_coef=0.01, minibatches=4),
        slots=64,
        steps=256,
        updates=2000,
    )
    return tut.Config(**(settings | changes))


if __name__ == "__main__":
    updates = int(sys.argv[2]) if sys.argv[1:2] == ["--updates"] else 2000
    run = tut.train(config(updates=updates), "runs/craftax", on_progress=lambda p: print(p.updates, p.row))
    for result in run.evaluate(episodes=20):
        print(result.level, round(result.mean_return, 2), "achievements' worth in", result.mean_length, "steps")
