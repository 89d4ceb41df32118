"""The walker's GPU kernels beside what XLA compiles: do both find the same, and how fast are they?

    python bench/walker_kernels.py agree [--envs 160] [--steps 100]
    python bench/walker_kernels.py time rollout:160 env:65536 physics:65536 xla-env:16384 [--tolerance 0]

`agree` makes every step twice, from the same states of random walkers on levels of all kinds. It exits with 1 if a
ground flag or the end of an episode differs.

`time` times what it is asked to, in so many environments: `rollout`, 2,048 steps by new students of 16 slots each as
one kernel, everything included; `env`, random actions, observations built, the next level begun when an episode ends;
`physics`, the same without levels and observations. `xla-env` and `xla-physics` are compiled by XLA, kernels or not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tutelage.envs.bipedal import TOLERANCE, Walker, WalkerDomain
from tutelage.envs.bipedal import run as fast
from tutelage.envs.bipedal.env import judge
from tutelage.envs.bipedal.run.moment import Moment
from tutelage.gpu import kernels_run_here
from tutelage.runs.bench import best_of, device_name, player
from tutelage.runs.flags import tell_xla
from tutelage.runs.presets import preset

SLOTS, ROLLOUT, QUEUE = 16, 2048, 4
STEPS, REPEATS = 256, 3
FIRST = 4  # steps of an episode, in which the walker is pulled together


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    agree = stages.add_parser("agree")
    agree.add_argument("--envs", type=int, default=160)
    agree.add_argument("--steps", type=int, default=100)
    timed = stages.add_parser("time")
    timed.add_argument("what", nargs="+", type=_what, metavar="WHAT:ENVS")
    for stage in (agree, timed):
        stage.add_argument("--tolerance", type=float, default=TOLERANCE)
    return parser.parse_args()


def _what(text: str) -> tuple[str, int]:
    name, _, envs = text.partition(":")
    if name not in TIMED or not envs.isdigit() or int(envs) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(TIMED)} with a number, as in env:65536")
    if name == "rollout" and int(envs) % SLOTS:
        raise argparse.ArgumentTypeError(f"{text!r}: students have {SLOTS} slots each, so a multiple of that")
    return name, int(envs)


def openings(env: Walker, n: int) -> Any:
    """n episodes about to begin, on levels of all kinds."""
    keys = jax.random.split(jax.random.key(0), n)
    return jax.jit(jax.vmap(env.reset))(keys, jax.vmap(WalkerDomain().design().sample)(keys))


def by_xla(make: Callable[[], Any]) -> Any:
    """What it makes, traced as if there were no kernels."""
    with mock.patch.object(fast, "kernels_run_here", return_value=False):
        return make()


def agree(args: argparse.Namespace) -> int:
    """Prints how far the two are apart."""
    env, n = Walker(tolerance=args.tolerance), args.envs
    opening, key = openings(env, n), jax.random.key(1)
    actions = jax.random.uniform(key, (args.steps, n, 4), minval=-1, maxval=1)

    def compiled() -> Callable:
        step = jax.vmap(partial(env.step, key))  # another one each time: of the same, nothing would be traced again
        return jax.jit(step).lower(opening[0], actions[0]).compile()

    fused, plain = compiled(), by_xla(compiled)
    state, errors, early, flags, ends = opening[0], [], [], 0, 0
    for action in actions:
        (have, have_after), (want, want_after) = fused(state, action), plain(state, action)
        pairs = zip(jax.tree.leaves(have.bodies), jax.tree.leaves(want.bodies), strict=True)
        errors.append(np.max([np.abs(a - b).max(axis=1) for a, b in pairs], axis=0))
        early.append(np.asarray(state.time) < FIRST)
        flags += int(np.sum(have.feet != want.feet))
        ends += int(np.sum(have_after.done != want_after.done))
        over = np.asarray(want_after.done)
        begin = lambda new, old, over=over: jnp.where(over.reshape(-1, *[1] * (old.ndim - 1)), new, old)  # noqa: E731
        state = jax.tree.map(begin, opening[0], want)
    error, is_early = np.array(errors), np.array(early)
    print(f"{device_name()}, tolerance {args.tolerance:g}: by how much the worst body's pose or velocity differs")
    for name, which in (("within episodes", ~is_early), (f"first {FIRST} steps of episodes", is_early)):
        marks = np.quantile(error[which], [0.5, 0.99, 0.999, 1.0]) if which.any() else [np.nan] * 4
        median, p99, p999, most = (f"{x:.0e}" for x in marks)
        print(f"{name}: {which.sum():,} steps, median {median}, p99 {p99}, p99.9 {p999}, largest {most}")
    print(f"ground flags that differ: {flags}; ends of episodes that differ: {ends}")
    return 1 if flags or ends else 0


def rollout(env: Walker, n: int) -> tuple[Callable, Any, int]:
    """As in training: new students, their queues of levels, and noise."""
    from tutelage.envs.bipedal.run import rollout as one_kernel

    seeds = n // SLOTS
    state, obs = jax.tree.map(lambda x: x.reshape(seeds, SLOTS, QUEUE, *x.shape[1:]), openings(env, n * QUEUE))
    new_student = preset("bipedal", "accel").classroom().new_student
    students = jax.vmap(new_student)(jax.random.split(jax.random.key(1), seeds))
    noise = jax.random.normal(jax.random.key(2), (seeds, ROLLOUT, SLOTS, 4))
    weights = one_kernel.Weights(*(x for layer in students.actor.layers for x in (layer.weight, layer.bias)))
    plan = one_kernel.Plan(env.tolerance, judge, env.max_steps, SLOTS, QUEUE, ROLLOUT)
    given = (weights, (Moment(*state[:4]), obs, state.ground), noise * jnp.exp(students.log_std)[:, None, None])
    return partial(one_kernel.play, plan), given, ROLLOUT


def whole_env(env: Walker, n: int) -> tuple[Callable, Any, int]:
    """As `tutelage bench bipedal` times it."""
    actions = jax.random.uniform(jax.random.key(1), (STEPS, n, 4), minval=-1, maxval=1)
    return player(env), (openings(env, n), actions), STEPS


def physics(env: Walker, n: int) -> tuple[Callable, Any, int]:
    """Step after step, whoever falls."""
    state, _ = openings(env, n)
    actions = jax.random.uniform(jax.random.key(1), (STEPS, n, 4), minval=-1, maxval=1)

    def run(moment: Moment, tiles: jax.Array, actions: jax.Array) -> Moment:
        step = jax.vmap(fast.advance(env.tolerance))
        return lax.scan(lambda moment, action: (step(moment, action, tiles).moment, None), moment, actions)[0]

    return run, (Moment(*state[:4]), state.ground, actions), STEPS


TIMED = {"rollout": rollout, "env": whole_env, "physics": physics, "xla-env": whole_env, "xla-physics": physics}


def timed(args: argparse.Namespace) -> int:
    """Prints a line for each."""
    print(f"{device_name()}, tolerance {args.tolerance:g}")
    for name, n in args.what:
        run, given, steps = TIMED[name](Walker(tolerance=args.tolerance), n)
        began = time.perf_counter()
        compile_it = lambda run=run, given=given: jax.jit(run).lower(*given).compile()  # noqa: E731
        program = by_xla(compile_it) if name.startswith("xla") else compile_it()
        compiling = time.perf_counter() - began
        best = best_of(partial(program, *given), REPEATS) / steps
        print(f"{name}:{n}  {1e6 * best:,.1f} µs a step, {n / best / 1e6:.2f} M steps/s, compiled in {compiling:.0f} s")
    return 0


def main() -> None:
    args = arguments()
    tell_xla(WalkerDomain())
    needs_kernels = args.stage == "agree" or any(name == "rollout" for name, _ in args.what)
    if needs_kernels and not kernels_run_here():
        print("There is no GPU here that kernels could run on.", file=sys.stderr)
        sys.exit(2)
    sys.exit({"agree": agree, "time": timed}[args.stage](args))


if __name__ == "__main__":
    main()
