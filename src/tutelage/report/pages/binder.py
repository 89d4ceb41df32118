"""Where a report's figures and tables go: files in its folder, and elements of its page that link to them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tutelage.report.pages import tables
from tutelage.report.pages.html import Markup, element, join
from tutelage.report.pages.tables import Table
from tutelage.report.plots.figure import Sketch, finish
from tutelage.report.plots.pictures import Animation
from tutelage.runs.storage import write_atomically

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
            sized = zip(map(Markup, plate.inline), kinds, sketch.widths, strict=True)
            shown = join(*(element("div", x, class_=k, style=f"max-width:{1.15 * w / 16:g}rem") for x, k, w in sized))
            return element("figure", shown, links, class_="plate")
        return element("div", shown, links, class_="plate")

    def table(self, name: str, table: Table, seeds: Mapping[str, int], shown: Markup) -> Markup:
        """Writes a table for programs, READMEs and papers; the page shows its own."""
        texts = {"csv": tables.data(table, seeds).csv(), "md": tables.markdown(table), "tex": tables.latex(table)}
        links = self._write("tables", name, {kind: text.encode() for kind, text in texts.items()})
        return element("div", element("div", shown, class_="scroll"), links, class_="plate")

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
