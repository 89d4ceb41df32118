"""A page to play in: what it carries, and what a person does in it, in a real browser."""

import gzip
import html
import json
import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from report.browser import CHROMIUM, Browser
from report.made import write_config, write_run
from toys import jumper, tiny_maze
from tutelage import cli
from tutelage.errors import UserError
from tutelage.page import engines
from tutelage.page.address import address
from tutelage.page.page import write_page
from tutelage.page.rooms import ready
from tutelage.page.scripts import joined
from tutelage.page.students import fitting, guests, halved
from tutelage.report.facts.comparison import gather
from tutelage.report.pages.binder import Binder
from tutelage.report.pages.chapters import CHAPTERS, Volume
from tutelage.report.pages.report import _write_room
from tutelage.runs import students as folders
from tutelage.runs.browse import best_of
from tutelage.runs.presets import preset
from tutelage.runs.run import Run, state_template

HOSTILE = "</script><img src=x onerror=alert(1)>"
WALKERS = Path(__file__).resolve().parents[2] / "results" / "bipedal-accel"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """Nobody trained it, and its name is made to break pages."""
    config = preset("maze", "demo", seeds=2)
    return write_run(config, tmp_path_factory.mktemp("runs") / HOSTILE.replace("/", "∕"), checkpoints=(3, 6))


