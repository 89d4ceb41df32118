"""How fast it is here: the env alone, and whole student updates of a preset."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tutelage.env import Domain, Env
from tutelage.runs.config import Config
from tutelage.runs.flags import start_jax
from tutelage.runs.run import initial_state
from tutelage.runs.trainer import advance
from tutelage.student import distributions
from tutelage.student.rollout import renewed


@dataclass(frozen=True)
class EnvSpeed:
    """Random actions in many envs at once, observations built, the next level begun when an episode ends."""

    envs: int
    steps_per_second: float


@dataclass(frozen=True)
class UpdateSpeed:
    """Student updates of a method, its share of new-level and edit rollouts included."""

    seeds: int
    compile_seconds: float
    milliseconds: float  # for one student update of all seeds
    steps_per_second: float  # all seeds together
    memory_bytes: int | None  # peak on the device, where it tells


def env_speed(domain: Domain, envs: int, *, steps: int = 512, repeats: int = 3) -> EnvSpeed:
    """Best of a few timed runs."""
    start_jax(domain)
    env, design = domain.env(), domain.design()
    key_level, key_reset, key_act = jax.random.split(jax.random.key(0), 3)
    levels = jax.vmap(design.sample)(jax.random.split(key_level, envs))
    opening = jax.jit(jax.vmap(env.reset))(jax.random.split(key_reset, envs), levels)
    actions = distributions.uniform(key_act, env.actions, (steps, envs))
    play = player(env)
    seconds = best_of(lambda: play(opening, actions), repeats)
    return EnvSpeed(envs, envs * steps / seconds)


def player(env: Env) -> Callable[[Any, jax.Array], Any]:
    """Plays given actions in as many envs as there are openings; each goes from level to level, with its neighbour's
    next. Comes to the last states and the sum of all observations: the compiler must not leave them out.
    """

    @jax.jit
    def play(openings: Any, actions: jax.Array):
        envs = actions.shape[1]
        # The key is the same throughout: what is timed is the env, not a random number generator.
        keys = jnp.broadcast_to(jax.random.key(0), (envs,))

        def step(carry, action):
            state, seen, level = carry
            state, after = jax.vmap(env.step)(keys, state, action)
            level = jnp.where(after.done, (level + 1) % envs, level)
            state, obs = renewed(after.done, lambda x: x[level], openings, (state, after.obs))
            seen = jax.tree.map(lambda total, x: total + x.astype(total.dtype), seen, obs)
            return (state, seen, level), None

        seen = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), openings[1])
        return lax.scan(step, (openings[0], seen, jnp.arange(envs)), actions)[0][:2]

    return play


def best_of(run: Callable[[], Any], repeats: int) -> float:
    """The seconds of the fastest of a few runs, after one that does not count."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return min(times)


def update_speed(config: Config, seeds: int, *, updates: int = 40, warm_up: int = 5) -> UpdateSpeed:
    """Compiles, fills the buffer, warms up, then times a stretch of student updates."""
    start_jax(config.env)
    config = replace(config, seeds=seeds)
    room = config.classroom()
    step = jax.jit(lambda s, target: advance(room, config.method, s, target), donate_argnums=0)
    began = time.perf_counter()
    state = jax.jit(lambda: initial_state(config))()
    program = step.lower(state, jnp.int32(0)).compile()
    compile_seconds = time.perf_counter() - began
    state = reach(program, state, warm_up)
    rollouts, began = _rollouts(state), time.perf_counter()
    state = reach(program, state, warm_up + updates)
    seconds = time.perf_counter() - began
    played = (_rollouts(state) - rollouts) * config.slots * config.steps
    return UpdateSpeed(seeds, compile_seconds, 1e3 * seconds / updates, played / seconds, _memory())


def reach(program: Any, state: Any, target: int) -> Any:
    """The state after so many student updates, by calls of the compiled program."""
    while int(state.updates.min()) < target:
        state = program(state, jnp.int32(target)).with_log(None)
    return jax.block_until_ready(state)


def _rollouts(state: Any) -> int:
    return int(np.asarray(state.rollouts, np.int64).sum())


def _memory() -> int | None:
    stats = jax.devices()[0].memory_stats()
    return None if stats is None else int(stats.get("peak_bytes_in_use", 0))


def device_name() -> str:
    """What the figures were measured on."""
    device = jax.devices()[0]
    return f"{device.device_kind}, JAX {jax.__version__}"


def table(env: Sequence[EnvSpeed], update: Sequence[UpdateSpeed]) -> list[tuple[str, str]]:
    """The figures as label and text."""
    rows = [(f"env alone, {e.envs:,} envs", f"{e.steps_per_second / 1e6:,.2f} M steps/s") for e in env]
    for u in update:
        seeds = "1 seed" if u.seeds == 1 else f"{u.seeds} seeds"
        memory = "" if u.memory_bytes is None else f", {u.memory_bytes / 2**30:.2f} GiB"
        text = f"{u.milliseconds:,.1f} ms, {u.steps_per_second / 1e6:,.2f} M steps/s"
        rows.append((f"student update, {seeds}", f"{text} (compiled in {u.compile_seconds:.0f} s{memory})"))
    return rows
