"""Random walkers on random terrain for a long time: is everything finite, and does nobody sink into the ground?

    python bench/walker_soak.py [--envs 65536] [--steps 1e8] [--tolerance 0.001] [--students RUN] [--dump FILE.npz]

Levels of all kinds (the eight parameters over their full ranges), a new start of the same level after each episode.
With `--students`, a run's students act, each on levels of its own buffer, of which one half is edited anew for every
2,000 steps. The first walker of which something is not finite is written to a file, as it was one step before.

Counted are values that are not finite, speeds above 200, and bodies whose centre is more than 0.2 m below the lower end
of the ground's edge under it, or as far inside a rectangle. To the left of the world's first edge there is no ground to
sink into. Exits with 1 if anything was counted.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.envs.bipedal import TOLERANCE, Walker, WalkerDomain, WalkerState
from tutelage.envs.bipedal.physics.ground import EDGES, Ground
from tutelage.envs.bipedal.terrain import CELL
from tutelage.runs.run import Run

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


class Lost(NamedTuple):
    """The first walker of which something was not finite: which it is, −1 for none; it and its action just before."""

    env: Int[Array, ""]
    before: WalkerState
    action: Float[Array, " joints"]

    @staticmethod
    def none(state: WalkerState) -> Lost:
        """Nobody yet."""
        return Lost(jnp.int32(-1), jax.tree.map(lambda x: x[0], state), jnp.zeros(4))

    def found(self, before: WalkerState, action: Array, finite: Bool[Array, " envs"]) -> Lost:
        """After one more step of all walkers."""
        first = jnp.argmin(finite)
        new = (self.env < 0) & ~finite[first]
        mine = Lost(first, jax.tree.map(lambda x: x[first], before), action[first])
        return jax.tree.map(lambda old, one: jnp.where(new, one, old), self, mine)


class Crowd(NamedTuple):
    """Students side by side, each with as many walkers."""

    students: Any
    each: int

    def act(self, key: Key[Array, ""], obs: Float[Array, "envs numbers"]) -> Float[Array, "envs joints"]:
        """An action of every walker, drawn from its student's distribution."""
        own = obs.reshape(-1, self.each, obs.shape[-1])
        noise = jax.random.normal(key, (*own.shape[:2], 4))

        def one(student: Any, obs: Array, noise: Array) -> Array:
            start = jnp.zeros(self.each, bool)
            return student.act((), obs, start)[1].sample(noise)

        return jax.vmap(one)(self.students, own, noise).reshape(obs.shape[0], 4)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=65_536)
    parser.add_argument("--steps", type=float, default=1e8, help="of all envs together")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--students", type=Path, metavar="RUN")
    parser.add_argument("--dump", type=Path, default=Path("lost.npz"))
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


def play(
    env: Walker,
    crowd: Crowd | None,
    opening: tuple[WalkerState, Array],
    now: tuple[WalkerState, Array],
    key: Key[Array, ""],
) -> tuple[tuple[WalkerState, Array], Tally, Lost]:
    """CHUNK steps of all walkers, each a state and what it sees."""
    envs = now[0].time.shape[0]

    def again(old: Array, new: Array, over: Array) -> Array:
        return jnp.where(over.reshape(-1, *(1,) * (new.ndim - 1)), old, new)

    def step(carry: tuple[Any, Tally, Lost], key: Key[Array, ""]) -> tuple[Any, None]:
        (before, obs), tally, lost = carry
        uniform = jax.random.uniform(key, (envs, 4), minval=-1, maxval=1)
        actions = uniform if crowd is None else crowd.act(key, obs)
        state, after = jax.vmap(env.step)(jnp.broadcast_to(key, (envs,)), before, actions)
        finite = jnp.isfinite(after.obs).all(axis=1) & jnp.isfinite(after.reward)
        tally, lost = add(tally, state, after.done, finite), lost.found(before, actions, finite)
        over = after.done | ~finite
        now = jax.tree.map(lambda old, new: again(old, new, over), opening, (state, after.obs))
        return (now, tally, lost), None

    begin = (now, Tally.empty(), Lost.none(now[0]))
    return lax.scan(step, begin, jax.random.split(key, CHUNK))[0]


