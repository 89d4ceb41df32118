"""Memory that will not suffice is seen before anything is compiled."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jaxtyping import PyTree

from tutelage.errors import UserError

KEY = 8  # bytes of a PRNG key


def check(state: PyTree, program: Any = None, devices: int = 1) -> None:
    """Refuses a training whose state and largest intermediate result alone are more than a device holds.

    `state` are shapes, `program` the jaxpr of what is done with it, if that is known yet. A training that passes may
    still need too much.
    """
    needed = size(state) // devices + (0 if program is None else max(_results(program), default=0))
    available = device_memory()
    if available is not None and needed > available:
        raise UserError(
            f"This needs {gigabytes(needed)} of memory or more, and the device has {gigabytes(available)}: "
            "fewer --seeds, --slots or --steps, or a smaller --method.buffer.capacity, need less."
        )


def size(tree: PyTree) -> int:
    """Bytes of all arrays, which may be shapes."""
    return sum(_bytes(leaf) for leaf in jax.tree.leaves(tree))


def _bytes(array: Any) -> int:
    return math.prod(array.shape) * getattr(array.dtype, "itemsize", KEY)


def _results(program: Any) -> Iterator[int]:
    """Bytes of what each operation of a program comes to, those of loops' bodies and branches included."""
    for operation in program.eqns:
        if operation.primitive.name != "shard_map":  # whose results are on several devices
            yield sum(_bytes(x.aval) for x in operation.outvars if hasattr(x.aval, "shape"))
        for value in operation.params.values():
            for part in value if isinstance(value, list | tuple) else [value]:
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from _results(inner)


def device_memory() -> int | None:
    """Bytes that programs on the device may use, None where it is not known."""
    stats = jax.devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    if jax.default_backend() != "cpu" or not hasattr(os, "sysconf"):
        return None
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits_of_container()])


def _limits_of_container() -> Iterator[int]:
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            yield int(Path(path).read_text())
        except (OSError, ValueError):  # no such control group, or no limit
            continue


def gigabytes(count: int) -> str:
    """1.2 GB."""
    return f"{count / 1e9:,.1f} GB"
