"""How smoothly a page to play in runs in headless Chromium: `python bench/page_frames.py PAGE [ROOM] [SECONDS]`.

Frames are timed as the page sees them, from one second after the room is ready; so is the processor time that the
page's own thread takes for each. On a machine that is busy with other things the first tells of those, the second does
not. `chrt -r 5 python bench/page_frames.py …`, as root, lets the browser go before them.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from report.browser import Browser  # pyright: ignore[reportMissingImports]

READY = "document.documentElement.dataset.ready"
WAIT = "new Promise((yes) => {{ const look = () => ({0}) ? yes(true) : setTimeout(look, 25); look(); }})"
REST = "new Promise((yes) => setTimeout(yes, {0}))"
PAINT = "performance.getEntriesByType('paint')[0]?.startTime ?? null"
WATCH = """(() => { window.gaps = []; let last = performance.now();
  const frame = (now) => { gaps.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame); })()"""
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
        browser.open(page, f"#room={room}")
        browser.ask(WAIT.format(READY))
        browser.ask(REST.format(1000))
        print(f"first paint after {browser.ask(PAINT):.0f} ms")
        browser.ask(WATCH)
        browser.call("Tracing.start", transferMode="ReportEvents", traceConfig=TRACED)
        browser.ask(REST.format(int(1000 * seconds)))
        gaps = browser.ask("window.gaps")
        work = [x["tdur"] / 1000 for x in traced(browser) if x["name"] == "ProxyMain::BeginMainFrame" and "tdur" in x]
        browser.close()
    late = sum(gap > 33.4 for gap in gaps)
    print(f"{len(gaps)} frames, {late} of more than 33 ms, the longest {max(gaps):.1f} ms")
    print(f"the page's own work for a frame: {sum(work) / len(work):.1f} ms, at most {max(work):.1f} ms")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]).resolve(), given[1] if len(given) > 1 else "bipedal", float(given[2]) if len(given) > 2 else 8)
