"""A report from run directories to the page in a browser."""

import csv
import json
import re
import shutil
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import equinox as eqx
import jax
import pytest

from report.browser import CHROMIUM, Browser
from report.made import RATES, UPDATES, write_config, write_results
from toys import tiny_maze
from tutelage import cli
from tutelage.errors import UserError
from tutelage.report.pages import report as reports
from tutelage.report.pages.chapters import CHAPTERS
from tutelage.report.pages.html import Markup, element
from tutelage.report.pages.report import report, write_report
from tutelage.runs import checkpoint
from tutelage.runs.presets import preset
from tutelage.runs.recipe import command
from tutelage.runs.run import Run

VOID = {"img", "meta", "source"}
HOSTILE = "<script>alert('x')</script> & \"quotes\" [/a]"


class Reader(HTMLParser):
    """Checks nesting, and keeps addresses, texts and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.attributes: list[dict] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.attributes.append({"tag": tag, **dict(attrs)})
        self.addresses += [v for k, v in attrs if k in ("src", "srcset", "href", "xlink:href") and v]

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text.append(data)


def page_of(out: Path) -> Reader:
    return Reader((out / "index.html").read_text("utf-8"))


@pytest.fixture(scope="session")
def made(three_runs, tmp_path_factory) -> Path:
    """The report on three methods, with something amiss."""
    out = tmp_path_factory.mktemp("report") / "out"
    bad = out.parent / "no <run>"
    bad.mkdir()
    told: list[str] = []
    found = report([*(r.path for r in three_runs.values()), bad], out, on_chapter=told.append)
    assert len(told) == len(CHAPTERS)
    assert len(found.notes) == 1
    return out


@pytest.fixture(scope="session")
def html(made) -> str:
    return (made / "index.html").read_text("utf-8")


def test_every_chapter_is_told(html) -> None:
    text = Reader(html).text
    assert [t for t in text if t in dict(CHAPTERS)] == [title for title, _ in CHAPTERS]
    assert html.count('class="gap"') == html.count("has one checkpoint only") == 2, "those of DR and robust PLR"
    said = " ".join(text)
    for expected in (
        *("ACCEL, DR and Robust PLR on maze", "Tutelage report on 3 runs, 6 seeds", "13 generations of one level"),
        *("is not a run: it has no config.json", "tutelage train maze", "Written with tutelage", "Spiral"),
    ):
        assert expected in said


def test_every_figure_links_to_its_data(made, html) -> None:
    links = [a for a in Reader(html).addresses if not a.startswith(("data:", "#"))]
    files = {str(p.relative_to(made)) for p in made.rglob("*") if p.is_file()} - {"index.html"}
    assert set(links) == files
    for path in made.glob("figures/*.csv"):
        with path.open() as file:
            assert len(list(csv.reader(file))) > 1
        assert path.with_suffix(".svg").read_bytes().startswith(b"<?xml")
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert {"tables/maze-levels.md", "tables/maze-levels.tex", "tables/maze-levels.csv"} <= files
    drawn = len(list(made.glob("figures/*.csv")))
    films = len(list(made.glob("figures/*.webp")))
    assert films == 3
    assert html.count('class="files"') == drawn + films + 1  # and a table
    assert drawn >= 17


def test_a_level_can_be_made_again_from_the_data(made, three_runs) -> None:
    design = three_runs["accel"].config.env.design()
    with (made / "figures" / "maze-gallery-accel.csv").open() as file:
        levels = [json.loads(row["level"]) for row in csv.DictReader(file)]
    assert len(levels) == 12
    for level in levels:
        assert design.to_json(design.from_json(level)) == level


def test_it_loads_nothing_and_runs_only_its_own_script(html) -> None:
    assert set(re.findall(r"https?://[^\s\"'<)]*", html)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = next(a["content"] for a in Reader(html).attributes if a.get("http-equiv"))
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_every_picture_has_an_alternative_text(html) -> None:
    images = [x for x in Reader(html).attributes if x["tag"] == "img"]
    assert len(images) > 30
    assert all(image["alt"] for image in images)


def test_it_is_small(made) -> None:
    assert sum(p.stat().st_size for p in made.rglob("*")) < 15_000_000


def test_no_run_at_all_is_an_error(tmp_path) -> None:
    with pytest.raises(UserError, match="There is no run to report"):
        report([tmp_path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_that_has_only_begun_leaves_gaps(three_runs, tmp_path) -> None:
    folder = tmp_path / "begun"
    folder.mkdir()
    shutil.copy(three_runs["dr"].path / "config.json", folder)
    found = report([folder], tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert page.count('class="gap"') == len(CHAPTERS)  # the headline too, but how it was made is always told
    assert any("begun is unfinished, at 0 of 6" in note for note in found.notes)


def test_damaged_checkpoints_leave_the_rest(three_runs, tmp_path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(three_runs["dr"].path, folder)
    for path in (folder / "checkpoints").iterdir():
        path.write_bytes(b"nothing")
    report([folder, three_runs["plr"].path], tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "The checkpoint 6 of damaged cannot be read" in page
    assert "maze-gallery-robust-plr" in page
    assert "maze-gallery-dr" not in page


def test_missing_records_of_levels_leave_the_rest(three_runs, tmp_path, monkeypatch) -> None:
    """What is missing is named with its path; nothing is concluded from its absence."""
    folder = tmp_path / "unrecorded"
    shutil.copytree(three_runs["accel"].path, folder)
    shutil.rmtree(folder / "levels")
    titles = ("Levels of highest regret", "The evolution of levels", "The expanding frontier", "What the buffers hold")
    monkeypatch.setattr(reports, "CHAPTERS", [c for c in CHAPTERS if c[0] in titles])
    report([folder], tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "maze-gallery-accel" in page
    assert "maze-evolution-accel" not in page
    assert "maze-concentration" not in page
    assert "maze-by-solvable" in page
    assert page.count(f"<code>{folder / 'levels'}</code>, the record of all levels that unrecorded kept") == 3
    assert "copied along" in page
    assert "was edited" not in page


def test_a_method_that_edits_nothing_has_no_evolution_whatever_else_is_missing(
    three_runs, tmp_path, monkeypatch
) -> None:
    folder = tmp_path / "unedited"
    shutil.copytree(three_runs["dr"].path, folder)
    shutil.rmtree(folder / "levels")
    unedited = jax.tree.map(lambda x: x, Run(folder).state())
    unedited = eqx.tree_at(lambda s: s.buffer.generation, unedited, 0 * unedited.buffer.generation)
    checkpoint.save(folder / "checkpoints", UPDATES, unedited, json.loads((folder / "config.json").read_text()))
    monkeypatch.setattr(reports, "CHAPTERS", [c for c in CHAPTERS if c[0] == "The evolution of levels"])
    report([folder], tmp_path / "out")
    assert "None of the levels of highest score was edited" in (tmp_path / "out" / "index.html").read_text("utf-8")


def test_a_level_may_be_chosen_for_the_film(three_runs, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reports, "CHAPTERS", [c for c in CHAPTERS if c[0] == "Students at work"])
    for level, said in (("Spiral", "on Spiral: its first"), ("Moon", "The suite small has no level called Moon.")):
        report([three_runs["dr"].path], tmp_path / level, film=level)
        assert said in (tmp_path / level / "index.html").read_text("utf-8")
    assert [p.name for p in tmp_path.glob("*/figures/*")] == ["maze-film-dr.webp"]


@pytest.fixture(scope="session")
def single(maze_run, tmp_path_factory) -> Path:
    """The report on one run, with a level whose name is markup."""
    folder = tmp_path_factory.mktemp("single") / "q[/a]"
    shutil.copytree(maze_run.path, folder)
    write_results(Run(folder), "small", RATES | {HOSTILE: 0.3})
    (folder / "history.jsonl").write_text('{"event": "end", "seconds": 200.4}\n')
    report([folder], folder)
    return folder


def test_a_report_on_one_run_tells_all_of_it(single) -> None:
    reader = page_of(single)
    text = " ".join(reader.text)
    for expected in (
        *("Tutelage report on the run a], 2 seeds", "ACCEL on maze", "solved rate on levels never seen", "± 5%"),
        *("Suite small: 4 levels, 2 seeds, 20 episodes each", "3 min 20 s", "Solved rate by kind of level", "new 20%"),
        *("generation 13", "update 3", "return", "length in steps", "path length", "regret: how far it stays behind"),
    ):
        assert expected in text
    assert (single / "index.html").read_text("utf-8").count('class="gap"') == 1, "one checkpoint is no frontier"


def test_texts_of_a_run_cannot_break_the_page(single) -> None:
    assert HOSTILE in page_of(single).text
    assert "<script>alert" not in (single / "index.html").read_text("utf-8")


def test_an_env_of_ones_own(own_run, tmp_path) -> None:
    write_report([own_run], tmp_path, notes=["<b>one's own</b>"])
    page = (tmp_path / "index.html").read_text("utf-8")
    text = " ".join(Reader(page).text)
    assert "ACCEL on jumper" in text
    assert "<b>one's own</b>" in text
    assert "Trained from Python" in text
    assert (tmp_path / "figures" / "jumper-family-accel.svg").is_file()


@pytest.fixture
def brief(monkeypatch) -> None:
    """Only the chapters that need no student."""
    monkeypatch.setattr(reports, "CHAPTERS", CHAPTERS[:4])


def test_two_envs_are_told_one_after_the_other(own_run, three_runs, tmp_path, brief) -> None:
    write_report([own_run, three_runs["dr"]], tmp_path)
    text = Reader((tmp_path / "index.html").read_text("utf-8")).text
    assert "ACCEL on jumper; DR on maze" in text
    assert {"Level by level (jumper)", "Level by level (maze)"} <= set(text)


def test_the_command_says_what_was_left_out(three_runs, tmp_path, capsys, monkeypatch, brief) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    alone = write_config(tiny_maze(seeds=1, updates=7), tmp_path / "alone")
    args = [str(r.path) for r in (three_runs["dr"], alone)]
    assert cli.main(["report", *args, str(tmp_path), "--out", str(tmp_path / "out"), "--suite", "small"]) == 0
    out = capsys.readouterr().out
    for sentence in ("is not a run", "alone was not evaluated on the suite small", "unequal numbers of seeds"):
        assert sentence in out
    assert f"Open {tmp_path / 'out' / 'index.html'}" in out
    assert cli.main(["report", str(tmp_path), "--out", str(tmp_path / "none")]) == 2
    assert cli.main(["report"]) == 2


def test_the_papers_numbers_stand_on_the_page(tmp_path) -> None:
    run = write_config(preset("maze", "dr", seeds=2), tmp_path / "run")
    write_results(run, "maze-12", {"16Rooms": 0.8, "Maze": 0.4})
    report([run.path], tmp_path / "out")
    text = (tmp_path / "out" / "tables" / "maze-levels.md").read_text()
    assert "| 16Rooms | **0.85 ± 0.05** | 0.87 ± 0.06 | −0.3 |" in text


LOOK = """
(() => {
  const bad = [];
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
    const boxes = texts.map((t) => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([name, a], i) => {
      const inside = a.left >= frame.left - 1 && a.right <= frame.right + 1;
      if (!inside || a.top < frame.top - 1 || a.bottom > frame.bottom + 1) bad.push(`cut: ${name}`);
      for (const [other, b] of boxes.slice(i + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) bad.push(`${name} over ${other}`);
      }
    });
    if (!svg.querySelector("path, use, image")) bad.push("empty: " + svg.getAttribute("aria-label"));
  }
  return bad;
})()
"""


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium to look at the page with")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_overlaps_or_is_cut_on_any_screen(browser, made, width, dark) -> None:
    browser.open(made / "index.html", width=width, dark=dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(LOOK) == []
    assert browser.ask("[...document.images].filter((x) => !x.naturalWidth).length") == 0
    assert browser.complaints() == []


def test_light_and_dark(browser, made) -> None:
    colours = []
    for dark in (False, True):
        browser.open(made / "index.html", dark=dark)
        style = "getComputedStyle(document.querySelector('%s')).%s"
        colours.append([browser.ask(style % ("body", "backgroundColor")), browser.ask(style % ("svg text", "fill"))])
    assert colours[0] == colours[1][::-1] or all(a != b for a, b in zip(*colours, strict=True))


ORDER = "[...document.querySelectorAll('table.sortable')[0].tBodies[0].rows].map((r) => r.cells[0].textContent)"
CLICK = "document.querySelectorAll('table.sortable')[0].querySelectorAll('th button')[%d].click()"


def test_a_table_is_sorted_by_a_click(browser, made) -> None:
    browser.open(made / "index.html")
    assert browser.ask(ORDER) == list(RATES)
    browser.ask(CLICK % 1)
    assert browser.ask(ORDER) == ["Choice", "Spiral", "SBend"]
    browser.ask(CLICK % 1)
    assert browser.ask(ORDER) == ["SBend", "Spiral", "Choice"]
    browser.ask(CLICK % 0)
    assert browser.ask(ORDER) == ["Spiral", "SBend", "Choice"]
    assert browser.ask("document.querySelectorAll('th[aria-sort]').length") == 1


def test_without_scripts_all_is_there(browser, made) -> None:
    browser.open(made / "index.html", script=False)
    assert browser.ask("document.querySelectorAll('th button').length") == 0
    assert browser.ask(ORDER) == list(RATES)
    assert browser.ask("document.querySelectorAll('section').length") == len(CHAPTERS)


def test_elements_escape_all_but_markup() -> None:
    assert element("p", "a<b", Markup("<i>c</i>"), class_='"') == '<p class="&quot;">a&lt;b<i>c</i></p>'
    assert element("meta", http_equiv="x") == '<meta http-equiv="x">'


def test_the_command_is_the_closest_preset_with_what_was_changed() -> None:
    config = preset("maze", "demo", updates=7, seeds=3)
    assert command(config) == "tutelage train maze demo --updates 7 --seeds 3"
    assert command(preset("maze", "dr")) == "tutelage train maze dr"
