"""The parts of a report, each a function from an env's runs to HTML; figures and tables go through the binder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from tutelage.env import TestLevel
from tutelage.errors import UserError
from tutelage.report import comparison as compare
from tutelage.report import frontier as frontiers
from tutelage.report import pictures, provenance, text
from tutelage.report.animation import animation, hardest_first
from tutelage.report.binder import Binder
from tutelage.report.curves import Curve
from tutelage.report.descent import family_tree, sheet
from tutelage.report.drawing import Sketch, Words
from tutelage.report.findings import Findings, Volume
from tutelage.report.gather import Comparison, Group, Member
from tutelage.report.layout import Gap, caption, film, gap, grid, lead, measures
from tutelage.report.lines import Line, Scale
from tutelage.report.markup import Markup, element, join
from tutelage.report.pictures import evenly, exhibit
from tutelage.report.roses import CLASSES, composition, rose_plot
from tutelage.report.tables import Column, level_table
from tutelage.runs import config as configs
from tutelage.runs import history, presets
from tutelage.runs.browse import Found
from tutelage.statistics import Summary

GALLERY, STRIP = 12, 10  # pictures

Chapter = Callable[[Volume, Binder], Markup]


def _aggregate(v: Volume, b: Binder) -> Markup:
    c = v.comparison
    sketches = [compare.aggregates(c), compare.profile(c), compare.improvement(c)]
    drawn = [b.figure(s) for s in sketches if s is not None]
    if not drawn:
        raise Gap("No run was evaluated on held-out levels.")
    said = f"Zero-shot: the levels of the suite {c.suite} play no part in training. The interquartile mean leaves out "
    said += "the best and the worst quarter of all scores of seeds on levels."
    return join(lead(said), *drawn)


def _levels(v: Volume, b: Binder) -> Markup:
    c = v.comparison
    bars = compare.level_bars(c)
    if bars is None:
        raise Gap("No run was evaluated on held-out levels.")
    columns = [Column(g.label, g.method, g.preset, g.scores(c.measure, c.levels)) for g in c.evaluated]
    table = level_table(c.measure, c.levels, columns)
    said = f"{text.sentence_case(c.measure.name)}, mean ± standard error over seeds. "
    said += "Bold: within one standard error of the best. "
    if any(cell.star for row in table.rows for cell in row.cells):
        said += "★: better than PLR, p < 0.05 by Welch’s t-test over seeds. "
    if any(table.has_paper(n) for n in range(len(columns))):
        said += "Beside ours what the ACCEL paper prints, and the difference in standard errors."
    return join(lead(said), b.table(f"{c.slug}-levels", table, {g.label: g.seeds for g in c.groups}), b.figure(bars))


def _learning(v: Volume, b: Binder) -> Markup:
    sketches = compare.learning(v.comparison)
    if not sketches:
        raise Gap("No solved rates were logged.")
    said = "How often students succeed while they learn."
    return join(lead(said), *(b.figure(s) for s in sketches))


def _complexity(v: Volume, b: Binder) -> Markup:
    sketches = compare.complexity(v.comparison)
    if not sketches:
        raise Gap("No measures of the buffer’s levels were logged.")
    said = "Measures of the levels in the buffer, each weighed by its odds of being replayed. "
    said += "No method asks for complex levels."
    return join(lead(said), element("div", *(b.figure(s) for s in sketches), class_="panels"))


def _galleries(v: Volume, b: Binder) -> Markup:
    said = "The levels of highest score at the end, each seed’s best first."
    return join(lead(said), *(_gallery(v.comparison, f, b) for f in v.with_levels))


def _gallery(c: Comparison, f: Findings, b: Binder) -> Markup:
    design = f.best[0][0].run.config.env.design()
    try:
        shown = pictures.gallery(design, [[x.found(n) for n in range(len(x))] for _, x in f.best], GALLERY)
    except NotImplementedError as error:
        raise Gap("This env does not draw its levels.") from error
    words = Words(f"Levels of {f.group.label}", "of highest score")
    pictured = grid([(x, _score_caption(f, x.found)) for x in shown], "ul")
    sketch = sheet(f"{c.slug}-gallery-{f.group.slug}", words, design, [x.found for x in shown])
    return join(element("h3", f.group.label), b.figure(sketch, pictured))


def _score_caption(f: Findings, x: Found) -> Markup:
    return caption(f"score {text.number(x.score)}", f"generation {x.generation}", *measures(x.metrics))


def _birth_caption(f: Findings, x: Found) -> Markup:
    return caption(f"generation {x.generation}", f"update {x.birth:,}", *measures(x.metrics))


def _evolution(v: Volume, b: Binder) -> Markup:
    bred = [f for f in v.with_levels if f.family is not None]
    if not bred:
        raise Gap("None of the levels of highest score has ancestors on record: no method here edits levels.")
    said = "Where the best levels came from. Scores are those of the day a level was kept."
    return join(lead(said), *(_descent(v.comparison, f, b) for f in bred))


def _descent(c: Comparison, f: Findings, b: Binder) -> Markup:
    """The evolution of a level, its family, and three of its relatives."""
    assert f.family is not None
    tree, name = f.family[1], f"{c.slug}-%s-{f.group.slug}"
    line = tree.pedigree.line(tree.deepest)
    steps = f.relatives([line[i] for i in evenly(len(line), STRIP)])
    words = Words(
        f"The evolution of a level, {f.group.label}", f"seed {tree.pedigree.seed}, from the generator’s level on"
    )
    parts = [
        element("h3", f"{f.group.label}: {text.plural(len(line) - 1, 'generation')} of one level"),
        _strip(f, name % "evolution", words, steps, b),
        b.figure(family_tree(name % "family", tree)),
    ]
    if siblings := tree.siblings():
        ancestor, leaves = siblings
        words = Words(f"Three descendants of one ancestor, {f.group.label}", "the ancestor first")
        family = _strip(f, name % "siblings", words, f.relatives([ancestor, *leaves]), b)
        parts += [element("h3", f"{f.group.label}: an ancestor and three of its descendants"), family]
    return join(*parts)


def _strip(f: Findings, name: str, words: Words, found: Sequence[Found], b: Binder) -> Markup:
    assert f.family is not None
    design = f.family[0].run.config.env.design()
    try:
        shown = [exhibit(design, x) for x in found]
    except NotImplementedError as error:
        raise Gap("This env does not draw its levels.") from error
    return b.figure(sheet(name, words, design, found, 5), grid([(x, _birth_caption(f, x.found)) for x in shown], "ol"))


def _frontier(v: Volume, b: Binder) -> Markup:
    parts = []
    for f in v.with_levels:
        found = frontiers.frontier(*f.family) if f.family is not None else None
        if found is not None and f.family is not None:
            name = f"{v.comparison.slug}-%s-{f.group.slug}"
            design = f.family[0].run.config.env.design()
            maps = frontiers.difficulty(name % "difficulty", found)
            sketches = [frontiers.generations(name % "frontier", design, found), frontiers.bands(name % "bands", found)]
            parts += [element("h3", f.group.label), *(b.figure(s) for s in [*sketches, maps] if s is not None)]
    if not parts:
        raise Gap("It takes edited levels and two checkpoints that were kept: train with --archive-every.")
    said = "Students of several checkpoints on the same levels: later generations are for later students. "
    return join(lead(said + "PVL, the positive value loss, is the regret that is left."), *parts)


def _buffers(v: Volume, b: Binder) -> Markup:
    sketches = [s for s in (_concentration(v), *_compositions(v), _roses(v)) if s is not None]
    if not sketches:
        raise Gap("No run has a whole checkpoint with levels in its buffer.")
    said = "How much of the best hundred levels goes back to ten levels of the generator, and what kinds there are."
    return join(lead(said), *(b.figure(s) for s in sketches))


def _concentration(v: Volume) -> Sketch | None:
    hues, dashes, lines = compare.colours(v.comparison), compare.dashes(v.comparison), []
    for f in v.findings:
        found = f.concentrations()
        if found:
            values = [Summary.of(shares) for shares in found.values()]
            curve = Curve(np.array([*found], float), *(np.array(x) for x in zip(*values, strict=True)))
            lines.append(Line.of(f.group.label, hues[f.group.label], curve, dashes[f.group.label]))
    if not lines:
        return None
    words = Words("Concentration", "of the best 100, those from ten ancestors", "student updates", "share of levels")
    return compare.line_sketch(f"{v.comparison.slug}-concentration", words, lines, Scale(text.percent, share=True))


def _compositions(v: Volume) -> list[Sketch]:
    sketches = []
    for measure in CLASSES:
        found = [x for f in v.findings if (x := f.compositions(measure)) is not None]
        if found:
            sketches.append(composition(f"{v.comparison.slug}-by-{measure}", measure, found))
    return sketches


def _roses(v: Volume) -> Sketch | None:
    hues = compare.colours(v.comparison)
    found = [rose for f in v.findings for rose in f.roses(hues[f.group.label])]
    petals = v.findings[0].petals
    return rose_plot(f"{v.comparison.slug}-roses", petals, found) if any(len(r.values) for r in found) else None


def _films(v: Volume, b: Binder) -> Markup:
    c, best = v.comparison, compare.leader(v.comparison)
    suite = c.groups[0].members[0].run.config.env.suites().get(c.suite or "")
    if not suite or best is None:
        raise Gap("Without results on held-out levels there is none to choose for a film.")
    level = next((x for x in suite if x.name == v.film), None) if v.film else hardest_first(suite, best.results)[0]
    if level is None:
        raise Gap(f"The suite {c.suite} has no level called {v.film}.")
    films = [_film(f"{c.slug}-film-{group.slug}", group, level, b) for group in c.groups]
    why = "" if v.film else f", the hardest level that {best.label} solves"
    said = f"A student of each method on {level.name}{why}: its first success in a few tries, or else a failure."
    return join(lead(said), element("div", *films, class_="films"))


def _film(name: str, group: Group, level: TestLevel, b: Binder) -> Markup:
    for member in group.members:
        try:
            shown = animation(member.run, (level,), member.results)
        except NotImplementedError as error:
            raise Gap("This env does not draw its episodes.") from error
        except UserError:
            continue
        return element("div", film(shown, member.results, group.label), b.film(name, shown))
    return gap(f"{group.label} has no whole checkpoint, so there is no student to play.")


def _making(v: Volume, b: Binder) -> Markup:
    titles = ("run", "method", "seeds", "updates", "env steps", "evaluated at", "trained on", "in")
    head = element("thead", element("tr", *(element("th", t, scope="col") for t in titles)))
    members = [(group, member) for group in v.comparison.groups for member in group.members]
    body = element("tbody", *(_run_row(group, member) for group, member in members))
    table = element("div", element("table", head, body, class_="sortable many"), class_="scroll")
    said = "Every run that is in this report, and how to make it again."
    return join(lead(said), table, *(_recipe(group) for group in v.comparison.groups))


def _run_row(group: Group, member: Member) -> Markup:
    config, rows, past = member.run.config, member.rows, history.read(member.run.path)
    steps = sum(row.get("env_steps", 0) for row in rows if row["updates"] == rows[-1]["updates"])
    at = member.evaluation.updates if member.evaluation else None
    seconds = sum(line.get("seconds", 0) for line in past)
    cells = [
        (group.label, group.label),
        (", ".join(map(str, member.seeds)), str(len(member.seeds))),
        (f"{member.updates:,} of {config.updates:,}", str(member.updates)),
        (text.count(steps), str(steps)),
        ("–" if at is None else f"{at:,}", str(at or 0)),
        (text.listed(sorted({line["device"] for line in past if "device" in line})) or "–", ""),
        (text.duration(seconds) if seconds else "–", str(seconds)),
    ]
    values = [element("td", said, data_value=value) for said, value in cells]
    return element("tr", element("th", member.name, scope="row"), *values)


def _recipe(group: Group) -> Markup:
    config = group.members[0].run.config
    again = provenance.command(config) or "Trained from Python, not from a preset."
    plain = json.dumps(configs.to_json(config, presets.method_name(config.method)), indent=2)
    whole = element("details", element("summary", "The whole configuration"), element("pre", element("code", plain)))
    notes = [element("p", said, class_="note") for said in dict.fromkeys(map(_versions, group.members)) if said]
    return join(element("h3", group.label), element("pre", element("code", again), class_="command"), *notes, whole)


def _versions(member: Member) -> str:
    """What a run was trained with, from its own record."""
    begun = [line for line in history.read(member.run.path) if line.get("event") == "begin"]
    known = {name: value for line in begun for name, value in line.items() if name not in ("event", "time", "updates")}
    said = text.listed([f"{name} {value}" for name, value in known.items()])
    return f"Trained with {said}; begun {begun[0]['time']}." if said else ""


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
