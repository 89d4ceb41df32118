"""Notebooks: pages of docs/notebooks/ whose Python blocks make one program, from top to bottom.

    python docs/notebook.py docs/notebooks/first-maze.md      # runs it, and renews its output and its pictures

What a block prints stands in a ```text block right after it. PNG files that it writes go to docs/images/notebooks, from
where the page shows them. The site offers each page as .ipynb as well, without outputs and pictures.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "notebooks"
CELL = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL)
PICTURE = re.compile(r"^!\[.*?\]\(.*?\)\n\n?", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """All notebooks."""
    return sorted(FOLDER.glob("*.md"))


def cells(page: Path) -> list[str]:
    """The code of every cell."""
    return [cell["code"] for cell in CELL.finditer(page.read_text())]


def run(page: Path) -> list[str]:
    """Runs every cell in this process, in the current folder; what each printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for n, code in enumerate(cells(page), 1):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{page.name}, cell {n}", "exec"), names)
        printed.append(out.getvalue())
    return printed


def with_outputs(text: str, printed: list[str]) -> str:
    """The page with what its cells printed."""
    following = iter(printed)

    def show(cell: re.Match[str]) -> str:
        output = next(following).rstrip()
        return f"```python\n{cell['code']}```\n" + (f"\n```text\n{output}\n```\n" if output else "")

    return CELL.sub(show, text)


def as_ipynb(page: Path) -> str:
    """The page as a notebook in nbformat 4, without outputs and pictures."""
    text = CELL.sub(lambda cell: f"\0{cell['code']}\0", PICTURE.sub("", page.read_text()))
    parts = [part.strip("\n") for part in text.split("\0")]
    made = [_cell("code" if n % 2 else "markdown", part) for n, part in enumerate(parts) if part]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **code}


def renew(page: Path) -> None:
    """Runs a notebook in a folder of its own and takes over what it printed and drew."""
    root = page.parents[2]
    pictures, build = root / "docs" / "images" / "notebooks", root / "build"
    for folder in (pictures, build):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as scratch, contextlib.chdir(scratch):
        printed = run(page)
        for picture in Path(scratch).glob("*.png"):
            shutil.copy(picture, pictures)
    page.write_text(with_outputs(page.read_text(), printed))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(Path(name).resolve())
