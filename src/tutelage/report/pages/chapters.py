"""The parts of a report, each a function from an env's runs to HTML; figures and tables go through the binder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from tutelage.env import Domain, TestLevel
from tutelage.errors import UserError
from tutelage.page.address import address
from tutelage.report import text
from tutelage.report.facts import provenance
from tutelage.report.facts.comparison import Comparison, Group
from tutelage.report.facts.levels import Family, Findings, evenly, readable
from tutelage.report.facts.runs import Member, Missing
from tutelage.report.facts.students import choose_episode, hardest_first
from tutelage.report.pages.binder import Binder
from tutelage.report.pages.html import Markup, caption, element, film, gap, grid, join, lead, measures
from tutelage.report.pages.tables import Column, Table, html, level_table
from tutelage.report.plots import frontier, methods
from tutelage.report.plots.figure import Sketch, Words
from tutelage.report.plots.levels import composition, family_tree, rose_plot, sheet
from tutelage.report.plots.pictures import Exhibit, animate, exhibit, gallery
from tutelage.runs import config as configs
from tutelage.runs import presets, recipe
from tutelage.runs.browse import Found

GALLERY, STRIP = 12, 10  # pictures
ALSO = {"solved rate": ("solved_rate", 2), "return": ("mean_return", 2), "length in steps": ("mean_length", 0)}


@dataclass(frozen=True, eq=False)
class Volume:
    """One env's comparison with the findings of each of its methods."""

    comparison: Comparison
    film: str | None = None  # the level to film students on, if one was asked for
    room: str | None = None  # the page beside this one in which a person can play in levels, if there is one

    def door(self, x: Exhibit) -> str | None:
        """The address at which a level can be played in."""
        found = None if self.room is None else address(self.comparison.groups[0].members[0].domain, x.found.level)
        return None if found is None else f"{self.room}#{found}"

    @cached_property
    def findings(self) -> tuple[Findings, ...]:
        """In the order of the groups."""
        return tuple(Findings(group) for group in self.comparison.groups)

    @property
    def alone(self) -> bool:
        """There is one method only."""
        return len(self.findings) == 1


Chapter = Callable[[Volume, Binder], Markup]


def _each(findings: Iterable[Findings], tell: Callable[[Findings], Markup | None]) -> Markup:
    """What is told of each method; where something is missing, a sentence that says what it is."""
    told: dict[Markup, None] = {}
    for f in findings:
        try:
            told[tell(f) or Markup()] = None
        except UserError as error:
            told[gap(str(error))] = None
    return join(*told)


def _aggregate(v: Volume, b: Binder) -> Markup:
    c = v.comparison
    sketches = [methods.aggregates(c), methods.profile(c), methods.improvement(c)]
    drawn = [b.figure(s) for s in sketches if s is not None]
    if not drawn:
        raise Missing(_unevaluated(c))
    said = f"Zero-shot: the levels of the suite {c.suite} play no part in training. The interquartile mean leaves out "
    said += "the best and the worst quarter of all scores of seeds on levels."
    return join(lead(said), *drawn)


def _unevaluated(c: Comparison) -> str:
    folders = text.listed([f"`{m.run.path / 'evals'}`" for m in c.members[:3]])
    return f"There are no results on held-out levels in {folders}: `tutelage eval {c.members[0].run.path}` writes them."


