"""Engines in Python: the functions of a WebAssembly module, and the records that they read and write.

    engine = Engine.open(wasm, manifest)
    key, level = engine.make("key"), engine.make("level")
    key[""][:] = 0, 7
    engine("sample", key, level)
    level["walls"]

It needs PyPI's `wasmtime`, which is in the extra `gym`.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tutelage.errors import UserError
from tutelage.page.records import ALIGNED, Layout, Leaf

PAGE = 65536  # bytes by which memory grows


class Record:
    """A struct in an engine's memory. Its views hold until the engine makes more records: ask for them anew."""

    def __init__(self, engine: Engine, layout: Layout, at: int) -> None:
        self.engine, self.layout, self.at = engine, layout, at
        self._leaves: dict[str, Leaf] = {leaf.path: leaf for leaf in layout.leaves}
        self._views: dict[str, np.ndarray] = {}
        self._memory = engine.memory  # that they are views of

    def __getitem__(self, path: str) -> np.ndarray:
        """The leaf with this path, as it lies in memory: what is written to it is written there."""
        if self._memory is not self.engine.memory:
            self._memory, self._views = self.engine.memory, {}
        if path not in self._views:
            leaf = self._leaves[path]
            begin = self.at + leaf.offset
            self._views[path] = self._memory[begin : begin + leaf.size].view(leaf.dtype).reshape(leaf.shape)
        return self._views[path]

    def __setitem__(self, path: str, value: Any) -> None:
        self[path][...] = value

    @property
    def bytes(self) -> np.ndarray:
        """All of it, as it lies in memory."""
        return self.engine.memory[self.at : self.at + self.layout.size]

    def set(self, other: Record) -> Record:
        """Takes over what another record holds, of this engine or of another."""
        assert other.layout == self.layout, "the two records have the same leaves"
        self.bytes[:] = other.bytes
        return self

    def load(self, tree: Any) -> Record:
        """Takes over the arrays of a pytree with the record's leaves."""
        self.bytes[:] = np.frombuffer(self.layout.pack(tree), np.uint8)
        return self

    def values(self) -> list[Any]:
        """Copies of its leaves in their order."""
        return [self[leaf.path].copy() for leaf in self.layout.leaves]


class Engine:
    """A module with a memory of its own."""

    def __init__(self, wasm: bytes, manifest: Mapping[str, Any]) -> None:
        wasmtime = _wasmtime()
        self.manifest = manifest
        self.layouts = {name: Layout.from_json(data) for name, data in manifest["records"].items()}
        self._store = wasmtime.Store(_machine())
        weakref.finalize(self, self._store.close)  # at the latest when Python ends, before it has half gone
        exports = wasmtime.Instance(self._store, _code(wasm), []).exports(self._store)
        self._exports = exports
        self._memory, self._frame = exports["memory"], exports["frame"].value(self._store)
        self._top = exports["__heap_base"].value(self._store)
        self.memory = self._look()

    def make(self, name: str) -> Record:
        """A record of zeros."""
        layout = self.layouts[name]
        at = -(-self._top // ALIGNED) * ALIGNED
        self._top = at + layout.size
        missing = self._top - len(self.memory)
        if missing > 0:
            self._memory.grow(self._store, -(-missing // PAGE))
            self.memory = self._look()
        return Record(self, layout, at)

    def bound(self, name: str, *records: Record) -> Callable[[], None]:
        """A function of these records, those that it reads and then those that it writes; ready to be called often."""
        function = self.manifest["functions"][name]
        wanted = [self.layouts[record] for _, record in (*function["in"], *function["out"])]
        assert [record.layout for record in records] == wanted, f"{name} is a function of {function}"
        call, store = self._exports[function["symbol"] + "_"], self._store
        places = np.array([record.at for record in records], np.uint32).view(np.uint8)
        frame = slice(self._frame, self._frame + len(places))

        def run() -> None:
            self.memory[frame] = places
            call(store)

        return run

    def __call__(self, name: str, *records: Record) -> None:
        """Calls a function once."""
        self.bound(name, *records)()

    def _look(self) -> np.ndarray:
        """The memory as it is; it may lie elsewhere when it has grown."""
        return np.frombuffer(self._memory.get_buffer_ptr(self._store), np.uint8)


def _wasmtime() -> Any:
    try:
        import wasmtime
    except ImportError as error:
        raise UserError("To run an engine in Python takes wasmtime: pip install 'tutelage[gym]'.") from error
    return wasmtime


@lru_cache(maxsize=1)
def _machine() -> Any:
    return _closed_at_exit(_wasmtime().Engine())


@lru_cache(maxsize=16)
def _code(wasm: bytes) -> Any:
    """The compiled module, once in a process."""
    return _closed_at_exit(_wasmtime().Module(_machine(), wasm))


def _closed_at_exit(thing: Any) -> Any:
    atexit.register(thing.close)
    return thing
