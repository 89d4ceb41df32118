"""Steps per second of the suites as Gymnasium environments, beside the environments that they are modelled on.

    python bench/gym_beside_originals.py [--steps 3000]

One environment in one process, as `gymnasium.make` makes it, random actions drawn beforehand; episodes that end begin
anew, on a new level. Time is the process's own, so that others on the machine count little.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import minigrid  # noqa: F401  registers its environments

import tutelage.interop.gym_envs  # noqa: F401  registers its environments

PAIRS = {
    "BipedalWalker-v3": ("tutelage/Walker-v0", {"suite_level": "Basic"}),
    "BipedalWalkerHardcore-v3": ("tutelage/Walker-v0", {"suite_level": "Hardcore"}),
    "MiniGrid-FourRooms-v0": ("tutelage/Maze-v0", {"suite_level": "FourRooms"}),
    "MiniGrid-SimpleCrossingS11N5-v0": ("tutelage/Maze-v0", {"suite_level": "SimpleCrossing"}),
}
REPEATS = 3


def speed(env: gymnasium.Env, steps: int) -> float:
    """Steps per second in the best of some runs."""
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(steps)]
    found = []
    for _ in range(REPEATS):
        began = time.process_time()
        for action in actions:
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        found.append(steps / (time.process_time() - began))
    return max(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    steps = parser.parse_args().steps
    print("| environment | steps/s | its original | steps/s | times |\n|---|---|---|---|---|")
    for original, (name, options) in PAIRS.items():
        ours, theirs = speed(gymnasium.make(name, **options), steps), speed(gymnasium.make(original), steps)
        row = (
            f"| `{name}`, {options['suite_level']} | {ours:,.0f} | `{original}` | {theirs:,.0f} | {ours / theirs:.1f} |"
        )
        print(row, flush=True)


if __name__ == "__main__":
    main()
