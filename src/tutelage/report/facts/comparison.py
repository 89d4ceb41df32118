"""What a report compares: runs grouped by env and method, their results, and what is amiss with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from tutelage.env import Measure, Suite
from tutelage.report import text
from tutelage.report.facts import provenance
from tutelage.report.facts.runs import Evaluation, Member, Row, evaluations_of, metrics_of, short_names
from tutelage.runs import presets, recipe
from tutelage.runs.config import Config
from tutelage.runs.evaluate import Result
from tutelage.runs.run import Run
from tutelage.statistics import iqm, mean


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one method in one env: their seeds are one sample."""

    label: str
    method: str
    preset: str | None
    members: tuple[Member, ...]

    @property
    def results(self) -> list[Result]:
        """Results of all members on the suite."""
        return [r for member in self.members for r in member.results]

    @property
    def rows(self) -> list[Row]:
        """Metrics of all members."""
        return [row for member in self.members for row in member.rows]

    @property
    def seeds(self) -> int:
        """How many seeds there are."""
        return sum(len(member.seeds) for member in self.members)

    @property
    def slug(self) -> str:
        """The label as a part of file names."""
        return text.slug(self.label)

    def scores(self, score: Callable[[Result], float], levels: Sequence[str]) -> Float[np.ndarray, "seeds levels"]:
        """One row for each seed that was evaluated, NaN where it did not play a level."""
        known = {(r.seed, r.level): score(r) for r in self.results}
        seeds = dict.fromkeys(r.seed for r in self.results)
        rows = [[known.get((seed, level), np.nan) for level in levels] for seed in seeds]
        return np.array(rows, float).reshape(len(seeds), len(levels))


@dataclass(frozen=True, eq=False)
class Comparison:
    """All that is reported of one env."""

    env: str
    suite: str | None
    groups: tuple[Group, ...]

    @property
    def slug(self) -> str:
        """The env as a part of file names."""
        return text.slug(self.env)

    @property
    def members(self) -> list[Member]:
        """All runs, group by group."""
        return [member for group in self.groups for member in group.members]

    @property
    def measure(self) -> Measure:
        """How students are scored."""
        return self.members[0].domain.measure

    @property
    def classes(self) -> Mapping[str, tuple[str, ...]]:
        """Those measures of levels that are a class."""
        return self.members[0].domain.classes

    @property
    def held_out(self) -> Suite:
        """The levels of the suite, as far as the env knows it."""
        return self.members[0].domain.suites().get(self.suite or "", ())

    @cached_property
    def evaluated(self) -> tuple[Group, ...]:
        """The groups that have results."""
        return tuple(g for g in self.groups if g.results)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Every level that any group played, in the suite's order."""
        return tuple(dict.fromkeys(r.level for g in self.groups for r in g.results))

    @cached_property
    def common(self) -> tuple[str, ...]:
        """The levels that every evaluated seed played."""
        scores = [g.scores(self.measure.of, self.levels) for g in self.evaluated]
        whole = [n for n in range(len(self.levels)) if all(np.isfinite(x[:, n]).all() for x in scores)]
        return tuple(self.levels[n] for n in whole)

    def normalised(self, group: Group) -> Float[np.ndarray, "seeds levels"]:
        """Scores that are 0 and 1 where the measure says, on the levels that every seed played."""
        return self.measure.normalised(group.scores(self.measure.of, self.common))

    def iqm(self, group: Group) -> float:
        """A method's interquartile mean."""
        return float(iqm(self.normalised(group)))

    @property
    def repeated(self) -> bool:
        """Some method has more than one seed, so that there is an error to tell."""
        return any(group.seeds > 1 for group in self.groups)

    @property
    def leader(self) -> Group | None:
        """The method of the highest mean."""
        known = self.evaluated if self.common else ()
        return max(known, key=lambda g: float(mean(self.normalised(g))), default=None)


@dataclass(frozen=True)
class Gathered:
    """What a report is about, and sentences on what it is not."""

    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


def gather(runs: Sequence[Run], suite: str | None = None) -> Gathered:
    """Groups runs by env and method; `suite` names the held-out levels to compare on, else the one most runs played."""
    notes: list[str] = []
    paths = [run.path for run in runs]
    names = {path: text.plain(name) for path, name in zip(paths, short_names(paths), strict=True)}
    envs = dict.fromkeys(run.config.env.name for run in runs)
    comparisons = [_comparison([r for r in runs if r.config.env.name == env], names, suite, notes) for env in envs]
    return Gathered(tuple(comparisons), tuple(notes))


