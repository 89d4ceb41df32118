"""The tables and curves in results/, made anew from the files there.

    python bench/results.py [--released DIR]

A page has a table between `<!-- table: NAME -->` and `<!-- end -->`; what `TABLES` makes of that name is put there.
Curves are written beside the pages. `DIR` is the folder `results/` of the reference implementation's repository
(facebookresearch/dcd), with the solved rates of single seeds; tables that need it stay as they are without it.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tutelage.envs.maze.suite import LARGER, PAPER
from tutelage.report.facts.paper import MEAN, published
from tutelage.report.pages.tables import Column, level_table
from tutelage.report.plots.figure import PALETTE, WIDE, Words, finish
from tutelage.report.plots.lines import Curve, Line, Scale, curve, line_sketch
from tutelage.report.text import number, percent
from tutelage.runs.evaluate import Result, read_csv
from tutelage.runs.evaluations import Subject
from tutelage.statistics import Interval, Summary, interval, iqm, mean, probability_of_improvement, welch

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
RUNS = RESULTS / "runs"
BLOCK = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)
ABLATED = tuple(level for level in PAPER if level != "PerfectMazeM")  # the levels of the paper's ablations


@dataclass(frozen=True)
class Experiment:
    """A row or column of tables: some runs of one preset, whose seeds are one sample."""

    label: str
    preset: str
    runs: tuple[str, ...]
    updates: int
    files: tuple[str, ...] = ()  # tables of seeds whose run is not kept
    paper: str | None = None  # the paper's column, where the preset's name is not its name

    def results(self, updates: int | None = None, suite: str = "maze") -> list[Result]:
        """Results of all seeds after so many student updates, by default the last."""
        asked = self.updates if updates is None else updates
        names = [RUNS / run / "evals" / Subject(suite, asked).file_name for run in self.runs]
        names += [RESULTS / file for file in self.files if asked == self.updates]
        return [result for name in names if name.exists() for result in read_csv(name)]

    def scores(self, levels: Sequence[str], updates: int | None = None) -> np.ndarray:
        """Solved rates `[seeds, levels]`."""
        results = self.results(updates)
        known = {(r.seed, r.level): r.solved_rate for r in results}
        return np.array([[known[seed, level] for level in levels] for seed in dict.fromkeys(r.seed for r in results)])

    @property
    def method(self) -> str:
        """The preset without its env."""
        return self.preset.partition("/")[2]

    def column(self, levels: Sequence[str]) -> Column:
        """As a column of a table of levels."""
        return Column(self.label, self.method, self.paper or self.preset, self.scores(levels))


DR = Experiment("DR", "maze/dr", ("maze-dr",), 20_000)
ROBUST_PLR = Experiment("Robust PLR", "maze/robust-plr", ("maze-robust-plr",), 20_000)
ACCEL = Experiment("ACCEL", "maze/accel", ("maze-accel-seeds-5-9",), 20_000, ("maze-accel.csv",))
ACCEL_DR = Experiment("ACCEL, from random levels", "maze/accel-dr", ("maze-accel-dr",), 20_000)
MAIN = (DR, ROBUST_PLR, ACCEL_DR, ACCEL)
REFERENCE = (
    Experiment("DR, reference's ways", "maze/dr-reference", ("maze-dr-reference",), 20_000),
    Experiment("Robust PLR, reference's ways", "maze/robust-plr-reference", ("maze-robust-plr-reference",), 20_000),
    Experiment(
        "ACCEL, reference's ways",
        "maze/accel-reference",
        ("maze-accel-reference", "maze-accel-reference-seeds-5-9"),
        20_000,
    ),
    Experiment(
        "ACCEL, reference's ways, float32 products",
        "maze/accel-reference-f32",
        ("maze-accel-reference-f32", "maze-accel-reference-f32-seeds-5-9"),
        20_000,
    ),
)
EDITORS = (
    Experiment("random edits", "maze/accel-dr", ("maze-accel-dr-replay-rate-0.9",), 10_000, paper="maze/accel-dr-10k"),
    Experiment("learned editor", "maze/learned-editor", ("maze-learned-editor",), 10_000),
    Experiment("no editor", "maze/no-editor", ("maze-no-editor",), 10_000),
)
ADVERSARIES = (
    Experiment("PAIRED", "maze/paired", ("maze-paired",), 30_000),
    Experiment("Minimax", "maze/minimax", ("maze-minimax",), 30_000),
)
RELEASED = {
    "maze/dr": "mg_60_blocks_uni-dr_20k_updates.csv",
    "maze/robust-plr": "mg_60_blocks_uni-robust_plr_20k_updates.csv",
    "maze/accel": "mg_60_blocks-accel_20k_updates.csv",
}


class Pair(NamedTuple):
    """Two samples of scores `[seeds, levels]` to be compared."""

    label: str
    one: np.ndarray
    other: np.ndarray


def there(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Those that have results."""
    return [e for e in experiments if e.results()]


# Tables


