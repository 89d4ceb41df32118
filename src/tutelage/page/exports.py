"""What an engine exports: the functions of an env, of its design space and of a student, with their arguments by name.

Every env and every design space has the functions of their protocols. What pictures of it need besides, an env says
itself (`HasExports`).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from tutelage.curricula import buffer as buffers
from tutelage.curricula.buffer import BufferConfig
from tutelage.env import Box, DesignSpace, Discrete, Env, HasExports, HasMachines, Level, Obs, TestLevel
from tutelage.page import keeping
from tutelage.page.keeping import Candidate, Renewal
from tutelage.page.scoring import Episode, Setting, score
from tutelage.student import distributions
from tutelage.student.nets import Student

# Shapes of arguments, which stand for arrays.
KEY: Any = jax.eval_shape(lambda: jax.random.key(0))
NUMBER: Any = jax.ShapeDtypeStruct((), jnp.float32)
COUNT: Any = jax.ShapeDtypeStruct((), jnp.int32)
FLAG: Any = jax.ShapeDtypeStruct((), jnp.bool_)


class Export(NamedTuple):
    """One function: its arguments, each with the name of its record and shapes, and the names of its results."""

    call: Callable[..., PyTree]
    takes: Mapping[str, PyTree]
    gives: tuple[str, ...]
    often: bool = True  # whether its speed counts for more than its size


Exports = dict[str, Export]


class Outcome(NamedTuple):
    """A step's `Timestep`, but for what is seen."""

    reward: Float[Array, ""]
    terminated: Array
    truncated: Array


def of_design(design: DesignSpace, edits: Iterable[int]) -> Exports:
    """Where levels come from, how they change, how they are measured."""
    level = jax.eval_shape(design.sample, KEY)

    def edit(n: int) -> Export:
        takes = {"key": KEY, "level": level}
        return Export(lambda key, level: design.edit(key, level, n), takes, ("level",), often=False)

    return {
        "sample": Export(design.sample, {"key": KEY}, ("level",), often=False),
        **{f"edit_{n}": edit(n) for n in sorted(set(edits))},
        "describe": Export(design.describe, {"level": level}, ("metrics",)),
    }


def of_keeping(level: Level, config: BufferConfig) -> Exports:
    """A small level buffer with these rules, to which levels are offered one at a time."""
    config = keeping.small(config)
    buffer = jax.eval_shape(lambda: buffers.empty(level, config))
    candidate = Candidate(level, COUNT, COUNT, COUNT, NUMBER, NUMBER)
    renewal = Renewal(COUNT, NUMBER, NUMBER)
    insert, pick = partial(keeping.insert, config), partial(keeping.pick, config)
    return {
        "empty": Export(lambda: buffers.empty(level, config), {}, ("buffer",), often=False),
        "insert": Export(insert, {"buffer": buffer, "candidate": candidate}, ("buffer", "inserted"), often=False),
        "pick": Export(pick, {"key": KEY, "buffer": buffer}, ("buffer", "slot"), often=False),
        "renew": Export(keeping.renew, {"buffer": buffer, "renewal": renewal}, ("buffer",), often=False),
    }


def of_env(env: Env, level: Level) -> Exports:
    """How an episode begins, goes on and is judged; and what the env itself adds."""
    state, _ = jax.eval_shape(env.reset, KEY, level)
    shapes = {"level": level, "state": state}
    own = env.exports() if isinstance(env, HasExports) else {}
    exports = {
        "reset": Export(env.reset, {"key": KEY, "level": level}, ("state", "obs")),
        "step": _step(env, state),
        "solved": Export(env.solved, {"return": NUMBER}, ("solved",)),
        **{name: Export(call, {of: shapes[of]}, (name,)) for name, (of, call) in own.items()},
    }
    return {name: export._replace(call=_by_itself(env, export.call)) for name, export in exports.items()}


