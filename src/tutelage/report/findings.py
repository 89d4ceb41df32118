"""What a method's buffers held, found once and used by several parts of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np

from tutelage.errors import UserError
from tutelage.report.descent import levels_of
from tutelage.report.gather import Comparison, Group, Member
from tutelage.report.genealogy import Pedigree, Tree, concentration, largest_family
from tutelage.report.holdings import Holdings, described, holdings, landmarks
from tutelage.report.layout import Gap
from tutelage.report.roses import CLASSES, Composition, Rose, shares_of
from tutelage.report.trials import trials
from tutelage.runs.browse import Found

BEST = 100  # levels of highest regret that the paper looks at
MIN_PETALS = 4  # a rose with fewer says nothing


@dataclass(frozen=True, eq=False)
class Findings:
    """The levels of one method."""

    group: Group

    @cached_property
    def best(self) -> list[tuple[Member, Holdings]]:
        """Each seed's best levels at the end."""
        found = []
        for member in self.group.members:
            try:
                found += [(member, x) for x in holdings(member, top=BEST) if len(x)]
            except UserError:
                continue
        return found

    @cached_property
    def family(self) -> tuple[Member, Tree] | None:
        """Of all seeds, the largest family among the best levels."""
        trees = []
        for member, x in self.best:
            pedigree = _pedigree(member, x.seed)
            tree = largest_family(pedigree, x.facts["id"]) if pedigree else None
            if tree is not None:
                trees.append((member, tree))
        return max(trees, key=lambda t: (len(t[1].leaves), t[1].generation(t[1].deepest)), default=None)

    def relatives(self, levels: Sequence[int]) -> list[Found]:
        """Levels of the family, described."""
        assert self.family is not None
        member, tree = self.family
        stacked = jax.tree.map(lambda x: x[tree.pedigree.places[list(levels)]], tree.pedigree.admitted.levels)
        return levels_of(tree, levels, described(member, stacked))

    def concentrations(self) -> dict[int, list[float]]:
        """At each landmark, for each seed: the share of its best levels that ten ancestors gave rise to."""
        found: dict[int, list[float]] = {}
        for member, updates in self._landmarks():
            for x in _held(member, updates, BEST):
                pedigree = _pedigree(member, x.seed)
                share = concentration(pedigree, x.facts["id"]) if pedigree else np.nan
                if np.isfinite(share):
                    found.setdefault(updates, []).append(share)
        return found

    def compositions(self, measure: str) -> Composition | None:
        """The buffers' shares of a measure's classes at each landmark."""
        found: dict[int, list[np.ndarray]] = {}
        for member, updates in self._landmarks():
            for x in _held(member, updates, None):
                if measure in x.metrics:
                    found.setdefault(updates, []).append(shares_of(x.metrics[measure], len(CLASSES[measure])))
        shares = np.array([np.mean(found[updates], axis=0) for updates in found])
        return Composition(self.group.label, tuple(found), shares) if found else None

    def roses(self, colour: str) -> list[Rose]:
        """The best levels that were solved, at up to three landmarks of the first seed."""
        if not self.best or len(petals := self.petals) < MIN_PETALS:
            return []
        member, first = self.best[0]
        found = []
        for updates in landmarks(member, 3):
            held = next(x for x in holdings(member, updates, BEST) if x.seed == first.seed)
            solved = trials(member, held.seed, [updates], held.levels).solved[0] > 0
            values = np.stack([held.metrics[name] for name in petals], axis=1)
            found.append(Rose(self.group.label, colour, updates, np.nan_to_num(values[solved])))
        return found

    @property
    def petals(self) -> list[str]:
        """Measures that are amounts, not classes."""
        names = self.best[0][1].metrics if self.best else {}
        return [name for name in names if name not in CLASSES]

    def _landmarks(self) -> list[tuple[Member, int]]:
        return [(member, updates) for member in self.group.members for updates in landmarks(member)]


def _pedigree(member: Member, seed: int) -> Pedigree | None:
    """Of the seed's levels, where those that the run admitted are on record."""
    try:
        return Pedigree(member.admitted, seed)
    except UserError:
        return None


def _held(member: Member, updates: int, top: int | None) -> list[Holdings]:
    try:
        return [x for x in holdings(member, updates, top) if len(x)]
    except UserError:
        return []


@dataclass(frozen=True, eq=False)
class Volume:
    """One env's comparison with the findings of each of its methods."""

    comparison: Comparison
    film: str | None = None  # the level to film students on, if one was asked for

    @cached_property
    def findings(self) -> tuple[Findings, ...]:
        """In the order of the groups."""
        return tuple(Findings(group) for group in self.comparison.groups)

    @property
    def with_levels(self) -> list[Findings]:
        """Those that have a buffer to show."""
        found = [f for f in self.findings if f.best]
        if not found:
            raise Gap("No run has a whole checkpoint with levels in its buffer.")
        return found