def levels_table(experiments: Sequence[Experiment], levels: Sequence[str]) -> str:
    """Every experiment on every level, beside what the paper prints; bold within a standard error of the best."""
    found = level_table(2, levels, [e.column(levels) for e in there(experiments)])
    beside = [found.has_paper(n) for n in range(len(found.methods))]
    titles = [(method, "paper")[: 1 + b] for method, b in zip(found.methods, beside, strict=True)]
    rows = [("test level", *(title for pair in titles for title in pair))]
    for row in found.rows:
        cells = zip(row.cells, beside, strict=True)
        several = len(row.cells) > 1
        pairs = [(said(cell.ours, bold=cell.bold and several), said(cell.paper))[: 1 + b] for cell, b in cells]
        rows.append((row.name, *(text for pair in pairs for text in pair)))
    return table(rows)


def said(s: Summary | None, *, bold: bool = False) -> str:
    """0.92 ± 0.06; a dash for nothing."""
    text = "–" if s is None else s.text()
    return f"**{text}**" if bold else text


def summary_table(experiments: Sequence[Experiment], levels: Sequence[str] = PAPER) -> str:
    """Mean and interquartile mean over levels, and what the paper has."""
    rows = [["method", "seeds", "mean ± s.e.", "IQM, 95 % interval", "paper", "difference, p"]]
    for e in there(experiments):
        scores = e.scores(levels)
        ours = Summary.of(scores.mean(axis=1).tolist())
        paper = published(e.paper or e.preset, MEAN)
        beside = ("–", "–") if paper is None else (paper.text(), against(ours, len(scores), paper))
        rows.append([e.label, str(len(scores)), f"**{ours.text()}**", spanned(interval(iqm, scores)), *beside])
    return table(rows)


def against(ours: Summary, seeds: int, theirs: Summary, others: int = 5) -> str:
    """The difference of two means, and the p of Welch's test, which their errors suffice for."""
    from scipy.special import stdtr

    a, b = ours.error**2, theirs.error**2
    degrees = (a + b) ** 2 / (a**2 / (seeds - 1) + b**2 / (others - 1))
    difference = ours.mean - theirs.mean
    p = 2 * float(stdtr(degrees, -abs(difference) / np.sqrt(a + b)))
    return f"{signed(difference)}, {probability(p)}"


def order_table(pairs: Sequence[Pair]) -> str:
    """By how much one of two is ahead, whether that is chance, and how probably it is ahead on a level."""
    rows = [("", "difference of means", "p (Welch)", "probability of improvement, 95 % interval")]
    for label, one, other in pairs:
        difference = float(mean(one) - mean(other))
        test = welch(one.mean(axis=1), other.mean(axis=1))
        assert test is not None, f"{label}: fewer than two seeds"
        likely = interval(probability_of_improvement, one, other)
        rows.append((label, f"{signed(difference)}", probability(test.p), spanned(likely)))
    return table(rows)


def in_order() -> str:
    """Each of the paper's main methods against each that it is said to be ahead of."""
    ranked = there((ACCEL, ACCEL_DR, ROBUST_PLR, DR))
    pairs = [(a, b) for n, a in enumerate(ranked) for b in ranked[n + 1 :]]
    return order_table([Pair(f"{a.label} over {b.label}", a.scores(PAPER), b.scores(PAPER)) for a, b in pairs])


def beside_released(folder: Path) -> str:
    """Tutelage's seeds beside those that the reference implementation released, and both in order."""
    three = (DR, ROBUST_PLR, ACCEL)
    ours, theirs = ({e: scores(e) for e in three} for scores in (lambda e: e.scores(PAPER), partial(released, folder)))
    beside = [Pair(f"{e.label}, over the released", ours[e], theirs[e]) for e in three]
    order = [
        Pair(f"{who}: {one.label} over {other.label}", of[one], of[other])
        for one, other in ((ACCEL, ROBUST_PLR), (ROBUST_PLR, DR))
        for who, of in (("here", ours), ("released", theirs))
    ]
    return order_table(beside) + pooled_row("the three together, over the released", beside) + rows_alone(order)


def pooled_row(label: str, pairs: Sequence[Pair]) -> str:
    """The mean of several differences of means, each with its own spread, by Welch's test of them together."""
    from scipy.special import stdtr

    differences = [float(mean(one) - mean(other)) for _, one, other in pairs]
    samples = [x.mean(axis=1) for _, one, other in pairs for x in (one, other)]
    spreads = [x.var(ddof=1) / len(x) for x in samples]
    degrees = sum(spreads) ** 2 / sum(s**2 / (len(x) - 1) for s, x in zip(spreads, samples, strict=True))
    p = 2 * float(stdtr(degrees, -abs(sum(differences)) / np.sqrt(sum(spreads))))
    return table([(label, signed(float(np.mean(differences))), probability(p), "–")]).splitlines(keepends=True)[0]


def rows_alone(pairs: Sequence[Pair]) -> str:
    """`order_table` without its heading."""
    return "".join(order_table(pairs).splitlines(keepends=True)[2:])