def _levels(v: Volume, b: Binder) -> Markup:
    c = v.comparison
    if not c.evaluated:
        raise Missing(_unevaluated(c))
    columns = [Column(g.label, g.method, g.preset, g.scores(c.measure.of, c.levels)) for g in c.evaluated]
    table = level_table(c.measure.digits, c.levels, columns)
    over = "mean ± standard error over seeds" if c.repeated else "of one seed"
    said = f"{text.sentence_case(c.measure.name)}, {over}. "
    if not v.alone:
        said += "Bold: within one standard error of the best. "
    if any(cell.star for row in table.rows for cell in row.cells):
        said += "★: better than PLR, p < 0.05 by Welch’s t-test over seeds. "
    if any(table.has_paper(n) for n in range(len(columns))):
        said += "Beside ours what the ACCEL paper prints, and the difference in standard errors."
    shown = html(replace(table, methods=(c.measure.name,)), _also(c)) if v.alone else html(table, {})
    written = b.table(f"{c.slug}-levels", table, {g.label: g.seeds for g in c.groups}, shown)
    bars = methods.level_bars(c)
    return join(lead(said), written, b.figure(bars) if bars else "")


def _also(c: Comparison) -> dict[str, Table]:
    """What else is known of a single method on each level."""
    (group,) = c.groups
    kinds = {title: kind for title, kind in ALSO.items() if kind[0] != c.measure.column}
    return {
        title: level_table(digits, c.levels, [Column(title, "", None, group.scores(attrgetter(column), c.levels))])
        for title, (column, digits) in kinds.items()
    }


def _learning(v: Volume, b: Binder) -> Markup:
    sketches = methods.learning(v.comparison)
    if not sketches:
        raise Missing(_unlogged(v.comparison, "solved rates"))
    said = (
        "How often students succeed while they learn: on the levels they meet in training, and on validation levels, "
    )
    return join(lead(f"{said}which they never learn from."), *(b.figure(s) for s in sketches))


def _unlogged(c: Comparison, what: str) -> str:
    files = [member.run.path / "metrics.jsonl" for member in c.members]
    if gone := [f"`{file}`" for file in files if not file.is_file()]:
        verb = "is" if len(gone) == 1 else "are"
        return f"{text.listed(gone)} {verb} missing: training writes metrics there, so copy them along with the run."
    return f"There are no {what} in {text.listed([f'`{file}`' for file in files[:3]])}."


def _complexity(v: Volume, b: Binder) -> Markup:
    sketches = methods.complexity(v.comparison)
    if not sketches:
        raise Missing(_unlogged(v.comparison, "measures of the buffer’s levels"))
    said = "Measures of the levels in the buffer, each weighed by its odds of being replayed"
    said += ", and plain beside it. " if v.alone else ". "
    said += "No method asks for complex levels."
    return join(lead(said), element("div", *(b.figure(s) for s in sketches), class_="panels"))


def _galleries(v: Volume, b: Binder) -> Markup:
    said = "The levels of highest score at the end, each seed’s best first. "
    scores = {getattr(g.members[0].run.config.method, "score", None) for g in v.comparison.groups}
    if scores == {"learnability"}:
        said += "The score is learnability: highest where the student succeeds every other time. "
    elif "learnability" not in scores:
        said += "The score estimates the student’s regret: how far it stays behind what can be reached. "
    if v.room is not None:
        said += "Each picture leads to a room in which you can play in the level."
    return join(lead(said.rstrip()), _each(v.findings, lambda f: _gallery(v, f, b)))


def _gallery(v: Volume, f: Findings, b: Binder) -> Markup:
    c, domain = v.comparison, f.best[0][0].domain
    design = domain.design()
    shown = gallery(design, [list(x) for _, x in f.best], GALLERY)
    words = Words(f"Levels of {f.group.label}", "of highest score")
    pictured = grid([(x, _score_caption(x.found, domain)) for x in shown], "ul", v.door)
    sketch = sheet(f"{c.slug}-gallery-{f.group.slug}", words, design, [x.found for x in shown])
    return join(element("h3", f.group.label), b.figure(sketch, pictured))


def _score_caption(x: Found, domain: Domain) -> Markup:
    known = measures(x.metrics, domain.classes)
    return caption(f"score {text.number(x.score)}", f"generation {x.generation}, seed {x.seed}", *known)


def _birth_caption(x: Found, domain: Domain) -> Markup:
    return caption(f"generation {x.generation}", f"update {x.birth:,}", *measures(x.metrics, domain.classes))


