"""What keeps a training from coming to anything: envs that break their promises, and numbers that are not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Key, PyTree

from tutelage.curricula.buffer import Buffer
from tutelage.curricula.log import PHASES, Log
from tutelage.curricula.state import State
from tutelage.env import Env, Level
from tutelage.errors import UserError
from tutelage.runs.config import Config
from tutelage.runs.run import remembered
from tutelage.student import distributions
from tutelage.student.learning import Learner

SLOTS = 8  # levels that an env is tried on
SUSPECTS = 256  # levels that are suspected, and as many random ones, where what is not finite is looked for
LOSSES = ("ppo/policy_loss", "ppo/value_loss", "ppo/entropy")


def finite(s: State) -> dict[str, Bool[Array, ""]]:
    """Which of a seed's learners and their optimisers hold finite numbers only. Cheap, and under jit."""
    others = jax.tree.leaves(s.own, is_leaf=_is_learner)
    parts = {"the student's parameters": s.learner.student, "the state of the student's optimiser": s.learner.optimiser}
    parts["another learner's parameters"] = [x for x in others if _is_learner(x)]
    return {name: _all_finite(tree) for name, tree in parts.items()}


def _is_learner(x: Any) -> bool:
    return isinstance(x, Learner)


def _all_finite(tree: PyTree) -> Bool[Array, ""]:
    leaves = [x for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]
    return jnp.all(jnp.stack([jnp.isfinite(x).all() for x in leaves])) if leaves else jnp.bool_(True)


def diverged(finite: Mapping[str, np.ndarray], rows: Iterable[Mapping[str, Any]]) -> tuple[str, int] | None:
    """The first quantity that is not finite, and the seed it is of; `finite` is by seed, in the order of the rows."""
    for n, row in enumerate(rows):
        for name in [f"{phase}/return" for phase in PHASES]:
            if _is_strange(row.get(name)):
                return "rewards", row["seed"]
        for name in LOSSES:
            if _is_strange(row.get(name)):
                return f"the {name.removeprefix('ppo/').replace('_', ' ')}", row["seed"]
        for name, flags in finite.items():
            if not flags[n]:
                return name, row["seed"]
    return None


def _is_strange(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def try_env(config: Config, suspects: Level | None = None) -> None:
    """Plays random actions on a few levels for as long as an episode may last; names what breaks `Env`'s promises.

    With `suspects`, these levels are played as well, and many random ones.
    """
    env, name = config.env.env(), config.env.name
    count = SLOTS if suspects is None else SUSPECTS
    levels = jax.vmap(config.env.design().sample)(jax.random.split(jax.random.key(1), count))
    if suspects is not None:
        levels = jax.tree.map(lambda *x: jnp.concatenate(x), levels, suspects)
    seen = jax.device_get(_trial(config)(jax.random.key(0), levels))
    for path, good in jax.tree_util.tree_flatten_with_path(seen["obs"])[0]:
        if not good:
            part = jax.tree_util.keystr(path)
            raise UserError(f"The env {name!r} gives observations{' ' * bool(part)}{part} that are not finite.")
    if not seen["reward"]:
        raise UserError(f"The env {name!r} gives rewards that are not finite.")
    if not seen["ended"].all():
        raise UserError(
            f"The env {name!r} does not end its episodes: after its max_steps of {env.max_steps}, "
            f"{int((~seen['ended']).sum())} of {len(seen['ended'])} with random actions went on."
        )


def unscored(log: Log) -> Level:
    """The first of the levels that were offered to buffers with a score that is not finite."""
    journal, shape = log.journal, log.journal.score.shape
    written = np.arange(shape[1])[None, :, None] < np.asarray(log.rows)[:, None, None]
    strange = np.broadcast_to(written, shape) & ~np.isfinite(journal.score)
    return jax.tree.map(lambda x: np.asarray(x)[strange][:SUSPECTS], journal.level)


def held(buffer: Buffer) -> Level:
    """The first levels of one seed's buffer."""
    return jax.tree.map(lambda x: x[: min(int(buffer.filled), SUSPECTS)], buffer.level)


@remembered
def _trial(config: Config) -> Any:
    env = config.env.env()
    return jax.jit(lambda key, levels: _play_at_random(env, key, levels))


def _play_at_random(env: Env, key: Key[Array, ""], levels: Level) -> dict[str, PyTree]:
    """Whether each observation and the rewards were finite while episodes lasted, and which episodes ended."""
    slots = jax.tree.leaves(levels)[0].shape[0]
    keys = jax.random.split(key)
    state, obs = jax.vmap(env.reset)(jax.random.split(keys[0], slots), levels)
    fine = {"obs": jax.tree.map(_finite, obs), "reward": jnp.bool_(True), "ended": jnp.zeros(slots, bool)}

    def step(t: Array, carry: tuple[PyTree, dict[str, PyTree]]) -> tuple[PyTree, dict[str, PyTree]]:
        state, fine = carry
        key_act, key_env = jax.random.split(jax.random.fold_in(keys[1], t))
        actions = distributions.uniform(key_act, env.actions, (slots,))
        state, after = jax.vmap(env.step)(jax.random.split(key_env, slots), state, actions)
        over = fine["ended"]  # what an env does after the end of an episode is its own affair
        obs = jax.tree.map(lambda ok, x: ok & _finite(x, over | after.done), fine["obs"], after.obs)
        return state, {"obs": obs, "reward": fine["reward"] & _finite(after.reward, over), "ended": over | after.done}

    return lax.fori_loop(0, env.max_steps, step, (state, fine))[1]


def _finite(x: Array, but: Bool[Array, " slots"] | None = None) -> Bool[Array, ""]:
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.bool_(True)
    good = jnp.isfinite(x)
    return good.all() if but is None else (good | but.reshape(-1, *[1] * (x.ndim - 1))).all()
