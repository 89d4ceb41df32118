"""Returns of walkers in gymnasium's Box2D and here, on the same terrains.

    python bench/fidelity/returns.py --policies DIR [--episodes 100] [--solver reduced]

Each policy plays the same levels in both worlds, in a fresh one of gymnasium's for each episode, with noise of its own.
`--policies` is a folder of `.npz` files with `w0 b0 w1 b1 w2 b2 log_std`. gymnasium's own heuristic plays along.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

LIMIT = {False: 1600, True: 2000}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=20_000)
    parser.add_argument("--solver", default="reduced", choices=("reduced", "exact"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worlds", default="basic,hardcore")
    return parser.parse_args()


def network(weights):
    def act(obs, noise):
        hidden = np.tanh(np.tanh(obs @ weights["w0"] + weights["b0"]) @ weights["w1"] + weights["b1"])
        return np.clip(hidden @ weights["w2"] + weights["b2"] + np.exp(weights["log_std"]) * noise, -1, 1)

    return act


def play_real(hardcore: bool, policy, seed: int) -> tuple:
    """An episode in gymnasium: its terrain, its first force, its return."""
    from bipedal import box2d

    env, obs, terrain, force = box2d.make(seed, hardcore)
    rng = np.random.default_rng(seed)
    act, total = maker(policy), 0.0
    for _ in range(LIMIT[hardcore]):
        obs, reward, terminated, _, _ = env.step(np.float32(act(obs, rng.normal(size=4))))
        total += reward
        if terminated:
            break
    return tuple(np.asarray(v) for v in terrain), force, total


def maker(policy):
    """A policy from its file; without one, gymnasium's heuristic."""
    from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

    if policy is None:
        walker = BipedalWalkerHeuristics()
        return lambda obs, noise: np.array(walker.step_heuristic(obs))
    return network(np.load(policy))


def play_here(hardcore: bool, policy, solver: str, terrains, forces) -> np.ndarray:
    """The episodes on these terrains here, a batch of them at a time; returns."""
    import jax
    import jax.numpy as jnp

    from tutelage.envs.bipedal.env import Walker
    from tutelage.envs.bipedal.terrain import Terrain

    env = Walker(max_steps=LIMIT[hardcore], solver=solver)
    states, obs = jax.jit(jax.vmap(env.start))(Terrain(*map(jnp.asarray, terrains)), jnp.asarray(forces))
    step = _stepper(env)
    rng = np.random.default_rng(0)
    n = len(forces)
    acts = maker(policy) if policy else _each([maker(None) for _ in range(n)])
    total, alive = np.zeros(n), np.ones(n, bool)
    while alive.any():
        action = acts(np.asarray(obs), rng.normal(size=(n, 4)))
        states, after = step(states, jnp.asarray(action, jnp.float32))
        obs = after.obs
        total += np.where(alive, np.asarray(after.reward), 0)
        alive &= ~np.asarray(after.done)
    return total


def _each(acts):
    return lambda obs, noise: np.stack([act(o, None) for act, o in zip(acts, obs, strict=True)])


_steppers = {}


def _stepper(env):
    import jax

    if env not in _steppers:
        _steppers[env] = jax.jit(jax.vmap(partial(env.step, jax.random.key(0))))
    return _steppers[env]


def compare(args: argparse.Namespace, pool, hardcore: bool, policy) -> None:
    seeds = [args.first_seed + k for k in range(args.episodes)]
    played = pool.map(partial(play_real, hardcore, policy), seeds, chunksize=4)
    terrains = [np.stack(v) for v in zip(*(p[0] for p in played), strict=True)]
    forces, real = np.float32([p[1] for p in played]), np.array([p[2] for p in played])
    here = play_here(hardcore, policy, args.solver, terrains, forces)
    error = lambda v: v.std(ddof=1) / np.sqrt(len(v))  # noqa: E731
    gap = here - real
    print(
        f"{'hardcore' if hardcore else 'basic':9s} {policy.stem if policy else 'heuristic':15s}"
        f" {real.mean():8.1f} ± {error(real):4.1f} {here.mean():8.1f} ± {error(here):4.1f}"
        f"  {gap.mean():+7.1f} ± {error(gap):4.1f}  median {np.median(real):6.1f} {np.median(here):6.1f}",
        flush=True,
    )


def main() -> None:
    args = arguments()
    policies = [None, *(sorted(args.policies.glob("*.npz")) if args.policies else [])]
    print(f"{args.episodes} episodes, {args.solver} solver: gymnasium, here, difference", flush=True)
    with get_context("spawn").Pool(args.processes) as pool:
        for world in args.worlds.split(","):
            for policy in policies:
                compare(args, pool, world == "hardcore", policy)


if __name__ == "__main__":
    main()
