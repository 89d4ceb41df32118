"""How fast is a whole iteration of POET, beside the walkers alone?

    python bench/poet_speed.py [--pairs 20] [--walkers 512] [--seeds 1] [--lanes 41040 10260] [--steps 2000]
                               [--wait-for FILE]

All places hold a pair: students as they are at first, each a little different, on terrain of different kinds. A round
of steps is timed, then one of transfers and the one that judges what came of it, each as a training makes them, and the
25 iterations from one transfer to the next follow from that. Steps are those that were walked, up to the end of each
episode. Last come the walkers alone, as many as the first of the lanes, with random actions and without a network,
observations built and the next level begun when an episode ends: no iteration can be faster than that.

Everything is compiled before anything is timed. With `--wait-for` the timing begins when that file is there, so that
other work can have the device meanwhile.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp

from tutelage.curricula import attempts, poet
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.poet import POET
from tutelage.curricula.state import State
from tutelage.runs.bench import best_of, device_name, player
from tutelage.runs.config import Config
from tutelage.runs.flags import tell_xla
from tutelage.runs.presets import preset
from tutelage.runs.run import initial_state
from tutelage.student import distributions

ALONE_STEPS = 128  # of the walkers alone
ITERATIONS = 25  # from one transfer to the next


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20, help="pairs of level and student")
    parser.add_argument("--walkers", type=int, default=512, help="perturbed students of each in a step")
    parser.add_argument("--seeds", type=int, default=1, help="populations side by side")
    parser.add_argument("--steps", type=int, default=2000, help="steps after which an episode is cut off")
    parser.add_argument("--lanes", type=int, nargs="+", help="lanes, the most first; as in a training if not given")
    parser.add_argument("--alone", type=int, help="walkers that are timed alone; 0 for none, else the most lanes")
    parser.add_argument("--wait-for", type=Path, help="a file that must be there before anything is timed")
    return parser.parse_args()


def config_of(args: argparse.Namespace) -> Config:
    plain = preset("bipedal-poet", "poet")
    env = replace(plain.env, max_steps=args.steps)
    method = replace(plain.method, capacity=args.pairs, children=min(plain.method.children, args.walkers))
    return replace(plain, env=env, method=method, slots=args.walkers, steps=args.steps, seeds=args.seeds)


def full(room: Classroom, method: POET, s: State, key: jax.Array) -> State:
    """The state of a seed with a pair in every place."""
    n = method.capacity
    levels = jax.vmap(room.design.sample)(jax.random.split(key, n))
    buffer = replace(s.buffer, level=levels, id=jnp.arange(n, dtype=jnp.int32), filled=jnp.int32(n))
    agents = method.agents(s)[:1] + 0.05 * jax.random.normal(key, method.agents(s).shape)
    s = replace(s, buffer=buffer, updates=jnp.int32(1))
    return method._with(s, jnp.ones(n, bool), agents, s.learner.optimiser)


def walked(states: State, unit: int) -> int:
    """Env steps of all seeds so far."""
    return int(states.rollouts.sum()) * unit + int(states.own.left_over.sum())


def main() -> None:
    args = arguments()
    config = config_of(args)
    tell_xla(config.env)
    room, method = config.classroom(), config.method
    usual = config.seeds * method.capacity * (config.slots + 1)
    lanes = tuple(args.lanes or attempts.lanes_for(usual, usual * method.capacity))
    print(
        f"{device_name()}; {config.seeds} × {method.capacity} pairs × {config.slots} walkers, lanes {lanes}", flush=True
    )
    alone = lanes[0] if args.alone is None else args.alone
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as threads:
        walkers = threads.submit(walkers_alone, room, alone) if alone else None
        program, states = threads.submit(compiled, config, room, lanes).result()
        play = walkers.result() if walkers else None
    print(f"compiled in {time.perf_counter() - began:.0f} s", flush=True)
    while args.wait_for and not args.wait_for.exists():
        time.sleep(1)
    jax.block_until_ready(program(at(states, poet.STEP)))  # the first call does what others need not

    seconds = {}
    total = 0
    for name, rounds in (("steps", [poet.STEP]), ("transfer", [poet.TRANSFER, poet.JUDGE])):
        before, began = walked(states, config.slots * config.steps), time.perf_counter()
        for number in rounds:
            states = jax.block_until_ready(program(at(states, number)))
        seconds[name] = time.perf_counter() - began
        steps = walked(states, config.slots * config.steps) - before
        total += steps * (ITERATIONS if name == "steps" else 1)
        print(f"{name}: {seconds[name]:.2f} s, {steps / 1e6:.2f} M steps, {rate(steps, seconds[name])}", flush=True)
    whole = ITERATIONS * seconds["steps"] + seconds["transfer"]
    print(f"{ITERATIONS} iterations and a transfer: {whole:.1f} s, {rate(total, whole)}", flush=True)
    if play:
        speed = alone * ALONE_STEPS / best_of(play, 2)
        print(
            f"{alone:,} walkers alone: {rate(alone, alone / speed)}; an iteration has {total / whole / speed:.0%} of it"
        )


def compiled(config: Config, room: Classroom, lanes: tuple[int, ...]) -> tuple[Any, State]:
    """A cycle of all seeds as a program, and the states that it begins with."""
    method = config.method
    keys = jax.random.split(jax.random.key(1), config.seeds)
    states = jax.jit(jax.vmap(partial(full, room, method)))(initial_state(config), keys)
    with mock.patch.object(attempts, "lanes_for", return_value=lanes):
        return jax.jit(jax.vmap(partial(method.cycle, room))).lower(states).compile(), states


def walkers_alone(room: Classroom, count: int) -> Callable[[], Any]:
    """What plays so many walkers with random actions, compiled."""
    key_level, key_reset, key_act = jax.random.split(jax.random.key(0), 3)
    levels = jax.vmap(room.design.sample)(jax.random.split(key_level, count))
    openings = jax.jit(jax.vmap(room.env.reset))(jax.random.split(key_reset, count), levels)
    actions = distributions.uniform(key_act, room.env.actions, (ALONE_STEPS, count))
    return partial(jax.jit(player(room.env)).lower(openings, actions).compile(), openings, actions)


def at(states: State, number: int) -> State:
    """All seeds with this round due."""
    return replace(states, own=replace(states.own, round=jnp.full_like(states.own.round, number)))


def rate(steps: int, seconds: float) -> str:
    return f"{steps / seconds / 1e6:,.3g} M steps/s"


if __name__ == "__main__":
    main()