@pytest.fixture(scope="module")
def page(run, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("students") / "alone"
    folders.write(folder, replace(run.config, seed=7, seeds=1), 9, jax.tree.map(lambda x: x[:1], run.students()))
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page([run, Run(folder), *walkers()], path)
    return path


def walkers() -> list[Run]:
    """The repository's own, if they are beside the tests and the package has their engine."""
    found = [Run(WALKERS)] if WALKERS.is_dir() else []
    return [run for run in found if ready(run.config)]


def carried(page: Path) -> tuple[dict, dict[str, bytes]]:
    blocks = dict(re.findall(r'<script type="[^"]*" id="([^"]*)">([^<]*)</script>', page.read_text("utf-8")))
    contents = json.loads(blocks.pop("contents"))
    data = {name[6:]: gzip.decompress(b64decode(x)) for name, x in blocks.items() if name.startswith("block-")}
    return contents, data


def test_everything_that_a_room_names_is_aboard(page, run):
    """Engines, functions, weights; and levels that the run's own design space can read."""
    contents, blocks = carried(page)
    room = contents["rooms"][0]
    for size, rules in room["sizes"].items():
        known = contents["engines"][rules["engine"]]["functions"]
        assert set(rules["functions"].values()) <= set(known)
        assert {"reset", "step", "score", "describe", "path", "edit_3"} <= set(rules["functions"])
        assert ("insert" in rules["functions"]) == (int(size) < 49)  # larger levels do not evolve on a page
        assert blocks[rules["engine"]][:4] == b"\0asm"
    assert {x["updates"] for x in room["students"]} == {3, 6, 9}
    assert [x["name"] for x in room["students"] if x["updates"] == 9] == ["alone"]
    assert {x["scale"] for x in room["students"]} == {1}
    for student in room["students"]:
        record = contents["engines"][student["engine"]]["records"]["params"]
        assert len(blocks[student["block"]]) == record["size"] // (2 if student["half"] else 1)
    design = run.config.env.design()
    for shelf in (room["buffers"], room["lineages"]):
        assert shelf
        assert all(design.to_json(design.from_json(x["level"])) == x["level"] for y in shelf for x in y["levels"])
    assert room["lineages"][0]["levels"][0]["generation"] == 0 < room["lineages"][0]["levels"][-1]["generation"]


def test_held_out_levels_are_played_by_their_suites_rules(page, run):
    """Functions, time limit and view of each; those that are drawn anew in each episode are drawn by the engine."""
    room = carried(page)[0]["rooms"][0]
    listed = {level["name"]: level for suite in room["suites"] for level in suite["levels"]}
    tests = {test.name: test for suite in run.config.env.suites().values() for test in suite}
    assert listed.keys() == tests.keys()
    for name, level in listed.items():
        env, found = tests[name].env, engines.for_level(tests[name], run.config.env)
        side = str(len(level["level"]["rows"]))
        rules = room["rules"][level["rules"]] if "rules" in level else room["sizes"][side]
        assert (side, rules["limit"], rules["blind"]) == (str(env.width), env.max_steps, not env.see_through)
        assert rules["random"] == env.redraw_direction
        assert rules["engine"] == found.engine.name
        assert all(rules["functions"][role] == found.functions[role] for role in ("reset", "step", "score"))
        assert level.get("draw") in (None, found.functions["draw"])
    drawn = {name for name, level in listed.items() if "draw" in level}
    crossings = {"SimpleCrossing", "FourRooms", "SmallCorridor", "LargeCorridor"}
    assert drawn == crossings | {f"PerfectMaze{size}" for size in ("S", "M", "L", "XL")}


def test_terrains_are_walked_by_their_suites_rules(page):
    """Gymnasium's, POET's and the paper's; two levels may have one name."""
    if not walkers():
        pytest.skip("no walkers")
    (room,) = [room for room in carried(page)[0]["rooms"] if room["kind"] == "bipedal"]
    domain = walkers()[0].config.env
    for suite, tests in zip(room["suites"], domain.suites().values(), strict=True):
        envs = {test.name: test.env for test in tests}
        for level in suite["levels"]:
            env, rules = envs[level["of"]], room["rules"][level["rules"]]
            assert (rules["limit"], rules["shaped"]) == (env.max_steps, env.rules != "hardcore")
            functions = (engines.for_level(test, domain).functions for test in tests if test.name == level["of"])
            assert rules["functions"]["reset"] == next(functions)["reset"]
    assert {level["rules"] for suite in room["suites"] for level in suite["levels"] if level["of"] == "Rose1a"} == {
        "own",
        "Challenging",
    }


def test_weights_are_halved_where_that_only_rounds():
    weights = np.array([1.0, 1 / 3, 1e-9, -70.0], np.float32)
    small, half = halved(weights.tobytes())
    assert half
    np.testing.assert_allclose(np.frombuffer(small, np.float16), weights, rtol=2**-11, atol=2**-25)
    for large in (1e5, np.inf, np.nan):
        kept = np.array([large], np.float32).tobytes()
        assert halved(kept) == (kept, False)


def test_what_rewards_are_divided_by_is_not_made_up(tmp_path):
    """A folder of students does not hold it; where rewards are not divided by anything, it is one."""
    for name, scale in (("bipedal/dr", np.nan), ("maze/demo", 1.0)):
        config = preset(*name.split("/"))
        students = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), state_template(config).learner.student)
        folders.write(tmp_path / config.env.name, config, 5, students)
        (guest,) = guests([Run(tmp_path / config.env.name)])
        np.testing.assert_array_equal(guest.learned(5).scale, [scale])


def test_a_room_has_as_many_students_as_a_page_carries(tmp_path):
    """Of mazes' students with 256 units five, of small ones ten."""
    for name, most in (("demo", 10), ("dr", 5)):
        write_config(preset("maze", name), tmp_path)
        assert fitting(guests([Run(tmp_path)])) == most


def test_modules_are_joined_once_and_in_order():
    script = joined("main.js")
    names = re.findall(r"^// (\S+\.js)$", script, re.MULTILINE)
    assert len(names) == len(set(names))
    assert names[-1] == "main.js"
    assert names.index("base/dom.js") < names.index("base/controls.js")
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def test_what_has_no_room_is_refused(run, tmp_path, capsys):
    own = write_run(jumper(method=tiny_maze().method), tmp_path / "own")
    with pytest.raises(UserError, match="no room for jumper"):
        write_page([own], tmp_path / "page.html")
    assert cli.main(["page", str(run.path), "--students", "0", "--out", str(tmp_path / "x.html")]) == 2
    assert "at least 1" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    browser.call("Network.enable")
    yield browser
    browser.close()