def openings(args: argparse.Namespace, env: Walker, domain: WalkerDomain) -> tuple[Crowd | None, Any]:
    """Who acts, and what makes new starts of all walkers from a key."""
    design = domain.design()
    if args.students is None:

        def begin(key: Key[Array, ""]) -> tuple[WalkerState, Array]:
            keys = jax.random.split(key, args.envs)
            return jax.vmap(env.reset)(keys, jax.vmap(design.sample)(keys))

        return None, jax.jit(begin)
    state = Run(args.students).state()
    seeds, filled = len(state.buffer.filled), int(state.buffer.filled.min())
    crowd = Crowd(state.learner.student, args.envs // seeds)

    def edited(key: Key[Array, ""], levels: Any) -> Any:
        keys = jax.random.split(key, 3)
        level = jax.tree.map(lambda x: x[jax.random.randint(keys[0], (), 0, filled)], levels)
        other = design.edit(keys[1], level, 3)
        return jax.tree.map(lambda old, new: jnp.where(jax.random.bernoulli(keys[2]), new, old), level, other)

    def of_buffers(key: Key[Array, ""]) -> tuple[WalkerState, Array]:
        keys = jax.random.split(key, (seeds, crowd.each))
        levels = jax.vmap(lambda keys, own: jax.vmap(lambda key: edited(key, own))(keys))(keys, state.buffer.level)
        levels = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), levels)
        return jax.vmap(env.reset)(keys.reshape(-1), levels)

    return crowd, jax.jit(of_buffers)


def main() -> int:
    args = arguments()
    domain = WalkerDomain(tolerance=args.tolerance)
    env = domain.env()
    crowd, begin = openings(args, env, domain)
    run = jax.jit(lambda opening, now, key: play(env, crowd, opening, now, key))
    began = time.perf_counter()
    opening = now = begin(jax.random.key(0))
    envs = opening[1].shape[0]
    now, _, _ = jax.block_until_ready(run(opening, now, jax.random.key(1)))
    print(f"compiled and warmed up in {time.perf_counter() - began:.0f} s", flush=True)
    calls, tallies, began = math.ceil(args.steps / (envs * CHUNK)), [], time.perf_counter()
    for n in range(calls):
        if crowd is not None and n % 8 == 0:
            opening = now = begin(jax.random.fold_in(jax.random.key(3), n))
        now, tally, lost = run(opening, now, jax.random.fold_in(jax.random.key(2), n))
        tallies.append(jax.device_get(tally))
        bad = sum(int(t.not_finite) for t in tallies)
        print(f"\r{n + 1} of {calls}, {bad} not finite", end="", file=sys.stderr, flush=True)
        if int(lost.env) >= 0 and not args.dump.exists():
            leaves = jax.tree_util.tree_flatten_with_path(jax.device_get(lost))[0]
            np.savez(args.dump, **{jax.tree_util.keystr(path): x for path, x in leaves})
            print(f"\n{args.dump}: walker {int(lost.env)}, just before something is not finite", flush=True)
    seconds, done = time.perf_counter() - began, calls * CHUNK * envs
    total = {name: np.array([getattr(t, name) for t in tallies]) for name in Tally._fields}
    speed = f"{done / seconds / 1e6:.3g} M steps/s on {jax.default_backend()}"
    print(f"\n{done:.2e} steps, {total['episodes'].sum():,} episodes, {speed}")
    print(f"not finite: {total['not_finite'].sum()}")
    print(f"faster than {TOO_FAST:g}: {total['too_fast'].sum()} (fastest {total['fastest'].max():.1f})")
    print(f"deeper than {TOO_DEEP} m: {total['too_deep'].sum()} (deepest {total['deepest'].max():.3f} m)")
    return int(any(total[name].any() for name in ("not_finite", "too_fast", "too_deep")))


if __name__ == "__main__":
    raise SystemExit(main())
