"""Walker steps per second beside gymnasium's and EnvPool's, on the same work.

    python bench/walker_beside_peers.py [--envs 256] [--threads 2] [--envpool-python PYTHON]

Everyone plays gymnasium's normal terrain with random actions drawn beforehand, builds every observation and starts anew
when an episode ends: gymnasium one walker in one process, the others many at once. A peer that is not installed is left
out. EnvPool may live in an environment of its own (`pip install envpool`), whose interpreter `--envpool-python` names.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

STEPS = 512  # of every env in a timed run
REPEATS = 3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--envpool-python", default=sys.executable)
    parser.add_argument("--only", choices=("gymnasium", "envpool", "tutelage"))
    return parser.parse_args()


def best(run: Callable[[], int]) -> float:
    """Steps per second in the best of a few runs after the first, each of which says how many steps it made."""
    run()
    speeds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        steps = run()
        speeds.append(steps / (time.perf_counter() - began))
    return max(speeds)


def random_actions(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (STEPS, *shape, 4)).astype(np.float32)


def gymnasium_speed() -> float:
    """One walker in this process."""
    import gymnasium

    env = gymnasium.make("BipedalWalker-v3")
    env.reset(seed=0)
    actions = random_actions()

    def run() -> int:
        for action in actions:
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return STEPS

    return best(run)


def envpool_speed(envs: int, threads: int) -> float:
    """Many walkers in C++ threads."""
    import envpool

    pool = envpool.make_gymnasium("BipedalWalker-v3", num_envs=envs, num_threads=threads, seed=0)
    pool.reset()
    actions = random_actions(envs)

    def run() -> int:
        for action in actions:
            pool.step(action)
        return STEPS * envs

    return best(run)


def tutelage_speed(envs: int) -> float:
    """Many walkers in one program."""
    from tutelage.env import DesignSpace
    from tutelage.envs.bipedal import WalkerDomain
    from tutelage.envs.bipedal.suite import BASIC, BASIC_STEPS
    from tutelage.runs.bench import env_speed

    class Basic(WalkerDomain):
        """gymnasium's normal terrain and time limit."""

        def design(self) -> DesignSpace:
            return _Drawn()  # pyright: ignore[reportReturnType]

    class _Drawn:
        sample = staticmethod(BASIC)

    return env_speed(Basic(max_steps=BASIC_STEPS), envs, steps=STEPS, repeats=REPEATS).steps_per_second


def asked(peer: str, args: argparse.Namespace) -> float | str:
    """A peer's speed, measured in a process of its own, or the last line of why there is none."""
    python = args.envpool_python if peer == "envpool" else sys.executable
    command = [python, __file__, "--only", peer, "--envs", str(args.envs), "--threads", str(args.threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip() or "it says nothing").splitlines()[-1]
    return float(done.stdout.split()[-1])


def main() -> None:
    args = arguments()
    measures = {
        "gymnasium": gymnasium_speed,
        "envpool": lambda: envpool_speed(args.envs, args.threads),
        "tutelage": lambda: tutelage_speed(args.envs),
    }
    if args.only:
        print(measures[args.only]())
        return
    speeds = {peer: asked(peer, args) for peer in measures}
    ours = speeds["tutelage"]
    print("| | envs | steps/s | tutelage is faster by |\n|---|---|---|---|")
    for peer, speed in speeds.items():
        envs = 1 if peer == "gymnasium" else args.envs
        if isinstance(speed, str):
            print(f"| {peer} | {envs} | not measured: {speed} | |")
        else:
            ratio = f"{ours / speed:.2f}" if isinstance(ours, float) else ""
            print(f"| {peer} | {envs} | {speed:,.0f} | {ratio} |")


if __name__ == "__main__":
    main()