def entered(browser: Browser, page: Path, fragment: str = "") -> None:
    """Opens the page and waits until it can be played in."""
    browser.open(page, fragment)
    until(browser, "document.documentElement.dataset.ready")


def until(browser: Browser, true: str) -> None:
    """Waits; what never comes true ends with what the browser complains of."""
    wait = f"new Promise((yes) => {{ let n = 0; const look = () => {{ const is = {true}; "
    wait += "is || n++ > 1600 ? yes(!!is) : setTimeout(look, 25); }; look(); })"
    assert browser.ask(wait), f"{true}: {browser.complaints()}"


def press(browser: Browser, words: str) -> None:
    browser.ask(f"[...document.querySelectorAll('button, summary')].find((b) => b.textContent === {words!r}).click()")


def drag(browser: Browser, *tiles: tuple[int, int], size: int = 7) -> None:
    """Draws on the board from tile to tile."""
    box = "document.querySelector('canvas.board').getBoundingClientRect()"
    left, top, width = (browser.ask(f"{box}.{side}") for side in ("x", "y", "width"))
    points = [(left + (x + 1) * width / (size + 1), top + (y + 1) * width / (size + 1)) for x, y in tiles]
    kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
    for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)


ROWS = "document.querySelector('textarea').value.split('\\n')"
TRIED = "Number(/(\\d+) levels? tried/.exec(document.querySelector('.evolve .note').textContent)?.[1])"


def test_a_person_draws_and_the_students_play(browser, page, run):
    """A wall is drawn, taken back and drawn again; the goal is dragged; all students are judged on what comes out."""
    entered(browser, page)
    before = browser.ask(ROWS)
    drag(browser, (2, 2), (4, 2))
    drawn = browser.ask(ROWS)
    assert [a != b for a, b in zip(before, drawn, strict=True)].count(True) == 1
    assert drawn[2][2:5] != before[2][2:5]
    press(browser, "Undo")
    until(browser, f"JSON.stringify({ROWS}) === {json.dumps(json.dumps(before, separators=(',', ':')))}")
    press(browser, "Redo")
    until(browser, f"JSON.stringify({ROWS}) === {json.dumps(json.dumps(drawn, separators=(',', ':')))}")
    goal = next((row.index("G"), y) for y, row in enumerate(drawn) if "G" in row)
    drag(browser, goal, (6, 3))
    assert browser.ask(ROWS)[3][6] == "G"
    for tool, letter, tile in (("goal", "G", (5, 5)), ("start", "S", (1, 5))):
        browser.ask(f"document.querySelector('input[value={tool}]').click()")
        drag(browser, tile)
        assert browser.ask(ROWS)[5][tile[0]] == letter
    cells = "[...document.querySelectorAll('.roster tbody td')].filter((td) => /^[−.\\d]+/.test(td.textContent))"
    until(browser, f"{cells}.length >= 12")
    press(browser, "Step")
    until(browser, "document.querySelector('.eyes .note').textContent.startsWith('Step 1')")
    odds = browser.ask("[...document.querySelectorAll('.odds output')].map((x) => parseInt(x.textContent))")
    assert abs(sum(odds) - 100) <= 3
    assert browser.complaints() == []


def test_students_in_a_hurry(browser, page):
    """At top speed episodes follow each other, and the page says how many steps there were."""
    entered(browser, page)
    top = "s.value = s.max; s.dispatchEvent(new Event('input'))"
    browser.ask(f"(() => {{ const s = document.querySelector('.slider input'); {top}; }})()")
    told = "document.querySelector('.slider output').textContent"
    assert browser.ask(told) == "top"
    press(browser, "Play")
    until(browser, f"/^[1-9][0-9,]*\\/s$/.test({told})")
    press(browser, "Pause")
    assert browser.complaints() == []


