"""Random walkers on random terrain for a long time: is everything finite, and does nobody sink into the ground?

    python bench/walker_soak.py [--envs 65536] [--steps 1e8] [--tolerance 0.001]

Levels of all kinds (the eight parameters over their full ranges), a new start of the same level after each episode.
Counted are values that are not finite, speeds above 200, and bodies whose centre is more than 0.2 m below the lower end
of the ground's edge under it, or as far inside a rectangle. To the left of the world's first edge there is no ground to
sink into. Exits with 1 if anything was counted.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.envs.bipedal import TOLERANCE, Walker, WalkerDomain, WalkerState
from tutelage.envs.bipedal.physics.ground import EDGES, Ground
from tutelage.envs.bipedal.terrain import CELL

CHUNK = 250  # steps of a compiled call
TOO_FAST = 200.0
TOO_DEEP = 0.2


class Tally(NamedTuple):
    """What went wrong, what was largest, and how many episodes ended."""

    not_finite: Int[Array, ""]
    too_fast: Int[Array, ""]
    too_deep: Int[Array, ""]
    fastest: Float[Array, ""]
    deepest: Float[Array, ""]
    episodes: Int[Array, ""]

    @staticmethod
    def empty() -> Tally:
        """Of no steps."""
        none, zero = jnp.zeros((), jnp.int32), jnp.zeros(())
        return Tally(none, none, none, zero, zero, none)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=65_536)
    parser.add_argument("--steps", type=float, default=1e8, help="of all envs together")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    return parser.parse_args()


def sunk(state: WalkerState) -> Float[Array, " envs"]:
    """By how much each walker's worst body is below the ground or inside a rectangle."""
    x, y = state.bodies.x.T, state.bodies.y.T
    cell = jnp.clip(jnp.floor(x / CELL).astype(jnp.int32), 0, EDGES - 1)
    c = Ground(state.ground, jnp.arange(x.shape[1]))(cell)
    below = jnp.minimum(c.y1, c.y2) - y
    inside = jnp.minimum(jnp.minimum(x - c.left, c.right - x), jnp.minimum(c.top - y, y - c.bottom))
    return jnp.where(x < 0, 0.0, jnp.maximum(below, inside)).max(axis=0)


def add(tally: Tally, state: WalkerState, over: Bool[Array, " envs"], finite: Bool[Array, " envs"]) -> Tally:
    """With one more step of all walkers; one whose episode is over is not looked at."""
    bodies = state.bodies
    speed = jnp.abs(jnp.stack([bodies.vx, bodies.vy, bodies.spin])).max(axis=(0, 2))
    finite &= jnp.isfinite(speed)
    speed, depth = jnp.where(finite & ~over, speed, 0.0), jnp.where(finite & ~over, sunk(state), 0.0)
    return Tally(
        tally.not_finite + (~finite).sum(),
        tally.too_fast + (speed > TOO_FAST).sum(),
        tally.too_deep + (depth > TOO_DEEP).sum(),
        jnp.maximum(tally.fastest, speed.max()),
        jnp.maximum(tally.deepest, depth.max()),
        tally.episodes + over.sum(),
    )


def play(env: Walker, opening: WalkerState, state: WalkerState, key: Key[Array, ""]) -> tuple[WalkerState, Tally]:
    """CHUNK steps of random actions."""
    envs = state.time.shape[0]

    def again(old: Array, new: Array, over: Array) -> Array:
        return jnp.where(over.reshape(-1, *(1,) * (new.ndim - 1)), old, new)

    def step(carry: tuple[WalkerState, Tally], key: Key[Array, ""]) -> tuple[Any, None]:
        state, tally = carry
        actions = jax.random.uniform(key, (envs, 4), minval=-1, maxval=1)
        state, after = jax.vmap(env.step)(jnp.broadcast_to(key, (envs,)), state, actions)
        finite = jnp.isfinite(after.obs).all(axis=1) & jnp.isfinite(after.reward)
        tally = add(tally, state, after.done, finite)
        return (jax.tree.map(lambda old, new: again(old, new, after.done), opening, state), tally), None

    return lax.scan(step, (state, Tally.empty()), jax.random.split(key, CHUNK))[0]


def main() -> int:
    args = arguments()
    domain = WalkerDomain(tolerance=args.tolerance)
    env, keys = domain.env(), jax.random.split(jax.random.key(0), args.envs)
    levels = jax.jit(jax.vmap(domain.design().sample))(keys)
    opening = jax.jit(jax.vmap(env.reset))(keys, levels)[0]
    run = jax.jit(lambda state, key: play(env, opening, state, key))
    began = time.perf_counter()
    state, _ = jax.block_until_ready(run(opening, jax.random.key(1)))
    print(f"compiled and warmed up in {time.perf_counter() - began:.0f} s", flush=True)
    calls, tallies, began = math.ceil(args.steps / (args.envs * CHUNK)), [], time.perf_counter()
    for n in range(calls):
        state, tally = run(state, jax.random.fold_in(jax.random.key(2), n))
        tallies.append(jax.device_get(tally))
        print(f"\r{n + 1} of {calls}", end="", file=sys.stderr, flush=True)
    seconds, done = time.perf_counter() - began, calls * CHUNK * args.envs
    total = {name: np.array([getattr(t, name) for t in tallies]) for name in Tally._fields}
    speed = f"{done / seconds / 1e6:.3g} M steps/s on {jax.default_backend()}"
    print(f"\n{done:.2e} steps, {total['episodes'].sum():,} episodes, {speed}")
    print(f"not finite: {total['not_finite'].sum()}")
    print(f"faster than {TOO_FAST:g}: {total['too_fast'].sum()} (fastest {total['fastest'].max():.1f})")
    print(f"deeper than {TOO_DEEP} m: {total['too_deep'].sum()} (deepest {total['deepest'].max():.3f} m)")
    return int(any(total[name].any() for name in ("not_finite", "too_fast", "too_deep")))


if __name__ == "__main__":
    raise SystemExit(main())
