"""From run directories to what a report compares: runs grouped by env and method, their results, and what is amiss."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from tutelage.errors import UserError
from tutelage.report import provenance, text
from tutelage.report.measures import Measure, matrix, measure_of
from tutelage.runs import presets
from tutelage.runs.archive import Admitted
from tutelage.runs.config import Config
from tutelage.runs.evaluate import Result, read_csv
from tutelage.runs.run import Run

_EVALUATION = re.compile(r"(?P<suite>.+)-(?P<updates>\d{8})\.csv")


@dataclass(frozen=True)
class Evaluation:
    """A file of a run's `evals/`: which suite was played, and by the students of which update."""

    suite: str
    updates: int
    results: tuple[Result, ...]


@dataclass(frozen=True, eq=False)
class Member:
    """A run, the name it has in the report, its seeds that count, and their results on the suite."""

    run: Run
    name: str
    seeds: tuple[int, ...]
    evaluation: Evaluation | None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Metrics of the seeds that count."""
        return [row for row in self.run.metrics() if row["seed"] in self.seeds]

    @cached_property
    def admitted(self) -> Admitted:
        """Every level the run ever kept."""
        return self.run.levels()

    @cached_property
    def describe(self) -> Any:
        """The domain's measures of many levels at once, compiled."""
        return jax.jit(jax.vmap(self.run.config.env.design().describe))

    @property
    def results(self) -> list[Result]:
        """Of the seeds that count."""
        return [r for r in self.evaluation.results if r.seed in self.seeds] if self.evaluation else []

    @property
    def updates(self) -> int:
        """Student updates done, as far as the run's files tell."""
        return max((0, *(row["updates"] for row in self.rows[-1:]), *self.run.checkpoints))


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one method in one env: their seeds are one sample."""

    label: str
    method: str
    preset: str | None
    members: tuple[Member, ...]

    @property
    def results(self) -> list[Result]:
        """Of all members."""
        return [r for member in self.members for r in member.results]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Metrics of all members."""
        return [row for member in self.members for row in member.rows]

    @property
    def seeds(self) -> int:
        """How many there are."""
        return sum(len(member.seeds) for member in self.members)

    @property
    def slug(self) -> str:
        """The label as a part of file names."""
        return text.slug(self.label)

    def scores(self, measure: Measure, levels: Sequence[str]) -> Float[np.ndarray, "seeds levels"]:
        """One row for each seed that was evaluated, NaN where it did not play a level."""
        results = self.results
        return matrix(measure, results, list(dict.fromkeys(r.seed for r in results)), levels)


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
    def measure(self) -> Measure:
        """How the env is scored."""
        return measure_of(self.env)

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
        scores = [g.scores(self.measure, self.levels) for g in self.evaluated]
        whole = [n for n in range(len(self.levels)) if all(np.isfinite(x[:, n]).all() for x in scores)]
        return tuple(self.levels[n] for n in whole)


@dataclass(frozen=True)
class Gathered:
    """What a report is about, and sentences on what it is not."""

    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


def open_runs(paths: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """The runs among some directories, and a sentence on each that is none."""
    runs, notes = [], []
    for path in {path.resolve(): path for path in paths}.values():
        try:
            run = Run(path)
            run.config  # noqa: B018 - read now, so that a damaged one is said here
        except UserError as error:
            notes.append(str(error))
        else:
            runs.append(run)
    return runs, notes


def gather(runs: Sequence[Run], suite: str | None = None) -> Gathered:
    """Groups runs by env and method; `suite` names the held-out levels to compare on, else the one most runs played."""
    notes: list[str] = []
    names = dict(zip([run.path for run in runs], short_names([run.path for run in runs]), strict=True))
    envs = dict.fromkeys(run.config.env.name for run in runs)
    comparisons = [_comparison([r for r in runs if r.config.env.name == env], names, suite, notes) for env in envs]
    return Gathered(tuple(comparisons), tuple(notes))


def short_names(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, as many as tell it from the others."""
    parts = [path.resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts), default=1)):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(set(parts)):
            return names
    return [str(path) for path in paths]


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
            members.append(Member(run, names[run.path], seeds, found))
    groups = _labelled([kind for kind in kinds.values() if kind])
    comparison = Comparison(runs[0].config.env.name, suite, groups)
    notes += [note for group in groups for member in group.members for note in _shortcomings(member, suite)]
    notes += _inequalities(comparison)
    return comparison


def evaluations_of(run: Run, notes: list[str]) -> list[Evaluation]:
    """What a run was evaluated on, newest students first; evaluations of greedy students are not comparable."""
    found = []
    for path in sorted((run.path / "evals").glob("*.csv")):
        if match := _EVALUATION.fullmatch(path.name):
            try:
                found.append(Evaluation(match["suite"], int(match["updates"]), tuple(read_csv(path))))
            except (KeyError, ValueError, TypeError, OSError):
                notes.append(f"{path} cannot be read as an evaluation and is left out.")
    return sorted(found, key=lambda e: -e.updates)


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
        closest = provenance.closest_preset(config)
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
