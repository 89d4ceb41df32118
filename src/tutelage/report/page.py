"""A run on one page: a single HTML file that needs nothing but itself, no script and no network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from tutelage.report import text
from tutelage.report.document import document
from tutelage.report.layout import Gap, facts
from tutelage.report.markup import Markup, element
from tutelage.report.sections import SECTIONS, Story
from tutelage.runs.evaluate import Result, overall
from tutelage.runs.run import Run
from tutelage.runs.storage import write_atomically


def write_page(
    run: Run, path: Path, results: Sequence[Result], *, suite_name: str, seconds: float | None = None
) -> None:
    """Writes the page. What the run does not have is said in a sentence in its place.

    `results` are those of the suite called `suite_name`; `seconds` is how long the run took, if known.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page(Story(run, tuple(results), suite_name, seconds)).encode())


def page(story: Story) -> str:
    """The whole document."""
    return document(story.title, _header(story), element("main", *(_section(story, *s) for s in SECTIONS)))


def _section(story: Story, title: str, content: Callable[[Story], Markup]) -> Markup:
    try:
        body = content(story)
    except Gap as gap:
        body = element("p", str(gap), class_="gap")
    return element("section", element("h2", title), body)


def _header(story: Story) -> Markup:
    seeds = story.run.config.seeds
    known = {"seeds": f"{seeds}", "student updates": _progress(story)}
    if story.rows:
        known["env steps, all seeds" if seeds > 1 else "env steps"] = text.count(story.env_steps)
    if story.seconds is not None:
        known["time"] = text.duration(story.seconds)
    run_name = element("p", "Tutelage run ", element("b", story.run.path.resolve().name), class_="eyebrow")
    return element("header", run_name, element("h1", story.title), _headline(story), facts(known))


def _progress(story: Story) -> str:
    total = story.run.config.updates
    return f"{total:,}" if story.updates == total else f"{story.updates:,} of {total:,}"


def _headline(story: Story) -> Markup:
    """The one number: how often held-out levels are solved."""
    if not story.results:
        return element("p", "The students have not been evaluated on held-out levels.", class_="gap")
    solved = overall(story.results)["solved_rate"]
    seeds, levels = (len({getattr(r, k) for r in story.results}) for k in ("seed", "level"))
    error = "" if math.isnan(solved.error) else "; mean ± standard error over seeds"
    how = f"{text.plural(levels, 'level')}, {text.plural(seeds, 'seed')}, {story.results[0].episodes:,} episodes each"
    return element(
        "div",
        element("p", text.percent(solved.mean), " ", element("small", text.percent_error(solved)), class_="number"),
        element("p", element("b", "of held-out episodes solved"), class_="what"),
        element("p", f"Suite {story.suite_name}: {how}{error}.", class_="note"),
        class_="headline",
    )
