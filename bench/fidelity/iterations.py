"""Where iterations over velocities end, and how far that is from where all 180 of them do.

    python bench/fidelity/iterations.py [--run results/bipedal-accel] [--steps 400]

The students of a run walk on levels of its buffer, and walkers with random actions fall on the same. Every seventh
step, and the first six, are solved again from where they begin, once with iterations that end at the default tolerance
and once with all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tut
from tutelage.envs.bipedal import TOLERANCE, Walker, WalkerState
from tutelage.envs.bipedal.physics import velocity
from tutelage.envs.bipedal.physics.ground import Ground
from tutelage.envs.bipedal.physics.step import feel, problem, survey
from tutelage.envs.bipedal.physics.velocity import ROUNDS, Problem, Span
from tutelage.envs.bipedal.run.moment import Moment, unpacked
from tutelage.student.rollout import renewed

LEVELS = 16  # of each seed's buffer
FIRST, EVERY = 6, 7  # the first steps, and then every seventh, are looked at
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)

Policy = Callable[[jax.Array, jax.Array], jax.Array]  # of a key, and of what walkers see


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("results/bipedal-accel"))
    parser.add_argument("--steps", type=int, default=400)
    return parser.parse_args()


def problems(env: Walker, state: Any, policy: Policy, steps: int) -> Problem:
    """What the solver was given in the steps that are looked at, one after the other on the last axis."""
    levels = jax.tree.map(lambda x: x[:, :LEVELS].reshape(-1, *x.shape[2:]), state.buffer.level)
    at = openings = jax.jit(jax.vmap(partial(env.reset, jax.random.key(0))))(levels)
    found = []
    for k in range(steps):
        action = policy(jax.random.key(k), at[1])
        if k < FIRST or k % EVERY == 0:
            found.append(jax.device_get(given(at[0], action)))
        at = onwards(env, openings, at[0], action)
    return jax.tree.map(lambda *x: np.concatenate(x, axis=-1), *found)


def students_of(state: Any) -> Policy:
    """Each seed's student on the levels of its buffer."""

    @jax.jit
    def act(key: jax.Array, obs: jax.Array) -> jax.Array:
        obs, none = obs.reshape(-1, LEVELS, obs.shape[-1]), jnp.zeros(LEVELS, bool)
        of_one = lambda student, obs, noise: student.act((), obs, none)[1].sample(noise)  # noqa: E731
        noise = jax.random.normal(key, (*obs.shape[:2], 4))
        return jax.vmap(of_one)(state.learner.student, obs, noise).reshape(-1, 4)

    return act


def random_actions(key: jax.Array, obs: jax.Array) -> jax.Array:
    """Whatever is seen."""
    return jax.random.uniform(key, (len(obs), 4), minval=-1, maxval=1)


@partial(jax.jit, static_argnums=0)
def onwards(env: Walker, openings: Any, state: WalkerState, action: jax.Array) -> Any:
    """A step; an episode that is over begins again."""
    state, after = jax.vmap(partial(env.step, jax.random.key(0)))(state, action)
    return renewed(after.done, lambda x: x, openings, (state, after.obs))


@jax.jit
def given(state: WalkerState, action: jax.Array) -> Problem:
    """What the solver is given in a step."""
    world = unpacked(jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), Moment(*state[:4])))
    look = Ground(state.ground, jnp.arange(len(action)))
    return problem(world, tuple(action.T), feel(world, survey(world, look), look))


@jax.jit
def compared(asked: Problem) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Iterations made, and by how much the worst velocity and the worst impulse differ from those of all."""
    task, course = velocity.prepared(asked)
    at, made = velocity.at_first(course), jnp.int32(0)
    for k in range(ROUNDS):
        made += velocity.length(k) * at.going
        at = velocity.rounds(partial(velocity.iterate, task), at, Span(k, k + 1, TOLERANCE))
    have, want = velocity.solution(task, at.course), velocity.solve_all(asked)
    return made, worst(have[0], want[0]), worst(have[1:], want[1:])


def worst(one: Any, other: Any) -> jax.Array:
    """The largest difference of each walker's."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return jnp.stack([jnp.abs(a - b).reshape(-1, a.shape[-1]).max(0) for a, b in pairs]).max(0)


def main() -> None:
    args = arguments()
    run = tut.Run(args.run)
    env, state = Walker(run.config.env.rules), run.state()
    for name, policy in (("students", students_of(state)), ("random actions", random_actions)):
        made, velocities, impulses = map(np.asarray, compared(problems(env, state, policy, args.steps)))
        print(f"{name}: {len(made):,} steps, {made.mean():.1f} iterations on average")
        for what, error in (("velocities", velocities), ("impulses", impulses)):
            print(f"  {what}: " + ", ".join(f"{100 * q:g} %: {np.quantile(error, q):.0e}" for q in QUANTILES))


if __name__ == "__main__":
    main()
