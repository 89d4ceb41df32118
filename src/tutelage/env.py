"""The protocols every domain fulfils: an `Env` for the student, a `DesignSpace` for the teacher.

An env is an underspecified POMDP. What it leaves open is the `level`: a pytree of arrays that the teacher chooses.
Both protocols speak of *one* level and *one* episode; batching is `jax.vmap`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

Level = PyTree
Draft = PyTree
State = PyTree
Obs = PyTree
Action = PyTree


@dataclass(frozen=True)
class Discrete:
    """Actions 0 … n − 1."""

    n: int


@dataclass(frozen=True)
class Box:
    """Real vectors of length `size`; the env clips them to [low, high]."""

    size: int
    low: float = -1.0
    high: float = 1.0


class Timestep(NamedTuple):
    """What the student sees of one step, or of a batch of them."""

    obs: Obs
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]  # the task itself ended
    truncated: Bool[Array, "*batch"]  # time ran out first

    @property
    def done(self) -> Bool[Array, "*batch"]:
        """The episode is over."""
        return self.terminated | self.truncated


@runtime_checkable
class Env(Protocol):
    """The student's side. Pure functions; the rollout, not the env, starts the next episode.

    An env is hashable by value (a frozen dataclass), so that a compiled program can be kept for it.
    """

    @property
    def actions(self) -> Discrete | Box: ...

    @property
    def max_steps(self) -> int:
        """No episode is longer than this."""
        ...

    def reset(self, key: Key[Array, ""], level: Level) -> tuple[State, Obs]:
        """Begins an episode. The same key and level begin the same episode."""
        ...

    def step(self, key: Key[Array, ""], state: State, action: Action) -> tuple[State, Timestep]: ...

    def solved(self, episode_return: Float[Array, "..."]) -> Bool[Array, "..."]:
        """Whether an episode with this undiscounted return counts as solved."""
        ...


@runtime_checkable
class HasExports(Protocol):
    """An env of which engines, its functions as WebAssembly, have more than `reset` and `step`."""

    def exports(self) -> Mapping[str, tuple[Literal["level", "state"], Callable[[Any], PyTree]]]:
        """Functions of a level or of a state by name, to arrays; `scene` is what a picture of a state needs."""
        ...


@runtime_checkable
class HasMachines(Protocol):
    """An env that is computed in other ways on other machines."""

    def by_itself(self) -> AbstractContextManager[None]:
        """While this lasts, what is traced is for one env that is computed by itself, not by XLA with others."""
        ...


class Played(NamedTuple):
    """T steps of P slots: what each saw and did, what came of it, and the env's state in each slot after the last."""

    obs: PyTree
    action: PyTree
    reward: Float[Array, "T P"]
    terminated: Bool[Array, "T P"]
    truncated: Bool[Array, "T P"]
    end: PyTree


@runtime_checkable
class Player(Protocol):
    """An env that may be able to make a whole rollout at once."""

    def play(self, student: Any, openings: tuple[State, Obs], noise: Float[Array, "T P n"]) -> Played | None:
        """What a rollout would find, from slots that begin with the results `[P, Q, …]` of their queues' resets.

        None where it is not faster, or cannot be done for this student.
        """
        ...


@runtime_checkable
class DesignSpace(Protocol):
    """The teacher's side: how levels come about, change, are measured, shown and written down."""

    def sample(self, key: Key[Array, ""]) -> Level:
        """A new level from the generator."""
        ...

    def edit(self, key: Key[Array, ""], level: Level, n: int) -> Level:
        """A child of `level`, `n` small random edits away."""
        ...

    def describe(self, level: Level) -> Mapping[str, Float[Array, ""]]:
        """Complexity metrics by name. NaN where one does not apply; averages leave NaN out.

        One called `solvable` is 1 or 0; pages write it as yes or no, and worst cases are sought among solvable levels.
        """
        ...

    def render(self, level: Level) -> np.ndarray:
        """A picture, uint8 `[height, width, 3]`. Runs on the host."""
        ...

    def to_json(self, level: Level) -> dict[str, Any]: ...

    def from_json(self, data: Mapping[str, Any]) -> Level:
        """The level, or a `ValueError` that says what does not fit."""
        ...


@runtime_checkable
class Mutable(DesignSpace, Protocol):
    """A design space in which levels evolve from the plainest one, each a mutation of its parent."""

    def plainest(self, key: Key[Array, ""]) -> Level:
        """The level that everything begins with."""
        ...

    def mutate(self, key: Key[Array, ""], level: Level) -> Level:
        """A child of `level`, changed in every way a little."""
        ...

    def traits(self, level: Level) -> Float[Array, " n"]:
        """What tells kinds of levels apart, in units in which their Euclidean distance means something.

        Levels of equal traits are of one kind, whatever was left to chance.
        """
        ...


class TeacherObs(NamedTuple):
    """What a teacher sees before each step of a procedure."""

    map: Obs  # the draft, as its procedure shows it
    step: Int[Array, "*batch"]  # steps taken so far
    z: Float[Array, "*batch n"]  # uniform in [0, 1), drawn anew at every step: a teacher's only source of variety


