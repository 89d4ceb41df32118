"""The levels of a method: what its buffers held, and the families of the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import jax.numpy as jnp
import numpy as np

from tutelage.errors import UserError
from tutelage.report.facts.ancestry import Pedigree, Tree, concentration, largest_family
from tutelage.report.facts.comparison import Group
from tutelage.report.facts.runs import Member, Missing
from tutelage.report.facts.students import LEVELS, Trials, trials
from tutelage.runs.browse import Found, Holdings, best_of

BEST = 100  # levels of highest regret that the paper looks at
MIN_PETALS = 4  # a rose with fewer says nothing

Thing = TypeVar("Thing")
Readable = TypeVar("Readable")


@dataclass(frozen=True)
class Composition:
    """The shares `[C, K]` of K classes in a method's buffers at C checkpoints."""

    label: str
    checkpoints: Sequence[int]
    shares: np.ndarray


@dataclass(frozen=True)
class Rose:
    """Solved levels of a method at a checkpoint: values `[N, M]` of M measures."""

    label: str
    updates: int
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Frontier:
    """Levels of one family, by generation, each played by students of several checkpoints."""

    found: tuple[Found, ...]
    line: tuple[int, ...]  # which of them are one line of descent
    trials: Trials

    @cached_property
    def labels(self) -> list[str]:
        """The checkpoints, in words."""
        return [f"update {updates:,}" for updates in self.trials.checkpoints]