def of_scores(env: Env, longest: int) -> Exports:
    """What an episode of at most so many steps says of its level."""

    def zeros() -> tuple[Episode, Setting]:
        numbers, flags, number = jnp.zeros(longest), jnp.zeros(longest, bool), jnp.zeros(())
        return Episode(numbers, numbers, numbers, flags, flags), Setting(number, number, number, number)

    episode, setting = jax.eval_shape(zeros)
    takes = {"episode": episode, "setting": setting}
    return {"score": Export(partial(score, env), takes, ("scores",), often=False)}


def of_keys() -> Exports:
    """One key from which two follow."""
    return {"split": Export(jax.random.split, {"key": KEY}, ("keys",))}


def of_draw(level: TestLevel) -> Export:
    """Where a held-out level comes from."""
    return Export(level.draw, {"key": KEY}, ("level",), often=False)


def of_student(student: Student, actions: Discrete | Box, obs: Obs) -> Exports:
    """One act of one student that is `ready`, its weights an argument; and the noise that decides it."""
    weights, rest = eqx.partition(student, _is_array)
    noise = jax.eval_shape(lambda key: distributions.noise(key, actions, ()), KEY)
    memory = jax.eval_shape(lambda: student.memory(1))

    def act(weights: PyTree, memory: PyTree, obs: Obs, start: Array, noise: Array) -> PyTree:
        alone = jax.tree.map(lambda x: x[None], obs)
        after, policy, value = eqx.combine(weights, rest).act(memory, alone, start[None])
        thoughts = _policy(policy) | {"value": value[0]}
        return after, policy.sample(noise[None])[0], thoughts

    takes = {"params": weights, "memory": memory, "obs": obs, "start": FLAG, "noise": noise}
    draw = lambda key: distributions.noise(key, actions, ())  # noqa: E731
    return {
        "act": Export(act, takes, ("memory", "action", "thoughts")),
        "noise": Export(draw, {"key": KEY}, ("noise",)),
    }


def limited(env: Env, limit: Int[Array, ""]) -> Env:
    """The env with another time limit, which need not be known yet."""
    other = copy.copy(env)
    object.__setattr__(other, "max_steps", limit)  # past the checks of a limit that is known
    return other


def _by_itself(env: Env, call: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """The function for a machine that computes one env."""
    if not isinstance(env, HasMachines):
        return call

    def alone(*given: Any) -> PyTree:
        with env.by_itself():
            return call(*given)

    return alone


def _step(env: Env, state: PyTree) -> Export:
    """A step; its time limit is an argument, if it is a field of the env."""

    def step(key: Key[Array, ""], state: PyTree, action: PyTree, limit: Array | None = None) -> PyTree:
        after, seen = (env if limit is None else limited(env, limit)).step(key, state, action)
        return after, seen.obs, Outcome(seen.reward, seen.terminated, seen.truncated)

    takes = {"key": KEY, "state": state, "action": action_of(env.actions)}
    return Export(step, takes | ({"limit": COUNT} if has_limit(env) else {}), ("state", "obs", "outcome"))


def has_limit(env: Env) -> bool:
    """Whether its time limit is a field."""
    return dataclasses.is_dataclass(env) and any(field.name == "max_steps" for field in dataclasses.fields(env))


def action_of(actions: Discrete | Box) -> Any:
    """The shape of one action."""
    return COUNT if isinstance(actions, Discrete) else jax.ShapeDtypeStruct((actions.size,), jnp.float32)


def _is_array(x: Any) -> bool:
    return eqx.is_array(x) or isinstance(x, jax.ShapeDtypeStruct)


def _policy(policy: distributions.Distribution) -> dict[str, Array]:
    """What a distribution of one says."""
    if isinstance(policy, distributions.Categorical):
        return {"probabilities": jax.nn.softmax(policy.logits[0])}
    if isinstance(policy, distributions.Gaussian):
        return {"mean": policy.mean[0], "std": jnp.exp(policy.log_std[0])}
    return {}
