"""Tables of methods on levels, mean ± standard error, beside the paper's numbers: HTML, Markdown, LaTeX and CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from tutelage.report.facts.paper import MEAN, published
from tutelage.report.pages.html import Markup, element
from tutelage.report.plots.figure import Data
from tutelage.statistics import Summary, improves, within_one_error

BASELINES = ("robust-plr", "plr")  # whom a star says to be outdone


@dataclass(frozen=True)
class Column:
    """A method: its scores `[seeds, levels]` as they are reported, and the preset the paper's numbers go by."""

    label: str
    method: str
    preset: str | None
    scores: Float[np.ndarray, "seeds levels"]


@dataclass(frozen=True)
class Cell:
    """A method on a level. Bold: within one standard error of the best; star: better than PLR, p < 0.05."""

    ours: Summary | None
    paper: Summary | None
    bold: bool
    star: bool

    @property
    def difference(self) -> float:
        """Ours − the paper's, in standard errors of the difference; NaN where there is no such number."""
        if self.ours is None or self.paper is None:
            return math.nan
        difference = self.ours.mean - self.paper.mean
        error = math.hypot(self.paper.error, 0.0 if math.isnan(self.ours.error) else self.ours.error)
        return difference / error if error else (0.0 if difference == 0 else math.nan)


@dataclass(frozen=True)
class Row:
    """A level, or a mean over levels (`total`)."""

    name: str
    cells: tuple[Cell, ...]
    total: bool = False


@dataclass(frozen=True)
class Table:
    """Levels by methods, numbers with so many `digits`."""

    digits: int
    methods: tuple[str, ...]
    rows: tuple[Row, ...]

    def has_paper(self, method: int) -> bool:
        """Whether the paper has any number for the n-th method."""
        return any(row.cells[method].paper is not None for row in self.rows)


def level_table(digits: int, levels: Sequence[str], columns: Sequence[Column]) -> Table:
    """A row for each level, their mean, and the mean over the paper's levels where those are others."""
    rows = [_row(name, columns, [n]) for n, name in enumerate(levels)]
    theirs = [n for n, name in enumerate(levels) if any(published(c.preset, name) for c in columns)]
    everything = list(range(len(levels)))
    if everything:
        rows.append(_row(MEAN, columns, everything, total=True, compared=theirs == everything))
    if theirs and theirs != everything:
        rows.append(_row(f"{MEAN} of the paper’s {len(theirs)}", columns, theirs, total=True, compared=True))
    return Table(digits, tuple(c.label for c in columns), tuple(rows))


def _row(name: str, columns: Sequence[Column], levels: list[int], *, total: bool = False, compared: bool = True) -> Row:
    values = [c.scores[:, levels].mean(axis=1) for c in columns]
    values = [v[np.isfinite(v)] for v in values]
    ours = [Summary.of(v.tolist()) if len(v) else None for v in values]
    papers = [published(c.preset, MEAN if total else name) if compared else None for c in columns]
    stars = _stars(columns, values)
    return Row(name, tuple(map(Cell, ours, papers, within_one_error(ours), stars)), total)


def _stars(columns: Sequence[Column], values: Sequence[np.ndarray]) -> list[bool]:
    """Against the first baseline there is; it does not outdo itself."""
    at = next((n for name in BASELINES for n, c in enumerate(columns) if c.method == name), None)
    if at is None:
        return [False] * len(columns)
    return [n != at and improves(v, values[at]) for n, v in enumerate(values)]


def _text(s: Summary | None, digits: int) -> str:
    """0.92 ± 0.06; a dash for nothing."""
    return "–" if s is None else s.text(digits)


def signed(x: float) -> str:
    """+1.3 or −0.4; nothing for NaN."""
    return "" if math.isnan(x) else f"{x:+.1f}".replace("-", "−")


def headings(table: Table) -> list[tuple[str, ...]]:
    """For each method the titles of its columns: ours, and the paper's and the difference where it has any."""
    return [(m, "paper", "Δ/s.e.") if table.has_paper(n) else (m,) for n, m in enumerate(table.methods)]


def markdown(table: Table) -> str:
    """A table for a README."""
    titles = ["level", *(t for group in headings(table) for t in group)]
    lines = [titles, ["---"] + ["---:"] * (len(titles) - 1)]
    for row in table.rows:
        cells = (_markdown_cells(table, n, cell) for n, cell in enumerate(row.cells))
        lines.append([row.name, *(text for group in cells for text in group)])
    return "".join("| " + " | ".join(t.replace("|", "\\|") for t in line) + " |\n" for line in lines)