def test_a_person_walks_with_the_arrow_keys(browser, page):
    """Along the walls of an empty room to the goal, whichever way the student looks at first."""
    entered(browser, page)
    rows = json.dumps("\n".join(["S.G....", *["......."] * 6]))
    change = f"t.value = {rows}; t.dispatchEvent(new Event('change'))"
    browser.ask(f"(() => {{ const t = document.querySelector('textarea'); {change}; }})()")
    until(browser, f"{ROWS}[0] === 'S.G....'")
    browser.ask("document.querySelector('input[value=walk]').click()")
    for _ in range(4):
        for key in (*["ArrowUp"] * 6, "ArrowRight"):
            browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
    assert browser.ask("document.querySelector('.person p').textContent").startswith("There in ")
    assert "You" in browser.ask("document.querySelector('.roster').textContent")
    assert browser.complaints() == []


def choose(browser: Browser, menu: str, words: str) -> None:
    """An entry of a menu, by what it begins with."""
    find = f"[...document.querySelectorAll('.menu')].find((m) => m.firstChild.textContent === {menu!r}).lastChild"
    pick = f"s.value = [...s.options].find((o) => o.textContent.startsWith({words!r})).value"
    browser.ask(f"(() => {{ const s = {find}; {pick}; s.dispatchEvent(new Event('change')); }})()")


def test_a_held_out_level_keeps_its_rules(browser, page):
    """Each episode has its own draw, until a person changes it; rules stay until another size or other rules come."""
    entered(browser, page)
    choose(browser, "Level", "FourRooms")
    until(browser, "location.hash.includes('anew=FourRooms')")
    told = "document.querySelector('.rules .note').textContent"
    assert browser.ask(told).startswith("An episode ends after 100 steps. Each has a level of its own. Walls block")
    before = browser.ask(ROWS)
    press(browser, "Again")
    assert browser.ask(ROWS) != before
    fragment = browser.ask("location.hash")
    entered(browser, page, fragment)
    assert browser.ask("location.hash") == fragment
    browser.ask("document.querySelector('.skip').click()")
    assert browser.ask("[location.hash, document.activeElement.id]") == [fragment, "room"]
    drag(browser, (16, 16), (15, 16), size=17)
    until(browser, "!location.hash.includes('anew')")
    assert browser.ask("location.hash").endswith("rules=FourRooms")
    choose(browser, "Rules", "the run")
    until(browser, "!location.hash.includes('rules')")
    assert browser.ask(told).startswith("An episode ends after 722 steps. It begins facing at random.")
    assert browser.complaints() == []


def test_levels_evolve(browser, page):
    """Levels are tried, kept and drawn; one that is touched opens, with its ancestors beside it."""
    entered(browser, page)
    press(browser, "Evolve")
    until(browser, f"{TRIED} > 20")
    press(browser, "Pause")
    assert 5 < browser.ask("document.querySelectorAll('.shelf li').length") <= 12
    before = browser.ask("location.hash")
    browser.ask("document.querySelector('.shelf li:last-child button').click()")
    until(browser, f"location.hash !== {json.dumps(before)}")
    assert browser.ask("document.querySelectorAll('.evolve .strip li').length") >= 1
    assert browser.ask("document.querySelectorAll('.shelf [aria-current=true]').length") == 1
    assert browser.complaints() == []


def test_a_level_is_saved_loaded_and_shared(browser, page, run, tmp_path):
    """What is saved is what `tutelage eval --levels` reads; an address and a file bring back the same level."""
    design = run.config.env.design()
    level = design.edit(jax.random.key(3), design.sample(jax.random.key(2)), 9)
    entered(browser, page, f"#{address(run.config.env, level)}")
    assert browser.ask(ROWS) == design.to_json(level)["rows"]
    assert browser.ask("location.hash") == f"#{address(run.config.env, level)}"
    browser.ask(
        "(() => { const made = URL.createObjectURL; URL.createObjectURL = (b) => ((window.saved = b), made(b)); })()"
    )
    press(browser, "Save")
    file = tmp_path / "level.json"
    file.write_text(browser.ask("window.saved.text()"))
    _, (test,) = run.suite_from(file)
    jax.tree.map(np.testing.assert_array_equal, test.draw(jax.random.key(0)), level)
    browser.ask("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'r', bubbles: true }))")
    until(browser, f"location.hash !== '#{address(run.config.env, level)}'")
    found = browser.call("Runtime.evaluate", expression="document.querySelector('input[type=file]')")
    browser.call("DOM.setFileInputFiles", files=[str(file)], objectId=found["result"]["objectId"])
    until(browser, f"location.hash === '#{address(run.config.env, level)}'")
    assert browser.complaints() == []


