"""Making a level as an environment of its own, in which a teacher acts as a student does in the env."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from tutelage.env import (
    Action,
    Box,
    BoxDesign,
    DesignSpace,
    Discrete,
    Draft,
    Level,
    Procedure,
    StepDesign,
    StepEdit,
    TeacherObs,
    Timestep,
)
from tutelage.student.nets import Flatten


class Progress(NamedTuple):
    """How far a level has come."""

    draft: Draft
    step: Int[Array, ""]


@dataclass(frozen=True)
class Drafting:
    """A procedure as an `Env`: an episode makes one level and is over with the rollout, after `procedure.steps` steps.

    Nothing is paid on the way. What a level is worth shows only once it has been played, and is entered as the last
    step's reward then.
    """

    procedure: Procedure
    z: int
    """How many random numbers the teacher sees at each step."""

    @property
    def actions(self) -> Discrete | Box:
        """The procedure's."""
        return self.procedure.actions

    @property
    def max_steps(self) -> int:
        """The procedure's steps."""
        return self.procedure.steps

    def reset(self, key: Key[Array, ""], level: Level | None) -> tuple[Progress, TeacherObs]:
        """An empty draft, or one that starts from `level`."""
        key_begin, key_z = jax.random.split(key)
        at = Progress(self.procedure.begin(key_begin, level), jnp.int32(0))
        return at, self._observe(key_z, at)

    def step(self, key: Key[Array, ""], state: Progress, action: Action) -> tuple[Progress, Timestep]:
        """One step of the procedure."""
        draft = self.procedure.act(state.draft, state.step, action)
        at, no = Progress(draft, state.step + 1), jnp.bool_(False)
        return at, Timestep(self._observe(key, at), jnp.zeros(()), no, no)

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """A teacher has nothing to solve; it may gain something."""
        return episode_return > 0

    def _observe(self, key: Key[Array, ""], at: Progress) -> TeacherObs:
        return TeacherObs(self.procedure.look(at.draft), at.step, jax.random.uniform(key, (self.z,)))


@dataclass(frozen=True)
class BoxDesigning:
    """Sets the parameters of a box design one after another, from the middle of their ranges.

    An action is any real number; its tanh, in (−1, 1), is where the parameter lies in its range. The squashing thus
    belongs to the procedure, and the teacher's log-probabilities are those of the Gaussian it drew from. (The
    reference implementation evaluates that Gaussian at the squashed number instead, which is no density of anything.)
    """

    design: BoxDesign

    actions = Box(1, -math.inf, math.inf)
    """A real number."""

    @property
    def steps(self) -> int:
        """One for each parameter."""
        return len(self.design.low)

    def begin(self, key: Key[Array, ""], level: None) -> Float[Array, " n"]:
        """All parameters in the middle."""
        return jnp.zeros(self.steps)

    def act(self, draft: Float[Array, " n"], step: Int[Array, ""], action: Float[Array, "1"]) -> Float[Array, " n"]:
        """Sets one parameter."""
        return draft.at[step].set(jnp.tanh(action[0]))

    def finish(self, key: Key[Array, ""], draft: Float[Array, " n"]) -> Level:
        """Stretches (−1, 1) to the ranges."""
        low, high = jnp.asarray(self.design.low, jnp.float32), jnp.asarray(self.design.high, jnp.float32)
        return self.design.from_vector(key, low + 0.5 * (draft + 1) * (high - low))

    def look(self, draft: Float[Array, " n"]) -> Float[Array, " n"]:
        """The parameters, within (−1, 1)."""
        return draft

    def encoder(self, key: Key[Array, ""], z: int) -> Flatten:
        """Parameters, step and random numbers as they are."""
        return Flatten(self.steps + 1 + z)


def designing(design: DesignSpace) -> Procedure:
    """How a teacher makes a level from nothing."""
    if isinstance(design, StepDesign):
        return design.designing()
    assert isinstance(design, BoxDesign), "a config refuses other design spaces"
    return BoxDesigning(design)


def editing(design: DesignSpace, n: int) -> Procedure:
    """How a teacher makes a level from another one by `n` edits."""
    assert isinstance(design, StepEdit), "a config refuses other design spaces"
    return design.editing(n)
