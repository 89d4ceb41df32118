"""Makes the engines that are shipped: `python -m tutelage.page.build [--check] [NAME …]`.

With `--check` nothing is made: it says which of them are no longer those of today's functions.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from tutelage.page.catalogue import Plan, plans
from tutelage.page.exports import Export
from tutelage.page.records import Layout
from tutelage.page.translate.compile import compiled
from tutelage.page.translate.module import Module, free_name

FORMAT = 1
FOLDER = Path(__file__).with_name("engines")


class Source(NamedTuple):
    """An engine before it is compiled: its C text, and all of its manifest that does not depend on the compiler."""

    text: str
    manifest: dict[str, Any]


def source_of(plan: Plan) -> Source:
    """Translates what the plan holds."""
    module, names = Module(), dict[int, str]()

    def added(role: str, export: Export) -> str:
        if id(export) not in names:
            names[id(export)] = module.add(role, *export)
        return names[id(export)]

    uses = [use.by | {"functions": {role: added(role, e) for role, e in use.functions.items()}} for use in plan.uses]
    text = module.text()
    manifest = {"format": FORMAT, "name": plan.name, "jax": jax.__version__, "source": digest(text.encode())}
    records, functions = _signatures(module)
    return Source(text, manifest | {"records": records, "functions": functions, "uses": uses})


def _signatures(module: Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records by name, and of each function its arguments and results with the names of their records.

    A record is called as the argument is, or, if another layout is called so already, with a number.
    """
    records: dict[str, Layout] = {}

    def record(name: str, layout: Layout) -> str:
        named = [other for other, known in records.items() if known == layout and other.split("_")[0] == name]
        found = named[0] if named else free_name(name, records)
        records[found] = layout
        return found

    functions = {
        name: {
            "symbol": name,
            "in": [[argument, record(argument, layout)] for argument, layout in takes.items()],
            "out": [[result, record(result, layout)] for result, layout in gives.items()],
        }
        for name, (takes, gives) in module.functions.items()
    }
    return {name: layout.to_json() for name, layout in records.items()}, functions


def sources(wanted: Iterable[Plan]) -> list[Source]:
    """The sources of plans; those that come to the same text are one, which all use."""
    found: dict[str, Source] = {}
    for plan in wanted:
        source = source_of(plan)
        kept = found.setdefault(source.text, source)
        if kept is not source:
            kept.manifest["uses"] += source.manifest["uses"]
    return list(found.values())


def write(source: Source, folder: Path) -> int:
    """Compiles an engine in both ways, unless it is there already, and writes it; how many bytes it has come to."""
    manifest, kept, total = dict(source.manifest), _kept(source, folder), 0
    for build, suffix in (("wasm", ".wasm"), ("plain", ".plain.wasm")):
        path = folder / f"{manifest['name']}{suffix}"
        if not (path.exists() and digest(path.read_bytes()) == kept.get(build)):
            path.write_bytes(compiled(source.text, simd=build == "wasm"))
        manifest[build] = digest(path.read_bytes())
        total += path.stat().st_size
    (folder / f"{manifest['name']}.json").write_text(written(manifest))
    return total


def _kept(source: Source, folder: Path) -> dict[str, Any]:
    """The manifest that is there, if its modules are made of this text."""
    path = folder / f"{source.manifest['name']}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    return kept if kept.get("source") == source.manifest["source"] else {}


def written(manifest: dict[str, Any]) -> str:
    """A manifest with a line for each record, function and use, so that changes can be read."""
    lines = []
    for key, value in manifest.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
        elif isinstance(value, list):
            inner = ",\n".join(f"  {json.dumps(v)}" for v in value)
            lines.append(f" {json.dumps(key)}: [\n{inner}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def digest(data: bytes) -> str:
    """A fingerprint."""
    return hashlib.sha256(data).hexdigest()


def is_current(source: Source, folder: Path = FOLDER) -> bool:
    """Whether the engine that is kept is made of this, and all that use this use it."""
    kept = _kept(source, folder)
    made = json.loads(json.dumps(source.manifest))
    uses = made.pop("uses")
    return made.items() <= kept.items() and all(use in kept["uses"] for use in uses)


def main(arguments: Sequence[str]) -> int:
    """Makes those named, or all; or checks them."""
    names = [name for name in arguments if name != "--check"]
    wanted = sources(plan for plan in plans() if not names or plan.name in names)
    if "--check" in arguments:
        stale = [source.manifest["name"] for source in wanted if not is_current(source)]
        print(f"No longer current, run `make engines`: {', '.join(stale)}" if stale else "All are current.")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for source in wanted:
        print(f"{source.manifest['name']}: {write(source, FOLDER):,} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
