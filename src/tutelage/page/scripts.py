"""The page's scripts: modules in files of their own, joined to one script when a page is written."""

from __future__ import annotations

import posixpath
import re
from importlib import resources

IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


def text(name: str) -> str:
    """A text file of the page."""
    return resources.files("tutelage.page").joinpath("web", *name.split("/")).read_text("utf-8")


def joined(entry: str) -> str:
    """A module after all that it imports, directly or not: each a function of its own that gives what it exports.

    Imports are `import { … } from "./…";`, each on a line, and lead in no circle; exports are functions, classes and
    constants, exported where they are declared.
    """
    places: dict[str, int] = {}
    written: list[str] = []
    _write(entry, places, written)
    return f'"use strict";\n(() => {{\n{"".join(written)}}})();\n'


def _write(name: str, places: dict[str, int], written: list[str]) -> None:
    """A module, and before it those that it imports and that are not there yet."""
    source = text(name)
    paths = {
        path: posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) for _, path in IMPORT.findall(source)
    }
    for path in paths.values():
        if path not in places:
            _write(path, places, written)
    places[name] = len(written)
    body = IMPORT.sub(lambda found: f"const {found[1]} = module{places[paths[found[2]]]};\n", source)
    body, given = EXPORT.sub(r"\1", body), ", ".join(name for _, name in EXPORT.findall(source))
    written.append(f"\n// {name}\nconst module{places[name]} = (() => {{\n{body}return {{ {given} }};\n}})();\n")