def _markdown_cells(table: Table, n: int, cell: Cell) -> list[str]:
    text = _text(cell.ours, table.digits)
    text = (f"**{text}**" if cell.bold else text) + ("*" if cell.star else "")
    paper = _text(cell.paper, table.digits) if cell.paper else ""
    return [text, paper, signed(cell.difference)] if table.has_paper(n) else [text]


def latex(table: Table) -> str:
    """A table for a paper; needs the package booktabs."""
    groups = headings(table)
    columns = "l" + "".join("r" * len(group) for group in groups)
    titles = " & ".join(["level", *(_latex_text(t) for group in groups for t in group)])
    lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", f"{titles} \\\\", "\\midrule"]
    for n, row in enumerate(table.rows):
        if row.total and not table.rows[n - 1].total:
            lines.append("\\midrule")
        cells = (text for m, cell in enumerate(row.cells) for text in _latex_cells(table, m, cell))
        lines.append(" & ".join([_latex_text(row.name), *cells]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _latex_cells(table: Table, n: int, cell: Cell) -> list[str]:
    ours, paper = ("" if s is None else s.text(table.digits, r" \pm ") for s in (cell.ours, cell.paper))
    ours = f"\\mathbf{{{ours}}}" if cell.bold else ours
    ours = ours + "^\\star" if cell.star else ours
    difference = "" if math.isnan(cell.difference) else f"${cell.difference:+.1f}$"
    numbers = [f"${ours}$" if ours else "--", f"${paper}$" if paper else "", difference]
    return numbers if table.has_paper(n) else numbers[:1]


_LATEX = {"’": "'", "Δ": r"$\Delta$", "\\": r"\textbackslash{}"} | {c: "\\" + c for c in "&%$#_{}"}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)


def data(table: Table, seeds: Mapping[str, int]) -> Data:
    """One row a level and method, for a program; `seeds` says how many each method has."""
    rows = [
        [row.name, method, seeds[method], *_pair(x.ours), int(x.bold), int(x.star), *_pair(x.paper), x.difference]
        for row in table.rows
        for method, x in zip(table.methods, row.cells, strict=True)
    ]
    ours = ("level", "method", "seeds", "mean", "standard_error", "bold", "star")
    return Data((*ours, "paper_mean", "paper_standard_error", "difference_in_standard_errors"), rows)


def _pair(s: Summary | None) -> tuple[float, float]:
    return (math.nan, math.nan) if s is None else (s.mean, s.error)


def html(table: Table, others: Mapping[str, Table]) -> Markup:
    """A table for the page; `others` has further columns by title, tables of the same levels."""
    groups = headings(table)
    titles = ["level", *(t for g in groups for t in g), *others]
    head = element("tr", *(element("th", t, scope="col") for t in titles))
    rows = []
    for row in table.rows:
        further = (_further(x, row.name) for x in others.values())
        rows.append((row.total, element("tr", element("th", row.name, scope="row"), *_cells(table, row), *further)))
    return element(
        "table",
        element("thead", head),
        element("tbody", *(row for total, row in rows if not total)),
        element("tfoot", *(row for total, row in rows if total)),
        class_="sortable many" if len(groups) > 1 else "sortable",
    )


def _further(table: Table, name: str) -> Markup:
    """The cell of one method in the row of a name; blank where the table has no such row, as for the paper's levels."""
    ours = next((row.cells[0].ours for row in table.rows if row.name == name), None)
    return _ours(table.digits, ours, class_="aside") if ours else _blank()


def _cells(table: Table, row: Row) -> list[Markup]:
    found = []
    for n, cell in enumerate(row.cells):
        star = [element("abbr", "★", title="better than PLR, p < 0.05 by Welch’s t-test")] if cell.star else []
        found.append(_ours(table.digits, cell.ours, *star, bold=cell.bold and len(row.cells) > 1))
        if table.has_paper(n):
            difference = Summary(cell.difference, math.nan)
            found.append(_ours(table.digits, cell.paper, class_="aside") if cell.paper else _blank())
            found.append(element("td", signed(cell.difference), data_value=_value(difference), class_="aside"))
    return found


def _ours(digits: int, s: Summary | None, *after: Markup, bold: bool = False, **attributes: str) -> Markup:
    """A cell: a number, its error in small type where there is one, and what comes after it."""
    mean, _, error = _text(s, digits).partition(" ")
    small = [Markup(" "), element("small", error)] if error else []
    shown = [element("span", mean.replace("-", "−")), *small, *after]
    return element("td", *([element("b", *shown)] if bold else shown), data_value=_value(s), **attributes)


def _blank() -> Markup:
    return element("td", data_value=_value(None), class_="aside")


def _value(s: Summary | None) -> str:
    """What the column is sorted by; what has no number comes last."""
    return "-1e9" if s is None or math.isnan(s.mean) else f"{s.mean:.6g}"