def _evolution(v: Volume, b: Binder) -> Markup:
    told = _each(v.findings, lambda f: _descent(v.comparison, f.group, f.family, b) if f.family else None)
    if not told:
        raise Missing("None of the levels of highest score was edited: each is as the generator made it.")
    said = (
        "Where the best levels came from: each ancestor was kept for its score, and the scores are those of that day."
    )
    return join(lead(said), told)


def _descent(c: Comparison, group: Group, family: Family, b: Binder) -> Markup:
    """The evolution of a level, its family, and three of its relatives."""
    tree, name = family.tree, f"{c.slug}-%s-{group.slug}"
    line = tree.pedigree.line(tree.deepest)
    seed = f"seed {tree.pedigree.seed}, from the generator’s level on"
    words = Words(f"The evolution of a level, {group.label}", seed)
    parts = [
        element("h3", f"{group.label}: {text.plural(len(line) - 1, 'generation')} of one level, {seed}"),
        _strip(family, name % "evolution", words, [line[i] for i in evenly(len(line), STRIP)], b),
        b.figure(family_tree(name % "family", tree)),
    ]
    if siblings := tree.siblings():
        ancestor, leaves = siblings
        words = Words(f"Three descendants of one ancestor, {group.label}", "the ancestor first")
        strip = _strip(family, name % "siblings", words, [ancestor, *leaves], b)
        parts += [element("h3", f"{group.label}: an ancestor and three of its descendants"), strip]
    return join(*parts)


def _strip(family: Family, name: str, words: Words, levels: Sequence[int], b: Binder) -> Markup:
    domain, found = family.member.domain, list(family.levels(levels))
    design = domain.design()
    shown = grid([(exhibit(design, x), _birth_caption(x, domain)) for x in found], "ol")
    return b.figure(sheet(name, words, design, found, 5), shown)


def _frontier(v: Volume, b: Binder) -> Markup:
    told = _each(v.findings, lambda f: _front(v.comparison, f.group, f.family, b) if f.family else None)
    if not told:
        raise Missing("None of the levels of highest score was edited, so there are no generations to compare.")
    said = "Students of several checkpoints on the same levels: later generations are for later students. "
    return join(lead(said + "PVL, the positive value loss, is the regret that is left."), told)


def _front(c: Comparison, group: Group, family: Family, b: Binder) -> Markup:
    found, design, name = family.frontier(), family.member.domain.design(), f"{c.slug}-%s-{group.slug}"
    sketches = [
        frontier.generations(name % "frontier", design, found),
        frontier.bands(name % "bands", found),
        frontier.difficulty(name % "difficulty", found, c.classes),
    ]
    return join(element("h3", group.label), *(b.figure(s) for s in sketches if s is not None))


def _buffers(v: Volume, b: Binder) -> Markup:
    c, known = v.comparison, readable(lambda f: (f, f.best)[0], v.findings)
    petals = [name for name in known[0].metrics if name not in c.classes]
    sketches = [methods.concentration(c, known), *_compositions(c, known), _roses(c, known, petals)]
    said = "How much of the best hundred levels goes back to ten levels of the generator, and what kinds there are."
    unread = _each(v.findings, _unread)
    return join(lead(said), *(b.figure(s) for s in sketches if s is not None), unread)


def _unread(f: Findings) -> None:
    """Nothing to tell, but what is missing to say how concentrated a buffer is."""
    f.concentrations  # noqa: B018 - raises


def _compositions(c: Comparison, findings: Sequence[Findings]) -> list[Sketch]:
    sketches = []
    for measure, names in c.classes.items():
        if found := [x for f in findings if (x := f.composition(measure, len(names))) is not None]:
            sketches.append(composition(f"{c.slug}-by-{text.slug(measure)}", names, found))
    return sketches


