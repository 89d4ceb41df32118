"""Where a report's figures and tables go: files in its folder, and elements of its page that link to them."""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tutelage.report import tables
from tutelage.report.animation import Animation
from tutelage.report.drawing import Sketch, finish
from tutelage.report.layout import with_error
from tutelage.report.markup import Markup, element, join
from tutelage.report.tables import Row, Table
from tutelage.runs.storage import write_atomically
from tutelage.statistics import Summary

TITLES = {
    "csv": "Data",
    "svg": "SVG",
    "png": "PNG",
    "webp": "WebP",
    "gif": "GIF",
    "md": "Markdown",
    "tex": "LaTeX",
}


@dataclass(frozen=True)
class Binder:
    """A folder under which `figures/` and `tables/` fill."""

    out: Path

    def figure(self, sketch: Sketch, shown: Markup | None = None) -> Markup:
        """Draws a figure and writes its files; the page shows it, or something else in its place."""
        plate = finish(sketch)
        files = {"csv": sketch.data.csv().encode(), "svg": plate.svg, "png": plate.png}
        links = self._write("figures", sketch.name, files)
        if shown is None:
            kinds = ("wide", "narrow") if len(plate.inline) > 1 else ("only",)
            sized = zip(plate.inline, kinds, sketch.widths, strict=True)
            shown = join(*(element("div", x, class_=k, style=f"max-width:{1.15 * w / 16:g}rem") for x, k, w in sized))
            return element("figure", shown, links, class_="plate")
        return element("div", shown, links, class_="plate")

    def table(self, name: str, table: Table, seeds: Mapping[str, int]) -> Markup:
        """Writes a table for programs, READMEs and papers; the page's own can be sorted."""
        texts = {"csv": tables.data(table, seeds).csv(), "md": tables.markdown(table), "tex": tables.latex(table)}
        links = self._write("tables", name, {kind: text.encode() for kind, text in texts.items()})
        return element("div", element("div", _html(table), class_="scroll"), links, class_="plate")

    def film(self, name: str, shown: Animation) -> Markup:
        """Writes an episode as a file of its own."""
        kind, _, content = shown.moving.partition(";base64,")
        return self._write("figures", name, {kind.rpartition("/")[2]: b64decode(content)})

    def _write(self, folder: str, name: str, files: Mapping[str, bytes]) -> Markup:
        (self.out / folder).mkdir(parents=True, exist_ok=True)
        for kind, content in files.items():
            write_atomically(self.out / folder / f"{name}.{kind}", content)
        links = [element("a", TITLES[kind], href=f"{folder}/{name}.{kind}") for kind in files]
        spaced = [piece for link in links for piece in (Markup(" · "), link)][1:]
        return element("p", *spaced, class_="files")


def _html(table: Table) -> Markup:
    groups = tables.headings(table)
    head = element("tr", *(element("th", t, scope="col") for t in ["level", *(t for g in groups for t in g)]))
    rows = [(row.total, element("tr", element("th", row.name, scope="row"), *_cells(table, row))) for row in table.rows]
    return element(
        "table",
        element("thead", head),
        element("tbody", *(row for total, row in rows if not total)),
        element("tfoot", *(row for total, row in rows if total)),
        class_="sortable many" if len(groups) > 1 else "sortable",
    )


def _cells(table: Table, row: Row) -> list[Markup]:
    found = []
    for n, cell in enumerate(row.cells):
        ours = _number(cell.ours, table.measure.digits)
        star = [element("abbr", "★", title="better than PLR, p < 0.05 by Welch’s t-test")] if cell.star else []
        ours = [element("b", *ours, *star)] if cell.bold else [*ours, *star]
        found.append(element("td", *ours, data_value=_value(cell.ours)))
        if table.has_paper(n):
            paper = _number(cell.paper, table.measure.digits) if cell.paper else ()
            difference = Summary(cell.difference, math.nan)
            found.append(element("td", *paper, data_value=_value(cell.paper), class_="aside"))
            found.append(element("td", tables.signed(cell.difference), data_value=_value(difference), class_="aside"))
    return found


def _number(s: Summary | None, digits: int) -> tuple[Markup, ...]:
    if s is None:
        return (element("span", "–"),)
    mean, _, error = tables.plus_minus(s, digits).partition(" ")
    return with_error(mean.replace("-", "−"), error)


def _value(s: Summary | None) -> str:
    """What the column is sorted by; what has no number comes last."""
    return "-1e9" if s is None or math.isnan(s.mean) else f"{s.mean:.6g}"