@dataclass(frozen=True, eq=False)
class Family:
    """Levels of one seed that descend from one level of the generator: the best of them, and their ancestors."""

    member: Member
    tree: Tree

    def levels(self, numbers: Sequence[int]) -> Holdings:
        """Some of them, as they were when they were admitted."""
        pedigree = self.tree.pedigree
        record = pedigree.admitted.record.at(pedigree.places[list(numbers)])
        return Holdings.of(record, pedigree.seed, self.member.domain.design())

    def frontier(self) -> Frontier:
        """Plays them with the students of up to four checkpoints."""
        checkpoints, tree = landmarks(self.member), self.tree
        if len(checkpoints) < 2:
            folder = self.member.run.path / "checkpoints"
            raise Missing(
                f"`{folder}` of {self.member.name} has one checkpoint only, and it takes two to see a change: "
                "train with --archive-every, which keeps more, and copy them along with the run."
            )
        line = tree.pedigree.line(tree.deepest)
        line = [line[i] for i in evenly(len(line), LEVELS // 2)]
        others = sorted({level for other in tree.lines for level in other} - set(line))
        others = [others[i] for i in evenly(len(others), LEVELS - len(line))]
        levels = sorted([*line, *others], key=lambda level: (tree.generation(level), level))
        held = self.levels(levels)
        played = trials(self.member, tree.pedigree.seed, checkpoints, held.record.level)
        return Frontier(tuple(held), tuple(n for n, level in enumerate(levels) if level in line), played)


@dataclass(frozen=True, eq=False)
class Findings:
    """What can be found out about the levels of one method. Raises `Missing` where files are missing that it takes."""

    group: Group

    @cached_property
    def best(self) -> list[tuple[Member, Holdings]]:
        """Each seed's best levels at the end, at least one."""
        held = readable(lambda member: self._held(member, member.newest), self.group.members)
        found = [(member, x.first(BEST)) for members in held for member, x in members if len(x)]
        if not found:
            raise Missing(f"The buffers of {self.group.label} hold no levels yet.")
        return found

    @cached_property
    def family(self) -> Family | None:
        """The largest family of all seeds among the best levels; None if none of these was edited."""
        edited = [(member, x) for member, x in self.best if (x.record.generation > 0).any()]
        if not edited:
            return None
        found = [x for x in readable(lambda x: _family(*x), edited) if x is not None]
        if not found:
            folders = " and ".join(dict.fromkeys(f"`{member.run.path / 'levels'}`" for member, _ in edited))
            raise Missing(
                f"The levels of highest score and their parents are not on record in {folders}: copy it whole."
            )
        return max(found, key=lambda f: (len(f.tree.leaves), f.tree.generation(f.tree.deepest)))

    @cached_property
    def concentrations(self) -> dict[int, list[float]]:
        """At each landmark, for each seed: the share of its best levels that ten ancestors gave rise to."""
        found: dict[int, list[float]] = {}
        for updates, member, x in self._landmarks():
            share = concentration(Pedigree(member.admitted, x.seed), x.first(BEST).record.id)
            if np.isfinite(share):
                found.setdefault(updates, []).append(share)
        return found

    def composition(self, measure: str, classes: int) -> Composition | None:
        """The buffers' shares of a measure's classes at each landmark."""
        found: dict[int, list[np.ndarray]] = {}
        for updates, _, x in self._landmarks():
            if measure in x.metrics:
                found.setdefault(updates, []).append(shares_of(x.metrics[measure], classes))
        shares = np.array([np.mean(found[updates], axis=0) for updates in found])
        return Composition(self.group.label, tuple(found), shares) if found else None

    def roses(self, petals: Sequence[str]) -> list[Rose]:
        """The best levels that were solved at least once in training, at up to three landmarks of the first seed."""
        member, first = self.best[0]
        if len(petals) < MIN_PETALS:
            return []
        found = []
        for updates in landmarks(member, 3):
            held = next(x.first(BEST) for _, x in self._held(member, updates) if x.seed == first.seed)
            values = np.stack([held.metrics[name] for name in petals], axis=1)
            found.append(Rose(self.group.label, updates, np.nan_to_num(values[_solved(member, updates, held)])))
        return found

    @property
    def metrics(self) -> list[str]:
        """The measures of the domain's levels."""
        return list(self.best[0][1].metrics)

    def _landmarks(self) -> list[tuple[int, Member, Holdings]]:
        """What every seed held at each landmark, as far as it can be read."""
        wanted = [(member, updates) for member in self.group.members for updates in landmarks(member)]
        held = readable(lambda at: (at[1], self._held(*at)), wanted)
        return [(updates, member, x) for updates, members in held for member, x in members if len(x)]

    def _held(self, member: Member, updates: int | None) -> list[tuple[Member, Holdings]]:
        """What each seed that counts held at a checkpoint; found once."""
        key = (member.run.path, updates)
        if key not in self._found:
            buffer, design = member.buffer(updates), member.domain.design()
            self._found[key] = [(member, best_of(buffer, member.place(seed), seed, design)) for seed in member.seeds]
        return self._found[key]

    @cached_property
    def _found(self) -> dict[object, list[tuple[Member, Holdings]]]:
        return {}


def landmarks(member: Member, n: int = 4) -> list[int]:
    """At most `n` checkpoints of trained students, evenly spaced."""
    return [member.landmarks[i] for i in evenly(len(member.landmarks), n)]


def evenly(length: int, n: int) -> list[int]:
    """At most `n` of the indices 0 … length − 1, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(n, length)).round().astype(int)).tolist() if length else []


def shares_of(values: np.ndarray, classes: int) -> np.ndarray:
    """How much of `values` is each of 0 … classes − 1."""
    return np.array([(values == k).mean() for k in range(classes)])


def readable(read: Callable[[Thing], Readable], things: Iterable[Thing]) -> list[Readable]:
    """What can be read of some things; raises `Missing` only if none of them can."""
    found, gone = [], {}
    for thing in things:
        try:
            found.append(read(thing))
        except UserError as error:
            gone[str(error)] = None
    if gone and not found:
        raise Missing(" ".join(gone))
    return found


def _solved(member: Member, updates: int, held: Holdings) -> np.ndarray:
    """Which levels of a buffer some episode solved, by the largest return that was seen on each."""
    buffer, place = member.buffer(updates), member.place(held.seed)
    returns = dict(zip(buffer.id[place].tolist(), buffer.best_return[place].tolist(), strict=True))
    seen = jnp.array([returns[i] for i in held.record.id.tolist()])
    return np.asarray(member.domain.env().solved(seen))


def _family(member: Member, x: Holdings) -> Family | None:
    tree = largest_family(Pedigree(member.admitted, x.seed), x.record.id)
    return None if tree is None else Family(member, tree)