def _comparison(runs: Sequence[Run], names: Mapping[Path, str], wanted: str | None, notes: list[str]) -> Comparison:
    evaluations = {run.path: evaluations_of(run, notes) for run in runs}
    suites = {name: [level.name for level in suite] for name, suite in runs[0].config.env.suites().items()}
    suite = wanted or most_played(list(evaluations.values()), suites)
    kinds: defaultdict[str, list[Member]] = defaultdict(list)
    for run in runs:
        members = kinds[repr(sorted(provenance.decisive(run.config).items()))]
        found = covering(evaluations[run.path], suite, suites.get(suite or "", []))
        seeds = _new_seeds(run, names[run.path], members, notes)
        if seeds:
            rows = [row for row in metrics_of(run, notes) if row["seed"] in seeds]
            members.append(Member(run, names[run.path], seeds, rows, found))
    groups = _labelled([kind for kind in kinds.values() if kind])
    comparison = Comparison(runs[0].config.env.name, suite, groups)
    notes += [note for group in groups for member in group.members for note in _shortcomings(member, suite)]
    notes += _inequalities(comparison)
    return comparison


def most_played(runs: Sequence[Sequence[Evaluation]], suites: Mapping[str, list[str]]) -> str | None:
    """The suite that most runs can be compared on, of those that any run played; the domain's order decides a tie."""
    played = {e.suite for evaluations in runs for e in evaluations}
    names = [*(name for name in suites if name in played), *sorted(played - suites.keys())]
    counts = {name: sum(covering(run, name, suites.get(name, [])) is not None for run in runs) for name in names}
    return max(names, key=lambda name: counts[name], default=None)


def covering(evaluations: Sequence[Evaluation], suite: str | None, levels: Sequence[str]) -> Evaluation | None:
    """The newest evaluation on a suite, or on a larger one that has all its levels."""
    for e in evaluations:
        if e.suite == suite and e.results:
            return e
    for e in evaluations:
        if levels and set(levels) <= {r.level for r in e.results}:
            chosen = [r for name in levels for r in e.results if r.level == name]
            return Evaluation(e.suite, e.updates, tuple(chosen))
    return None


def _new_seeds(run: Run, name: str, others: Sequence[Member], notes: list[str]) -> tuple[int, ...]:
    """The run's seeds that no other run of the same settings has: a seed is one sample, however often it is run."""
    seeds = list(run.config.all_seeds)
    for other in others:
        if both := sorted(set(seeds) & set(other.seeds)):
            listed = text.listed([str(seed) for seed in both])
            word = "Seed" if len(both) == 1 else "Seeds"
            notes.append(f"{word} {listed} of {name} would count twice: {other.name} has the same settings.")
            seeds = [seed for seed in seeds if seed not in both]
    return tuple(seeds)


def _labelled(kinds: Sequence[Sequence[Member]]) -> tuple[Group, ...]:
    """Groups by name; what two of the same method differ in is in their labels."""
    firsts = [kind[0].run.config for kind in kinds]
    found = []
    for kind, config, label in zip(kinds, firsts, _labels(firsts), strict=True):
        closest = recipe.closest_preset(config)
        found.append(Group(label, presets.method_name(config.method), closest and closest[0], tuple(kind)))
    return tuple(found)


def _labels(different: Sequence[Config[Any, Any]]) -> list[str]:
    """The methods' names, with as many settings as it takes to tell them apart, and with two for the reader."""
    titles = [text.title(type(config.method).__name__) for config in different]
    settings = [provenance.decisive(config) for config in different]
    for n in range(2, 1 + max(map(len, settings), default=2)):
        labels = []
        for title, mine in zip(titles, settings, strict=True):
            rivals = [other for t, other in zip(titles, settings, strict=True) if t == title]
            labels.append(title + _distinction(mine, rivals, n))
        if len(set(labels)) == len(labels):
            return labels
    return [f"{title} {n}" for n, title in enumerate(titles, 1)]


def _distinction(settings: Mapping[str, Any], rivals: Sequence[Mapping[str, Any]], n: int) -> str:
    different = [name for name in settings if any(r.get(name) != settings[name] for r in rivals)]
    said = [f"{text.words(name.rpartition('.')[2])} {settings[name]}" for name in different[:n]]
    return f" ({', '.join(said)})" if said else ""


def _shortcomings(member: Member, suite: str | None) -> list[str]:
    notes, total = [], member.run.config.updates
    if member.updates < total:
        done = f"{member.updates:,} of {total:,} student updates"
        notes.append(f"{member.name} is unfinished, at {done}: what there is of it is reported.")
    if member.evaluation is None:
        which = f"on the suite {suite}" if suite else "on held-out levels"
        flag = f" --suite {suite}" if suite else ""
        notes.append(f"{member.name} was not evaluated {which}: `tutelage eval {member.run.path}{flag}` does that.")
    return notes


def _inequalities(comparison: Comparison) -> list[str]:
    notes = []
    counts = {g.label: g.seeds for g in comparison.groups}
    if len(set(counts.values())) > 1:
        listed = text.listed([f"{label} {n}" for label, n in counts.items()])
        notes.append(f"The methods have unequal numbers of seeds ({listed}), so their errors do not compare directly.")
    if len(comparison.common) < len(comparison.levels):
        every = f"{len(comparison.common)} of {len(comparison.levels)} levels"
        notes.append(f"Only {every} of {comparison.env} were played by every seed: aggregates are over those.")
    return notes
