"""A report: any set of runs as one page, with its figures, tables and their data in files beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tutelage.env import Domain
from tutelage.errors import UserError
from tutelage.page.page import page_of, write_page
from tutelage.page.rooms import ready
from tutelage.report import text
from tutelage.report.facts import provenance
from tutelage.report.facts.comparison import Comparison, Gathered, Group, gather
from tutelage.report.facts.runs import UNREADABLE, Member, open_runs
from tutelage.report.pages.binder import Binder
from tutelage.report.pages.chapters import CHAPTERS, Chapter, Volume
from tutelage.report.pages.html import Markup, document, element, facts, gap, join, marked, resource
from tutelage.runs import students
from tutelage.runs.flags import start_jax
from tutelage.runs.run import Run
from tutelage.runs.storage import write_atomically
from tutelage.statistics import Summary

ROOM = "room.html"


def report(
    paths: Iterable[Path],
    out: Path,
    *,
    suite: str | None = None,
    film: str | None = None,
    domain: Domain | None = None,
    on_chapter: Callable[[str], None] = lambda title: None,
) -> Gathered:
    """Reports on run directories in `out/index.html`, and says what could not be used.

    `suite` names the held-out levels to compare on, by default those that most runs were evaluated on; `film` is the
    level to show students on, by default the hardest that the best method solves; `domain` is the env of one's own that
    runs may have been made with.
    """
    runs, notes = open_runs(paths, domain)
    if not runs:
        raise UserError(" ".join(["There is no run to report.", *notes]))
    start_jax(*(run.config.env for run in runs))
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
        _write(gathered, out, film, on_chapter)
    except OSError as error:
        raise UserError(f"{out} cannot be written to ({error.strerror}): choose another --out.") from error
    return gathered


def _write(gathered: Gathered, out: Path, film: str | None, on_chapter: Callable[[str], None]) -> None:
    alone, playable = len(gathered.comparisons) == 1, _write_room(gathered, out)
    volumes = [Volume(c, film, ROOM if c in playable else None) for c in gathered.comparisons]
    parts = [_part(volume, Binder(out), on_chapter, alone=alone) for volume in volumes]
    way = [element("p", element("a", "Play the teacher", href=ROOM), " for these students.")] if playable else []
    body = (_header(gathered, *way), element("main", *parts), _footer())
    page = document(_title(gathered), *body, script=resource("sort.js"))
    write_atomically(out / "index.html", page.encode("utf-8", "replace"))


def _write_room(gathered: Gathered, out: Path) -> list[Comparison]:
    """Writes a page to play in with a run of each method, and says for which comparisons it has a room."""
    rooms = {c: [g.members[0] for g in c.groups if _may_play(g.members[0])] for c in gathered.comparisons}
    try:
        _write_page(rooms, out / ROOM)
    except UNREADABLE:  # the rest can be played in
        rooms = {c: [member for member in members if _has_page(member)] for c, members in rooms.items()}
        _write_page(rooms, out / ROOM)
    return [c for c, members in rooms.items() if members]


def _write_page(rooms: Mapping[Comparison, Sequence[Member]], page: Path) -> None:
    if runs := [member.run for members in rooms.values() for member in members]:
        write_page(runs, page)


def _may_play(member: Member) -> bool:
    return bool(member.checkpoints or students.are_there(member.run.path)) and ready(member.run.config)


def _has_page(member: Member) -> bool:
    """Whether a page can be made of what is left of a run."""
    try:
        page_of([member.run])
    except UNREADABLE:
        return False
    return True


def _part(volume: Volume, binder: Binder, on_chapter: Callable[[str], None], *, alone: bool) -> Markup:
    env, sections = volume.comparison.env, []
    for title, chapter in CHAPTERS:
        on_chapter(f"{env}: {title.lower()}")
        sections.append(_section(title if alone else f"{title} ({env})", chapter, volume, binder))
    return element("div", *sections)


def _section(title: str, chapter: Chapter, volume: Volume, binder: Binder) -> Markup:
    try:
        body = chapter(volume, binder)
    except UserError as error:
        body = gap(str(error))
    return element("section", element("h2", title), body)


def _title(gathered: Gathered) -> str:
    return "; ".join(f"{_methods(c)} on {c.env}" for c in gathered.comparisons)


def _methods(c: Comparison) -> str:
    labels = [group.label for group in c.groups]
    return text.listed(labels) if len(labels) <= 3 else f"{len(labels)} methods"


def _header(gathered: Gathered, *ways: Markup) -> Markup:
    members = [member for c in gathered.comparisons for member in c.members]
    seeds = sum(len(member.seeds) for member in members)
    which = f"the run {members[0].name}" if len(members) == 1 else text.plural(len(members), "run")
    eyebrow = f"Tutelage report on {which}, {text.plural(seeds, 'seed')}"
    notes = [element("ul", *(element("li", marked(note)) for note in gathered.notes), class_="notes")]
    top = (element("p", eyebrow, class_="eyebrow"), element("h1", _title(gathered)))
    return element("header", *top, *map(_headline, gathered.comparisons), *ways, *(notes if gathered.notes else []))


def _headline(c: Comparison) -> Markup:
    """How well students do on held-out levels: each method's interquartile mean, or one method's score as it is."""
    if not c.common:
        said = gap(f"No run on {c.env} was evaluated on held-out levels.")
    elif len(c.groups) == 1:
        said = _score(c, c.groups[0])
    else:
        levels = f"{text.plural(len(c.common), 'level')} of the suite {c.suite}"
        about = f"Interquartile mean of the {c.measure.name} on {levels}, of 1."
        known = facts({group.label: f"{c.iqm(group):.2f}" for group in c.evaluated})
        said = join(known, element("p", about, class_="note"))
    return element("div", said, *([_size(c.groups[0])] if len(c.groups) == 1 else []), class_="headline")


def _score(c: Comparison, group: Group) -> Markup:
    """The mean over levels, large."""
    s = Summary.of(group.scores(c.measure.of, c.common).mean(axis=1).tolist())
    if (c.measure.zero, c.measure.one) == (0, 1):
        mean, error = text.percent(s.mean), f"± {text.percent(s.error)}" * math.isfinite(s.error)
    else:
        mean, _, error = s.text(c.measure.digits).replace("-", "−").partition(" ")
    episodes = f"{max(r.episodes for r in group.results):,} episodes each"
    how = f"{text.plural(len(c.common), 'level')}, {text.plural(group.seeds, 'seed')}, {episodes}"
    return join(
        element("p", mean, " ", element("small", error), class_="number"),
        element("p", element("b", f"{c.measure.name} on levels never seen in training"), class_="what"),
        element("p", f"Suite {c.suite}: {how}{'; mean ± standard error over seeds' if error else ''}.", class_="note"),
    )


def _size(group: Group) -> Markup:
    """How much was trained, and how long that took."""
    done = {
        f"{m.updates:,}" + f" of {m.run.config.updates:,}" * (m.updates < m.run.config.updates) for m in group.members
    }
    known = {"seeds": f"{group.seeds}", "student updates": text.listed(sorted(done))}
    if steps := sum(member.env_steps for member in group.members):
        known["env steps, all seeds" if group.seeds > 1 else "env steps"] = text.count(steps)
    if seconds := sum(member.seconds for member in group.members):
        known["training time"] = text.duration(seconds)
    return facts(known)


def _footer() -> Markup:
    with_ = ", ".join(f"{name} {version}" for name, version in provenance.versions().items())
    return element("footer", element("p", f"Written with {with_}.", class_="note"))