def _roses(c: Comparison, findings: Sequence[Findings], petals: Sequence[str]) -> Sketch | None:
    found = [rose for f in findings for rose in f.roses(petals)]
    some = any(len(rose.values) for rose in found)
    return rose_plot(f"{c.slug}-roses", petals, found, methods.colours(c)) if some else None


def _films(v: Volume, b: Binder) -> Markup:
    c, best = v.comparison, v.comparison.leader
    if best is None:
        raise Missing(f"{_unevaluated(c)} They tell which level to film.")
    if not c.held_out:
        raise Missing(f"The suite {c.suite} is not one of the env’s own, so there is no level to film.")
    named = [x for x in c.held_out if x.name == v.film]
    if v.film and not named:
        raise Missing(f"The suite {c.suite} has no level called {v.film}.")
    level = named[0] if named else hardest_first(c.held_out, best.results)[0]
    why = "" if named else f", the hardest level that {best.label} solves"
    who = "A student" if v.alone else "A student of each method"
    said = f"{who} on {level.name}{why}: its first success in a few tries, or else a failure."
    films = _each(v.findings, lambda f: _film(c, f.group, level, b))
    return join(lead(said), films if v.alone else element("div", films, class_="films"))


def _film(c: Comparison, group: Group, level: TestLevel, b: Binder) -> Markup:
    member, episode = readable(lambda member: (member, choose_episode(member, (level,))), group.members)[0]
    shown = animate(member.domain, episode)
    written = b.film(f"{c.slug}-film-{group.slug}", shown)
    return element("div", film(shown, member.results, group.label), written)


def _making(v: Volume, b: Binder) -> Markup:
    titles = ("run", "method", "seeds", "updates", "env steps", "evaluated at", "trained on", "in")
    head = element("thead", element("tr", *(element("th", t, scope="col") for t in titles)))
    rows = [_run_row(group, member) for group in v.comparison.groups for member in group.members]
    table = element("div", element("table", head, element("tbody", *rows), class_="sortable many"), class_="scroll")
    said = "Every run that is in this report, and how to make it again."
    return join(lead(said), table, *(_recipe(group) for group in v.comparison.groups))


def _run_row(group: Group, member: Member) -> Markup:
    at = member.evaluation.updates if member.evaluation else None
    cells = [
        (group.label, group.label),
        (", ".join(map(str, member.seeds)), str(len(member.seeds))),
        (f"{member.updates:,} of {member.run.config.updates:,}", str(member.updates)),
        (text.count(member.env_steps), str(member.env_steps)),
        ("–" if at is None else f"{at:,}", str(at or 0)),
        (text.listed(provenance.devices(member.past)) or "–", ""),
        (text.duration(member.seconds) if member.seconds else "–", str(member.seconds)),
    ]
    values = [element("td", said, data_value=value) for said, value in cells]
    return element("tr", element("th", member.name, scope="row"), *values)


def _recipe(group: Group) -> Markup:
    config = group.members[0].run.config
    again = recipe.command(config) or "Trained from Python, not from a preset."
    plain = json.dumps(configs.to_json(config, presets.method_name(config.method)), indent=2)
    whole = element("details", element("summary", "The whole configuration"), element("pre", element("code", plain)))
    begun = dict.fromkeys(provenance.beginning(member.past) for member in group.members)
    notes = [element("p", said, class_="note") for said in begun if said]
    return join(element("h3", group.label), element("pre", element("code", again), class_="command"), *notes, whole)


CHAPTERS: tuple[tuple[str, Chapter], ...] = (
    ("Levels never seen", _aggregate),
    ("Level by level", _levels),
    ("While they learn", _learning),
    ("Emergent complexity", _complexity),
    ("Levels of highest regret", _galleries),
    ("The evolution of levels", _evolution),
    ("The expanding frontier", _frontier),
    ("What the buffers hold", _buffers),
    ("Students at work", _films),
    ("How it was made", _making),
)
