"""A report: any set of runs as one page, with its figures, tables and their data in files beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tutelage.errors import UserError
from tutelage.report import provenance, text
from tutelage.report.binder import Binder
from tutelage.report.chapters import CHAPTERS, Chapter
from tutelage.report.comparison import normalised
from tutelage.report.document import document, resource
from tutelage.report.findings import Volume
from tutelage.report.gather import Comparison, Gathered, gather, open_runs
from tutelage.report.layout import Gap, facts, gap
from tutelage.report.markup import Markup, element, join
from tutelage.runs.run import Run
from tutelage.runs.storage import write_atomically
from tutelage.statistics import iqm


def report(
    paths: Iterable[Path],
    out: Path,
    *,
    suite: str | None = None,
    film: str | None = None,
    on_chapter: Callable[[str], None] = lambda title: None,
) -> Gathered:
    """Reports on run directories in `out/index.html`, and says what could not be used.

    `suite` names the held-out levels to compare on, by default those that most runs were evaluated on; `film` is the
    level to show students on, by default the hardest that the best method solves.
    """
    runs, notes = open_runs(paths)
    if not runs:
        raise UserError(" ".join(["There is no run to report.", *notes]))
    return write_report(runs, out, suite=suite, film=film, notes=notes, on_chapter=on_chapter)


def write_report(
    runs: Sequence[Run],
    out: Path,
    *,
    suite: str | None = None,
    film: str | None = None,
    notes: Sequence[str] = (),
    on_chapter: Callable[[str], None] = lambda title: None,
) -> Gathered:
    """Reports on runs, on envs of one's own too; `notes` are sentences that shall stand on the page."""
    gathered = gather(runs, suite)
    gathered = Gathered(gathered.comparisons, (*notes, *gathered.notes))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out} cannot be written to ({error.strerror}): choose another --out.") from error
    alone = len(gathered.comparisons) == 1
    parts = [_part(Volume(c, film), Binder(out), on_chapter, alone=alone) for c in gathered.comparisons]
    body = (_header(gathered), element("main", *parts), _footer())
    write_atomically(out / "index.html", document(_title(gathered), *body, script=resource("sort.js")).encode())
    return gathered


def _part(volume: Volume, binder: Binder, on_chapter: Callable[[str], None], *, alone: bool) -> Markup:
    env, sections = volume.comparison.env, []
    for title, chapter in CHAPTERS:
        on_chapter(f"{env}: {title.lower()}")
        sections.append(_section(title if alone else f"{title} ({env})", chapter, volume, binder))
    return element("div", *sections)


def _section(title: str, chapter: Chapter, volume: Volume, binder: Binder) -> Markup:
    try:
        body = chapter(volume, binder)
    except Gap as missing:
        body = gap(str(missing))
    return element("section", element("h2", title), body)


def _title(gathered: Gathered) -> str:
    return "; ".join(f"{_methods(c)} on {c.env}" for c in gathered.comparisons)


def _methods(c: Comparison) -> str:
    labels = [group.label for group in c.groups]
    return text.listed(labels) if len(labels) <= 3 else f"{len(labels)} methods"


def _header(gathered: Gathered) -> Markup:
    members = [m for c in gathered.comparisons for g in c.groups for m in g.members]
    seeds = sum(len(member.seeds) for member in members)
    eyebrow = f"Tutelage report on {text.plural(len(members), 'run')}, {text.plural(seeds, 'seed')}"
    notes = [element("ul", *(element("li", _marked(note)) for note in gathered.notes), class_="notes")]
    top = (element("p", eyebrow, class_="eyebrow"), element("h1", _title(gathered)))
    return element("header", *top, *map(_headline, gathered.comparisons), *(notes if gathered.notes else []))


def _marked(note: str) -> Markup:
    """What stands between backticks as code."""
    return join(*(element("code", part) if n % 2 else part for n, part in enumerate(note.split("`"))))


def _headline(c: Comparison) -> Markup:
    """Each method's interquartile mean."""
    if not c.common:
        return gap(f"No run on {c.env} was evaluated on held-out levels.")
    known = {g.label: f"{float(iqm(normalised(c, g))):.2f}" for g in c.evaluated}
    levels = f"{text.plural(len(c.common), 'level')} of the suite {c.suite}"
    said = f"Interquartile mean of the {c.measure.name} on {levels}, of 1."
    return element("div", facts(known), element("p", said, class_="note"), class_="headline")


def _footer() -> Markup:
    with_ = ", ".join(f"{name} {version}" for name, version in provenance.versions().items())
    return element("footer", element("p", f"Written with {with_}.", class_="note"))