@cache
def released(folder: Path, e: Experiment) -> np.ndarray:
    """The solved rates `[seeds, levels]` of a released file, whose levels are the paper's twelve."""
    with (folder / RELEASED[e.preset]).open(newline="") as file:
        rows = [row for row in csv.reader(file) if row[0].startswith("solved_rate:")]
    assert len(rows) == len(PAPER), f"{RELEASED[e.preset]} has {len(rows)} levels"
    return np.array([[float(x) for x in row[1:]] for row in rows]).T


def course_table(experiments: Sequence[Experiment]) -> str:
    """The mean over the paper's twelve at each look."""
    found = there(experiments)
    looks = sorted({look for e in found for look in looks_at(e)})
    rows = [("method", *(f"{look:,}" for look in looks))]
    for e in found:
        known = {look: Summary.of(e.scores(PAPER, look).mean(axis=1).tolist()) for look in looks_at(e)}
        rows.append((e.label, *(known[look].text() if look in known else "–" for look in looks)))
    return table(rows)


def looks_at(e: Experiment) -> list[int]:
    """The student updates at which all levels were played."""
    names = [path.name for run in e.runs for path in sorted((RUNS / run / "evals").glob("*.csv"))]
    found = {s.updates for s in map(Subject.of, names) if s and s.kind == "suite" and not (s.greedy or s.real)}
    return sorted(found | ({e.updates} if e.files else set()))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as Markdown; the first is the heading."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def spanned(i: Interval) -> str:
    """0.71 (0.60–0.80)."""
    return f"{i.value:.2f} ({i.low:.2f}–{i.high:.2f})"


def signed(x: float) -> str:
    """+0.05 or −0.05."""
    return f"{x:+.2f}".replace("-", "−")


def probability(p: float) -> str:
    """With two digits, or as small."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.3f}"


TABLES: dict[str, Callable[[], str]] = {
    "maze-levels": lambda: levels_table(MAIN, (*PAPER, *LARGER)),
    "maze-summary": lambda: summary_table((*MAIN, *REFERENCE, *ADVERSARIES)),
    "maze-order": in_order,
    "maze-course": lambda: course_table((*MAIN, *REFERENCE, *ADVERSARIES)),
    "maze-editors": lambda: summary_table(EDITORS, ABLATED),
}
WITH_RELEASED: dict[str, Callable[[Path], str]] = {"maze-released": beside_released}


# Curves


def looks_figure(path: Path, experiments: Sequence[Experiment]) -> None:
    """The solved rate on the paper's twelve test levels at each look."""
    lines = []
    for colour, e in zip(PALETTE, there(experiments), strict=False):
        looks = [look for look in looks_at(e) if len(looks_at(e)) > 1]
        means = [Summary.of(e.scores(PAPER, look).mean(axis=1).tolist()) for look in looks]
        if looks:
            points = (np.array(looks, float), np.array([m.mean for m in means]), np.array([m.error for m in means]))
            lines.append(Line.of(e.label, colour, Curve(*points)))
    words = Words("The paper’s twelve test mazes", "mean of five seeds, band: ± 1 standard error", "student updates")
    draw(path, words, lines, Scale(percent, share=True))


def metric_figure(path: Path, experiments: Sequence[Experiment], key: str, title: str) -> None:
    """A metric of training."""
    lines = []
    for colour, e in zip(PALETTE, experiments, strict=False):
        rows = [row for run in e.runs for row in metrics(RUNS / run / "metrics.jsonl")]
        if rows and (found := curve(rows, key)) is not None:
            lines.append(Line.of(e.label, colour, found))
    words = Words(title, "mean of five seeds, band: ± 1 standard error", "student updates")
    draw(path, words, lines, Scale(number))


def metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a run's metrics."""
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


def draw(path: Path, words: Words, lines: Sequence[Line], scale: Scale) -> None:
    """Writes a figure, if there is anything to compare."""
    if len(lines) > 1:
        path.write_bytes(finish(line_sketch(path.stem, words, lines, scale, (WIDE * 2 // 3,))).svg)


def figures() -> None:
    """All curves."""
    looks_figure(RESULTS / "maze-methods.svg", (DR, ROBUST_PLR, ACCEL_DR, ACCEL, *ADVERSARIES))
    made = (ROBUST_PLR, ACCEL_DR, ACCEL)
    for key, title in (("blocks", "Blocks of replayed levels"), ("path_length", "Path length of replayed levels")):
        metric_figure(RESULTS / f"maze-methods-{key.replace('_', '-')}.svg", made, f"buffer/{key}_replay", title)


def renewed(page: str, folder: Path | None) -> str:
    """A page with its tables made anew."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        if name in WITH_RELEASED:
            body = match["body"] if folder is None else f"\n{WITH_RELEASED[name](folder)}\n"
        else:
            body = f"\n{TABLES[name]()}\n"
        return match[1] + body + match[4]

    return BLOCK.sub(block, page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--released", type=Path)
    folder = parser.parse_args().released
    for path in sorted(RESULTS.glob("*.md")):
        page = path.read_text()
        path.write_text(renewed(page, folder))
    figures()


if __name__ == "__main__":
    main()