@pytest.mark.parametrize(
    "broken", ["#room=maze&size=7&walls=%3Cimg%3E&start=0&goal=1&facing=0", "#room=maze&size=999&start=1"]
)
def test_nothing_from_an_address_or_a_file_becomes_markup(browser, page, broken, tmp_path):
    entered(browser, page, broken)
    file = tmp_path / "level.json"
    file.write_text(json.dumps({"level": {"rows": ["<img src=x onerror=alert(1)>"] * 7, "direction": 0}}))
    found = browser.call("Runtime.evaluate", expression="document.querySelector('input[type=file]')")
    browser.call("DOM.setFileInputFiles", files=[str(file)], objectId=found["result"]["objectId"])
    until(browser, "document.querySelector('#said').textContent.length > 20")
    assert browser.ask("document.querySelectorAll('img, iframe, object').length") == 0
    assert browser.complaints() == []


def test_no_request_leaves_the_page(browser, page):
    entered(browser, page)
    browser.ask("new Promise((r) => setTimeout(r, 300))")
    sent = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    assert {url.partition(":")[0] for url in sent} <= {"file", "blob", "data", "about"}
    refused = browser.ask("fetch('https://example.org').then(() => 'sent', () => 'refused')")
    assert refused == "refused"


def test_walkers_walk(browser, page):
    """Ten of them, on a terrain whose address was given; a slider makes another terrain."""
    if not walkers():
        pytest.skip("no walkers")
    facts = "roughness=2&pit_gap_low=0&pit_gap_high=0.8&stump_height_low=0&stump_height_high=0.4"
    fragment = f"#room=bipedal&{facts}&stair_height_low=0&stair_height_high=0.4&stair_steps=1&seed=7"
    entered(browser, page, fragment)
    assert browser.ask("location.hash") == fragment
    assert browser.ask("document.querySelectorAll('.roster tbody tr:not([hidden])').length") == 10
    far = (
        "Math.max(...[...document.querySelectorAll('.roster td:nth-of-type(2)')].map((x) => parseFloat(x.textContent)))"
    )
    until(browser, f"{far} > 6")
    change = "s.value = 5; for (const kind of ['input', 'change']) s.dispatchEvent(new Event(kind))"
    browser.ask(f"(() => {{ const s = document.querySelector('.sliders input'); {change}; }})()")
    until(browser, "location.hash.includes('roughness=5&')")
    assert "challenging" in browser.ask("document.querySelector('.setting').textContent")
    browser.ask("document.querySelector('.duel').scrollIntoView()")
    until(browser, "document.querySelectorAll('.thennow td').length")
    press(browser, "Open it above")
    until(browser, "!location.hash.includes('seed=7')")
    assert browser.complaints() == []


def test_a_report_leads_into_its_levels(run, tmp_path):
    """Each picture of the gallery is a door: its address is that of a level which the room beside the report reads."""
    gathered = gather([run])
    assert _write_room(gathered, tmp_path) == list(gathered.comparisons)
    assert (tmp_path / "room.html").stat().st_size > 100_000
    told = dict(CHAPTERS)["Levels of highest regret"](
        Volume(gathered.comparisons[0], room="room.html"), Binder(tmp_path)
    )
    doors = [html.unescape(x) for x in re.findall(r'href="room\.html#([^"]*)"', told)]
    levels = [f.level for seed in (0, 1) for f in best_of(run.state().buffer, seed, seed, run.config.env.design(), 12)]
    assert doors
    assert set(doors) <= {address(run.config.env, level) for level in levels}
