"""How smoothly and how fast a page to play in runs in headless Chromium: `python bench/page_frames.py PAGE [ROOM]
[SECONDS]`.

Frames are timed as the page sees them, from one second after the room is ready; so is the processor time that the
page's own thread takes for each. On a machine that is busy with other things the first tells of those, the second does
not. `chrt -r 5 python bench/page_frames.py …`, as root, lets the browser go before them.

In a room of mazes or lava one student then plays alone, at 1,000 steps a second and as fast as it can: what is counted
are the calls of the engine's own step.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from report.browser import Browser  # pyright: ignore[reportMissingImports]

GRIDS = ("maze", "lava")
READY = "document.documentElement.dataset.ready"
WAIT = "new Promise((yes) => {{ const look = () => ({0}) ? yes(true) : setTimeout(look, 25); look(); }})"
REST = "new Promise((yes) => setTimeout(yes, {0}))"
PAINT = "performance.getEntriesByType('paint')[0]?.startTime ?? null"
WATCH = """(() => { window.gaps = []; let last = performance.now();
  const frame = (now) => { gaps.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame); })()"""
COUNT = """(() => { window.calls = {}; const made = WebAssembly.instantiate; const counted = (name, f) => (...x) => {
  calls[name] = (calls[name] ?? 0) + 1; return f(...x); };
  WebAssembly.instantiate = async (...x) => ({ exports: Object.fromEntries(Object.entries((await made(...x)).exports)
    .map(([name, f]) => [name, typeof f === "function" ? counted(name, f) : f])) }); })()"""
STEPS = """(() => { const { rooms, engines } = JSON.parse(document.getElementById("contents").textContent);
  const { size, sizes } = rooms.find((room) => room.kind === document.documentElement.dataset.ready);
  const { engine, functions } = sizes[size];
  return calls[engines[engine].functions[functions.step].symbol] ?? 0; })()"""
ALONE = "document.querySelectorAll('.roster tr:not(.followed) input[type=checkbox]:checked').forEach((x) => x.click())"
SPEED = """(() => { const speed = document.querySelector(".slider input");
  speed.value = Number(speed.max) - {0}; speed.dispatchEvent(new Event("input")); })()"""
PLAY = "[...document.querySelectorAll('button')].find((x) => x.textContent === 'Play')?.click()"
TRACED = {"includedCategories": ["cc", "devtools.timeline"]}


def traced(browser: Browser) -> list[dict[str, Any]]:
    """What the browser wrote down since tracing began."""
    browser.call("Tracing.end")
    while not any(e.get("method") == "Tracing.tracingComplete" for e in browser.events):
        browser.events.append(browser._read())
    return [x for e in browser.events if e.get("method") == "Tracing.dataCollected" for x in e["params"]["value"]]


def main(page: Path, room: str, seconds: float) -> None:
    """Opens the room, waits a second, watches."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(Path(profile))
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=COUNT)
        browser.open(page, f"#room={room}")
        browser.ask(WAIT.format(READY))
        browser.ask(REST.format(1000))
        print(f"first paint after {browser.ask(PAINT):.0f} ms")
        browser.ask(WATCH)
        browser.call("Tracing.start", transferMode="ReportEvents", traceConfig=TRACED)
        browser.ask(REST.format(int(1000 * seconds)))
        gaps = browser.ask("window.gaps")
        work = [x["tdur"] / 1000 for x in traced(browser) if x["name"] == "ProxyMain::BeginMainFrame" and "tdur" in x]
        tell(gaps)
        print(f"the page's own work for a frame: {sum(work) / len(work):.1f} ms, at most {max(work):.1f} ms")
        if room in GRIDS:
            for asked, place in (("1,000 steps a second", 1), ("as many as it can", 0)):
                race(browser, seconds, asked, place)
        browser.close()


def race(browser: Browser, seconds: float, asked: str, place: int) -> None:
    """The steps of one student who plays alone, at the last speed but so many."""
    browser.ask(f"{ALONE}; {SPEED.replace('{0}', str(place))}; {PLAY}")
    browser.ask(REST.format(1000))
    browser.ask("window.gaps.length = 0")
    began = browser.ask(f"[performance.now(), {STEPS}]")
    browser.ask(REST.format(int(1000 * seconds)))
    ended = browser.ask(f"[performance.now(), {STEPS}]")
    rate = 1000 * (ended[1] - began[1]) / (ended[0] - began[0])
    told = browser.ask("document.querySelector('.slider output').textContent")
    print(f"{asked}: {rate:,.0f} steps a second; the page says {told}")
    tell(browser.ask("window.gaps"))


def tell(gaps: list[float]) -> None:
    """Frames by the time between them."""
    late = sum(gap > 33.4 for gap in gaps)
    print(f"{len(gaps)} frames, {late} of more than 33 ms, the longest {max(gaps):.1f} ms")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]).resolve(), given[1] if len(given) > 1 else "bipedal", float(given[2]) if len(given) > 2 else 8)
