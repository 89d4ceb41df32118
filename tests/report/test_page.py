import re
import shutil
from collections import Counter
from html.parser import HTMLParser

import pytest

from tutelage.report.markup import Markup, element
from tutelage.report.page import write_page
from tutelage.report.provenance import command
from tutelage.report.sections import SECTIONS
from tutelage.runs.evaluate import Result
from tutelage.runs.presets import preset
from tutelage.runs.run import Run

VOID = {"img", "meta", "source"}
HOSTILE = "<script>alert('x')</script> & \"quotes\""


class Reader(HTMLParser):
    """Checks nesting, and keeps tags, texts and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text: list[str] = []
        self.addresses: list[str] = []
        self.images: list[dict] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags[tag] += 1
        self.addresses += [v for k, v in attrs if k in ("src", "srcset", "href", "xlink:href") and v]
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags[tag] += 1
        self.addresses += [v for k, v in attrs if k in ("href", "xlink:href") and v]

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader


@pytest.fixture(scope="session")
def made(maze_run, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "new folder" / "index.html"
    rates = {"SBend": 0.0, HOSTILE: 0.25, "Choice": 0.5}
    results = [Result(name, seed, 20, r, r, 100.0) for name, r in rates.items() for seed in (0, 1)]
    write_page(maze_run, path, results, suite_name="small", seconds=200.0)
    assert [p.name for p in path.parent.iterdir()] == ["index.html"]
    return path.read_text("utf-8")


def test_every_section_is_told(made) -> None:
    reader = read(made)
    text = " ".join(reader.text)
    assert [t for t in reader.text if t in dict(SECTIONS)] == [title for title, _ in SECTIONS]
    assert 'class="gap"' not in made
    for expected in ("ACCEL on maze", "25%", "6", "3 min 20 s", "generation 13", "update 3", "Choice", "path length"):
        assert expected in text
    assert re.search(r"(solved in|not solved within) \d+ steps?", text)


def test_it_needs_nothing_but_itself(made) -> None:
    reader = read(made)
    assert all(a.startswith(("data:image/", "#")) for a in reader.addresses)
    assert set(re.findall(r"https?://[^\s\"'<)]*", made)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not {"script", "link", "iframe"} & reader.tags.keys()
    assert len(made) < 5_000_000


def test_every_picture_has_an_alternative_text(made) -> None:
    images = read(made).images
    assert len(images) > 10
    assert all(image["alt"] for image in images)


def test_texts_of_a_run_cannot_break_the_page(made) -> None:
    assert HOSTILE in read(made).text
    assert "<script" not in made


def test_an_env_of_ones_own(own_run, tmp_path) -> None:
    write_page(own_run, tmp_path / "page.html", [], suite_name=HOSTILE)
    html = (tmp_path / "page.html").read_text("utf-8")
    text = " ".join(read(html).text)
    assert "<own & only>" in text
    for expected in ("jumper", "pits", "Depth", "Trained from Python", "one seed"):
        assert expected in text
    assert html.count('class="gap"') == 3  # no headline, no film, no table


def test_a_run_that_has_only_begun(maze_run, tmp_path) -> None:
    folder = tmp_path / "begun"
    folder.mkdir()
    shutil.copy(maze_run.path / "config.json", folder)
    write_page(Run(folder), tmp_path / "page.html", [], suite_name="small")
    html = (tmp_path / "page.html").read_text("utf-8")
    read(html)
    assert html.count('class="gap"') == len(SECTIONS)  # the headline too, but how it was made is always told


def test_damaged_checkpoints_and_unknown_suites_leave_gaps(maze_run, results, tmp_path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(maze_run.path, folder)
    for path in (folder / "checkpoints").iterdir():
        path.write_bytes(b"nothing")
    write_page(Run(folder), tmp_path / "page.html", results, suite_name="of yesterday")
    html = (tmp_path / "page.html").read_text("utf-8")
    read(html)
    assert html.count('class="gap"') == 3
    assert "<svg" in html
    assert "<table" in html


def test_elements_escape_all_but_markup() -> None:
    assert element("p", "a<b", Markup("<i>c</i>"), class_='"') == '<p class="&quot;">a&lt;b<i>c</i></p>'
    assert element("meta", http_equiv="x") == '<meta http-equiv="x">'


def test_the_command_is_the_closest_preset_with_what_was_changed() -> None:
    config = preset("maze", "demo", updates=7, seeds=3)
    assert command(config) == "tutelage train maze demo --updates 7 --seeds 3"
    assert command(preset("maze", "dr")) == "tutelage train maze dr"
