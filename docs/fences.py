"""Two kinds of fenced blocks that pages of this site may use, besides code.

```math      LaTeX, which becomes MathML, so that no script has to be loaded.
```source    names of functions, classes or tables, or paths of programs, a line each, which become their source code
             of today. One that is not there ends the build.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from markdown import Markdown
from pymdownx.highlight import Highlight

ROOT = Path(__file__).resolve().parents[1]


def math(text: str, language: str, css: str, options: Any, md: Markdown, **kwargs: Any) -> str:
    """A formula in a line of its own."""
    return convert(text, display="block")


def source(text: str, language: str, css: str, options: Any, md: Markdown, **kwargs: Any) -> str:
    """The code of every name, under the name and the file it stands in."""
    return "".join(_highlighted(name, md) for name in text.split())


def _highlighted(name: str, md: Markdown) -> str:
    title, code = (name, (ROOT / name).read_text()) if name.endswith(".py") else _code(name)
    return Highlight(md).highlight(code.rstrip(), "python", title=title)


def _code(name: str) -> tuple[str, str]:
    found = _library()[name.removeprefix("tutelage.")]
    thing = found.final_target if found.is_alias else found
    return f"{name}, in {thing.filepath.relative_to(ROOT)}", thing.source


@cache
def _library() -> Any:
    return griffe.load("tutelage", search_paths=[ROOT / "src"])
