"""Builds the documentation into site/: `make docs`, or `python docs/build.py`.

1. What the site shows is copied into build/docs, in the places it has in this repository, so that a link works on the
   site as it works among the files. Notebooks get an .ipynb beside them, and what says where `make page` puts its page
   leads to the page itself.
2. Zensical builds it, strictly: a link to a page, a heading or a name of the API that is not there ends the build.
3. Zensical does not look at links to other files, at pictures, or at what the API's pages link to. So every link in
   the HTML that was built is followed here, as far as it stays on the site.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs import notebook  # noqa: E402

from tutelage.page.page import write_page  # noqa: E402
from tutelage.runs.run import Run  # noqa: E402

ROOM = "room.html"
STAGE, SITE = ROOT / "build" / "docs", ROOT / "site"
SHOWN = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"),
    *("docs/**/*.md", "docs/images/**/*.*", "docs/site.css", "examples/*.py", "bench/**/*.py"),
    *("results/*.md", "results/*.csv", "results/*.svg", "results/*.png", "results/runs/*/config.json"),
)


def gather() -> None:
    """Copies everything that the site shows."""
    shutil.rmtree(STAGE, ignore_errors=True)
    for path in sorted({path for pattern in SHOWN for path in ROOT.glob(pattern)}):
        copy = STAGE / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    for page in notebook.pages():
        (STAGE / page.relative_to(ROOT)).with_suffix(".ipynb").write_text(notebook.as_ipynb(page))


def open_room() -> None:
    """Puts the page of this repository's students on the site."""
    runs = [ROOT / "results" / "bipedal-accel", *sorted(ROOT.glob("results/students/*"))]
    write_page([Run(path) for path in runs], STAGE / "docs" / ROOM)
    for name, way in (("README.md", f"docs/{ROOM}"), ("docs/play.md", ROOM)):
        text = (STAGE / name).read_text()
        (STAGE / name).write_text(text.replace("`build/page.html`", f"[`build/page.html`]({way})"))


class Page(HTMLParser):
    """The addresses a page refers to, and the places in it that others can refer to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.places: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes note of an element."""
        of = dict(attrs)
        self.places |= {of[name] or "" for name in ("id", "name") if name in of}
        self.targets |= {of[name] or "" for name in ("href", "src") if name in of}


def broken_links() -> list[str]:
    """Every link of the built site that leads nowhere on it."""
    pages = {path: Page(path.read_text()) for path in sorted(SITE.rglob("*.html")) if path.name != "404.html"}
    return [
        f"{path.relative_to(SITE)}: {target}"
        for path, page in pages.items()
        for target in sorted(page.targets)
        if not _leads_somewhere(path, target, pages)
    ]


def _leads_somewhere(path: Path, target: str, pages: dict[Path, Page]) -> bool:
    address = urlsplit(target)
    if address.scheme or address.netloc:
        return True
    to = (path.parent / unquote(address.path)).resolve() if address.path else path
    to = to / "index.html" if to.is_dir() else to
    if to in pages:
        return not address.fragment or unquote(address.fragment) in pages[to].places
    return to.is_file()


def main() -> int:
    """Builds, checks; 0 if all is well."""
    gather()
    open_room()
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        return 1
    broken = broken_links()
    print("\n".join(["Links that lead nowhere:", *broken] if broken else [f"Open {SITE / 'index.html'} in a browser."]))
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
