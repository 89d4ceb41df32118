"""The parts of a run's page, each a function from the run's story to HTML."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tutelage.errors import UserError
from tutelage.report import figures, pictures, provenance, text
from tutelage.report.animation import Animation, animation
from tutelage.report.drawing import NARROW, WIDE
from tutelage.report.layout import Gap, caption, film, grid, lead, measures, with_error
from tutelage.report.markup import Markup, element, join
from tutelage.report.pictures import Exhibit
from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs.browse import Found
from tutelage.runs.evaluate import Result, by_level, overall
from tutelage.runs.run import Run
from tutelage.statistics import Summary


@dataclass(frozen=True)
class Story:
    """What the page is about."""

    run: Run
    results: tuple[Result, ...]
    suite_name: str
    seconds: float | None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The run's metrics."""
        return self.run.metrics()

    @cached_property
    def found(self) -> list[list[Found]]:
        """Each seed's levels of highest score."""
        try:
            found = pictures.best_of_each_seed(self.run)
        except UserError as error:
            raise Gap("There is no whole checkpoint, so there is no buffer to take levels from.") from error
        if not any(found):
            raise Gap("The buffer holds no levels yet.")
        return found

    def measures(self, f: Found) -> list[str]:
        """A level's metrics, in words."""
        return measures(f.metrics)

    @property
    def title(self) -> str:
        """Method and env."""
        return f"{type(self.run.config.method).__name__} on {self.run.config.env.name}"

    @property
    def updates(self) -> int:
        """Student updates done, as far as the run's files tell."""
        return max((0, *(row["updates"] for row in self.rows[-1:]), *self.run.checkpoints))

    @property
    def env_steps(self) -> int:
        """Of all seeds together, at the last log point."""
        return sum(row["env_steps"] for row in self.rows if row["updates"] == self.rows[-1]["updates"])


def _learning(story: Story) -> Markup:
    wide, narrow = (figures.learning_curves(story.rows, width=width) for width in (WIDE, NARROW))
    if wide is None or narrow is None:
        raise Gap("No solved rates were logged.")
    said = "How often the student succeeds on the levels it meets in training"
    validated = any(row.get("eval/solved") is not None for row in story.rows)
    said += ", and on validation levels, which it never learns from." if validated else "."
    return join(lead(said), element("div", wide, class_="wide"), element("div", narrow, class_="narrow"))


def _complexity(story: Story) -> Markup:
    panels = figures.complexity_curves(story.rows)
    if not panels:
        raise Gap("No measures of the buffer’s levels were logged.")
    said = "The levels in the buffer while the student learned."
    if any(row.get("replay/solved") is not None for row in story.rows):
        said += " “Replayed” weighs each by its odds of being replayed."
    return join(lead(said), element("div", *panels, class_="panels"))


def _gallery(story: Story) -> Markup:
    exhibits = _drawn(lambda: pictures.gallery(story.run.config.env.design(), story.found))
    said = "The levels of highest score at the end, each seed’s best ones. "
    if getattr(story.run.config.method, "score", None) == "learnability":
        said += "The score is learnability: highest where the student succeeds every other time."
    else:
        said += "The score estimates the student’s regret: how far it stays behind what can be reached."
    return join(lead(said), grid([(x, _score_caption(story, x.found)) for x in exhibits], "ul"))


def _ancestry(story: Story) -> Markup:
    line = _drawn(lambda: pictures.ancestry(story.run, story.found))
    if not line:
        raise Gap("None of the levels of highest score has ancestors on record.")
    last = line[-1].found
    generations = text.plural(last.generation, "generation")
    said = f"From a level of the generator to one of the highest scores, in {generations} of edits, "
    said += f"each kept for its score (level {last.id:,} of seed {last.seed})."
    return join(lead(said), grid([(x, _birth_caption(story, x.found)) for x in line], "ol"))


def _drawn(draw: Callable[[], list[Exhibit]]) -> list[Exhibit]:
    try:
        return draw()
    except NotImplementedError as error:
        raise Gap("This env does not draw its levels.") from error


def _score_caption(story: Story, f: Found) -> Markup:
    return caption(f"score {text.number(f.score)}", f"generation {f.generation}, seed {f.seed}", *story.measures(f))


def _birth_caption(story: Story, f: Found) -> Markup:
    return caption(f"generation {f.generation}", f"update {f.birth:,}", *story.measures(f))


def _animation(story: Story) -> Markup:
    shown = _filmed(story)
    said = "A student on a held-out level, its actions drawn from its policy."
    return join(lead(said), film(shown, story.results))


def _filmed(story: Story) -> Animation:
    suite = story.run.config.env.suites().get(story.suite_name)
    if not suite:
        raise Gap(f"This env has no held-out levels called {story.suite_name}.")
    try:
        return animation(story.run, suite, story.results)
    except NotImplementedError as error:
        raise Gap("This env does not draw its episodes.") from error
    except UserError as error:
        raise Gap("There is no whole checkpoint, so there is no student to play.") from error


def _table(story: Story) -> Markup:
    if not story.results:
        raise Gap("There are no results on held-out levels.")
    titles = ("level", "solved rate", "return", "length in steps")
    head = element("thead", element("tr", *(element("th", t, scope="col") for t in titles)))
    body = element("tbody", *(_row(name, row) for name, row in by_level(story.results).items()))
    foot = element("tfoot", _row("mean", overall(story.results)))
    said = f"Zero-shot: the levels of the suite {story.suite_name} play no part in training. "
    said += "Mean ± standard error over seeds." if len({r.seed for r in story.results}) > 1 else "One seed."
    return join(lead(said), element("div", element("table", head, body, foot), class_="scroll"))


def _row(name: str, row: dict[str, Summary]) -> Markup:
    solved = row["solved_rate"]
    bar = element("span", element("i", style=f"width:{100 * min(1.0, max(0.0, solved.mean)):.1f}%"), class_="bar")
    cells = [element("td", bar, *with_error(text.percent(solved.mean), text.percent_error(solved)))]
    for key, digits in (("mean_return", 2), ("mean_length", 0)):
        cells.append(element("td", *with_error(*text.plus_minus(row[key], digits))))
    return element("tr", element("th", name, scope="row"), *cells)


def _making(story: Story) -> Markup:
    config = story.run.config
    again = provenance.command(config)
    how = element("pre", element("code", again)) if again else lead("Trained from Python, not from a preset.")
    plain = json.dumps(configs.to_json(config, presets.method_name(config.method)), indent=2)
    details = element("details", element("summary", "The whole configuration"), element("pre", element("code", plain)))
    with_ = ", ".join(f"{name} {version}" for name, version in provenance.versions().items())
    return join(how, details, element("p", f"This page was written with {with_}.", class_="note"))


SECTIONS: tuple[tuple[str, Callable[[Story], Markup]], ...] = (
    ("What the student learned", _learning),
    ("What became of the levels", _complexity),
    ("Levels of highest regret", _gallery),
    ("The ancestry of a level", _ancestry),
    ("The student at work", _animation),
    ("Held-out levels", _table),
    ("How it was made", _making),
)
