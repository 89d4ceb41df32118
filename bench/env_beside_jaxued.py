"""Maze steps per second beside jaxued's, in one process on the same device.

    pip install jaxued six && python bench/env_beside_jaxued.py [ENVS]

Both play random actions drawn beforehand, build every observation and start the same level again when an episode ends.
"""

import sys
import time

import jax
import jax.numpy as jnp

if not hasattr(jax, "tree_map"):  # a name that jaxued calls and JAX has dropped
    jax.tree_map = jax.tree.map

from jaxued.environments import Maze
from jaxued.environments.maze import make_level_generator
from jaxued.wrappers import AutoReplayWrapper

from tutelage.envs.maze import MazeDomain
from tutelage.runs.bench import device_name, env_speed

STEPS = 512


def jaxued_speed(envs: int, repeats: int = 3) -> float:
    env = AutoReplayWrapper(Maze(max_height=13, max_width=13, agent_view_size=5, normalize_obs=True))
    sample = make_level_generator(13, 13, 60)
    keys = jax.random.split(jax.random.key(0), envs)
    params = env.default_params
    obs, state = jax.vmap(env.reset_to_level, (0, 0, None))(keys, jax.vmap(sample)(keys), params)
    actions = jax.random.randint(jax.random.key(1), (STEPS, envs), 0, env.action_space(params).n)

    @jax.jit
    def play(obs, state):
        def step(carry, action):
            state, seen = carry
            obs, state, *_ = jax.vmap(env.step, (0, 0, 0, None))(keys, state, action, params)
            return (state, jax.tree.map(lambda total, x: total + x, seen, obs)), None

        return jax.lax.scan(step, (state, jax.tree.map(jnp.zeros_like, obs)), actions)[0]

    jax.block_until_ready(play(obs, state))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(play(obs, state))
        times.append(time.perf_counter() - began)
    return envs * STEPS / min(times)


if __name__ == "__main__":
    envs = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    ours = env_speed(MazeDomain(), envs, steps=STEPS).steps_per_second
    theirs = jaxued_speed(envs)
    print(f"{envs:,} envs on {device_name()}")
    for name, speed in (("tutelage", ours), ("jaxued", theirs)):
        print(f"{name:9}{speed / 1e6:8.2f} M steps/s")
    print(f"ratio    {ours / theirs:8.2f}")