@runtime_checkable
class Procedure(Protocol):
    """A way of making a level in a fixed number of steps: an environment for a teacher, as pure functions."""

    @property
    def steps(self) -> int: ...

    @property
    def actions(self) -> Discrete | Box: ...

    def begin(self, key: Key[Array, ""], level: Level | None) -> Draft:
        """What the first step meets; an editing procedure starts from `level`, a designing one from nothing."""
        ...

    def act(self, draft: Draft, step: Int[Array, ""], action: Action) -> Draft: ...

    def finish(self, key: Key[Array, ""], draft: Draft) -> Level:
        """The level that has come of it; what no action decided is left to chance."""
        ...

    def look(self, draft: Draft) -> Obs:
        """The draft as the teacher sees it."""
        ...

    def encoder(self, key: Key[Array, ""], z: int) -> Any:
        """The first part of a teacher: a module from one `TeacherObs` with `z` random numbers to `.size` features."""
        ...


@runtime_checkable
class StepDesign(DesignSpace, Protocol):
    """A design space in which a teacher can design a level step by step."""

    def designing(self) -> Procedure:
        """From nothing to a level; under uniformly random actions as `sample` does it."""
        ...


@runtime_checkable
class StepEdit(DesignSpace, Protocol):
    """A design space in which a teacher can edit a level step by step."""

    def editing(self, n: int) -> Procedure:
        """From a level to its child, `n` edits away; under uniformly random actions as `edit` does it."""
        ...


@runtime_checkable
class BoxDesign(DesignSpace, Protocol):
    """A design space whose levels are vectors of real parameters, each between its `low` and its `high`."""

    @property
    def low(self) -> Any: ...

    @property
    def high(self) -> Any: ...

    def from_vector(self, key: Key[Array, ""], vector: Float[Array, " n"]) -> Level:
        """The level with these parameters; what they leave open is left to chance."""
        ...


@dataclass(frozen=True)
class TestLevel:
    """A held-out level, or a distribution of them: `draw` gives the level of one evaluation episode."""

    __test__ = False  # not a test case, whatever pytest makes of the name

    name: str
    env: Env
    draw: Callable[[Key[Array, ""]], Level]


Suite = tuple[TestLevel, ...]


@dataclass(frozen=True)
class Measure:
    """What tells how well a student does on a test level, and which values of it count as 0 and as 1 in aggregates."""

    column: Literal["solved_rate", "mean_return"] = "solved_rate"
    name: str = "solved rate"
    zero: float = 0.0
    one: float = 1.0
    digits: int = 2
    """Decimals that are shown."""

    def of(self, result: Any) -> float:
        """The value of one evaluation, as it is reported."""
        return float(getattr(result, self.column))

    def normalised(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """(x − zero) / (one − zero), not clipped."""
        return (values - self.zero) / (self.one - self.zero)


Classes = Mapping[str, tuple[str, ...]]
SOLVABLE: Classes = {"solvable": ("no way to the goal", "solvable")}


@runtime_checkable
class Domain(Protocol):
    """One folder of `envs/`: a frozen dataclass of options that builds the parts a run needs.

    Its fields are what a user may set (on the command line as `--env.FIELD`) and what a run's config records.
    """

    @property
    def name(self) -> str:
        """What it is called in presets and on the command line."""
        ...

    def env(self) -> Env: ...

    def design(self) -> DesignSpace: ...

    def encoder(self, key: Key[Array, ""]) -> Any:
        """The first part of a student: a module from one observation to a feature vector of length `.size`."""
        ...

    def suites(self) -> Mapping[str, Suite]:
        """Held-out levels by suite name. The first is the default; `validation`, if there, is played in training."""
        ...

    @property
    def measure(self) -> Measure:
        """What students are compared by on held-out levels."""
        ...

    @property
    def classes(self) -> Classes:
        """Those metrics of `DesignSpace.describe` that are a class, with what each value 0, 1, … means."""
        ...

    def film(self, level: Level, states: State) -> list[np.ndarray]:
        """Pictures of an episode, one for each of the stacked `states` `[T, …]`. Runs on the host."""
        ...


@runtime_checkable
class HasOriginal(Domain, Protocol):
    """A domain that can also play its suites in the environment it was modelled on."""

    def real_suites(self) -> Mapping[str, Suite]:
        """`suites`, in the original; a `UserError` that says what to install if that is missing."""
        ...


@runtime_checkable
class HasFlags(Domain, Protocol):
    """A domain whose programs are faster if XLA is told something before JAX starts."""

    @property
    def xla_flags(self) -> tuple[str, ...]:
        """What stands in XLA_FLAGS then."""
        ...


@runtime_checkable
class HasFormerFields(Protocol):
    """A domain of which there are configs with other fields than it has."""

    @classmethod
    def from_former(cls, fields: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The fields it has for those of a config, and a sentence for the user if they cannot mean quite the same."""
        ...


def bits_of(tree: PyTree) -> bytes:
    """All that the arrays of a level, or of anything else, hold: by these it is told from others."""
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree))


def same_level(a: Level, b: Level) -> Bool[Array, ""]:
    """Exact equality, leaf by leaf."""
    equal = [jnp.all(x == y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]
    return jnp.all(jnp.stack(equal))
