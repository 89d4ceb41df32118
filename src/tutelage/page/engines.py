"""The engines that there are, found by what they are for.

    use = for_domain(MazeDomain())
    engine = use.engine.open()
    level, key = engine.make("level"), engine.make("key")
    engine(use.functions["sample"], key, level)

Those of all presets and suites are shipped with the package. For domains, sizes and students of one's own they are made
when they are first asked for, if the extra `page` is installed, and kept in the user's cache.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx

from tutelage.env import Domain, TestLevel
from tutelage.page import build, catalogue
from tutelage.page.records import Layout
from tutelage.page.runtime import Engine
from tutelage.runs.config import Config
from tutelage.student.nets import Student


class Shipped(NamedTuple):
    """An engine's files."""

    folder: Path
    name: str

    @property
    def manifest(self) -> dict[str, Any]:
        """What it holds."""
        return _read(self.folder / f"{self.name}.json")

    def wasm(self, *, simd: bool = True) -> bytes:
        """The module; without instructions on four numbers at once for machines that do not know them."""
        return (self.folder / f"{self.name}{'' if simd else '.plain'}.wasm").read_bytes()

    def open(self) -> Engine:
        """The engine in Python, with a memory of its own."""
        return Engine(self.wasm(), self.manifest)


class Found(NamedTuple):
    """An engine for a purpose: the functions by their part in it, and the usual time limit of an env."""

    engine: Shipped
    functions: Mapping[str, str]
    limit: int


def shipped() -> dict[str, Shipped]:
    """Those of the package by name."""
    return {path.stem: Shipped(path.parent, path.stem) for path in sorted(build.FOLDER.glob("*.json"))}


def for_domain(domain: Domain) -> Found:
    """For a domain's own env and design space."""
    return _found({"domain": catalogue.described(domain)}, lambda: catalogue.env_plans([domain], suites=False))


def for_level(test: TestLevel, domain: Domain) -> Found:
    """For a held-out level of a domain's suites, in its own env."""
    wanted = {"draw": catalogue.described(test.draw), "env": catalogue.described(test.env)}
    return _found(wanted, lambda: catalogue.env_plans([domain]))


def for_student(config: Config) -> Found:
    """For the students of runs with this config."""
    wanted = {"student": catalogue.described(catalogue.student_of(config))}
    return _found(wanted, lambda: catalogue.student_plans({"own": config}))


def weights(student: Student, layout: Layout) -> bytes:
    """A student's record of `params`."""
    return layout.pack(eqx.filter(student.ready(), eqx.is_array))


def _found(wanted: Mapping[str, Any], plans: Callable[[], list[catalogue.Plan]]) -> Found:
    """What is shipped for the purpose, or what is made for it."""
    found = if_shipped(wanted) or _search((_made(source) for source in build.sources(plans())), wanted)
    assert found is not None, f"an engine serves what it is made for: {wanted}"
    return found


def if_shipped(wanted: Mapping[str, Any]) -> Found | None:
    """What is shipped for whoever a manifest names so."""
    return _search(shipped().values(), wanted)


def _search(engines: Iterable[Shipped], wanted: Mapping[str, Any]) -> Found | None:
    wanted = json.loads(json.dumps(wanted))
    for engine in engines:
        for use in engine.manifest["uses"]:
            if wanted.items() <= use.items():
                return Found(engine, use["functions"], use.get("limit", 0))
    return None


def _made(source: build.Source) -> Shipped:
    """An engine of one's own, in the cache under its fingerprint."""
    name = f"{source.manifest['name']}-{source.manifest['source'][:16]}"
    kept = Shipped(_cache(), name)
    if not (kept.folder / f"{name}.json").exists():
        kept.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.folder) as folder:
            build.write(source._replace(manifest=source.manifest | {"name": name}), Path(folder))
            for path in sorted(Path(folder).iterdir(), reverse=True):  # the manifest last
                path.replace(kept.folder / path.name)
    return kept


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tutelage" / "engines"


@lru_cache
def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())
