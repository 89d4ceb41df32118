"""Stable-Baselines3 on Tutelage's mazes: its PPO trains in random ones and plays the held-out suite.

python examples/sb3_maze.py

The mazes are a gymnasium environment whose steps need no JAX. A student of another library is judged on the same levels
as Tutelage's own: here the six mazes of the suite `small`. Some minutes on a CPU; `--steps 2000` shows that it runs.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["tutelage", "stable-baselines3==2.9.2", "torch==2.13.0", "gymnasium==1.2.0", "wasmtime==50.0.1"]
# ///

import sys

import gymnasium
import numpy as np
from stable_baselines3 import PPO

import tutelage.interop.gym_envs  # noqa: F401 - registers the environments
from tutelage.envs.maze import MazeDomain

SUITE = [level.name for level in MazeDomain(size=7).suites()["small"]]
EPISODES = 20


def make():
    """Mazes of 7×7 tiles with up to 17 walls: of these, an engine comes with the package."""
    return gymnasium.make("tutelage/Maze-v0", size=7, blocks=17, max_steps=162)


def train(steps: int) -> PPO:
    """SB3's PPO on random mazes."""
    settings = {"n_steps": 512, "batch_size": 512, "gamma": 0.98, "ent_coef": 0.01, "learning_rate": 1e-3}
    return PPO("MultiInputPolicy", make(), seed=0, device="cpu", **settings).learn(steps)


def solved_rates(model: PPO) -> dict[str, float]:
    """How often it solves each held-out maze."""
    env, rates = make(), {}
    for name in SUITE:
        solved = []
        for episode in range(EPISODES):
            obs, _ = env.reset(seed=episode, options={"suite_level": name})
            over = False
            while not over:
                action, _ = model.predict(obs)
                obs, _, terminated, truncated, info = env.step(action)
                over = terminated or truncated
            solved.append(info["solved"])
        rates[name] = float(np.mean(solved))
    return rates


if __name__ == "__main__":
    steps = int(sys.argv[2]) if sys.argv[1:2] == ["--steps"] else 200_000
    for name, rate in solved_rates(train(steps)).items():
        print(f"{name:16} {rate:.2f}")
