"""`history.jsonl`: when, on what and with which versions a run was worked on; a line when training begins and ends."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jaxlib

import tutelage
from tutelage.errors import shown
from tutelage.runs.storage import append, read_rows

FILE = "history.jsonl"

# Under the same of these, a resumed run ends bit-identical to one that was never stopped.
DECISIVE = ("tutelage", "jax", "jaxlib", "equinox", "optax", "device", "devices", "threads", "xla_flags", "precision")


def circumstances(devices: int = 1) -> dict[str, str | int]:
    """What the numbers of a training depend on besides its config: versions, device, processors, XLA's flags."""
    packages = {name: version(name) for name in ("equinox", "optax", "numpy")}
    device, flags = jax.devices()[0], os.environ.get("XLA_FLAGS")
    return {
        "tutelage": tutelage.__version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        **packages,
        "threads": _threads(),
        "precision": str(jax.config.values["jax_default_matmul_precision"] or "default"),
        "device": device.device_kind,
        "devices": devices,
        **({"xla_flags": flags} if flags else {}),
    }


def _threads() -> int:
    """How many threads XLA has on CPUs: what NPROC says, or the processors that this process may use."""
    if (said := os.environ.get("NPROC", "")).isdecimal():
        return int(said)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def changes(run: Path, devices: int = 1) -> list[str]:
    """What is different from when the run was last worked on, so that numbers may come out differently: a sentence."""
    before = _latest(run)
    if before is None:
        return []
    here = circumstances(devices)
    known = [name for name in DECISIVE if name in before or name == "xla_flags"]
    changed = [name for name in known if before.get(name) != here.get(name)]
    found = [f"{name} {shown(before.get(name))} → {shown(here.get(name))}" for name in changed]
    if not found:
        return []
    return [f"Not bit-identical to a run that was never stopped, as circumstances have changed: {', '.join(found)}."]


def devices_of(run: Path) -> int:
    """On how many devices the run was last worked on."""
    found = (_latest(run) or {}).get("devices")
    return found if type(found) is int and found > 0 else 1


def first(run: Path) -> int:
    """After how many student updates a run began: 0, but for one that began from another's checkpoint."""
    begins = [line.get("updates") for line in read(run) if line.get("event") == "begin"]
    return next((n for n in begins if type(n) is int), 0)


def _latest(run: Path) -> dict[str, Any] | None:
    return next((line for line in reversed(read(run)) if line.get("event") == "begin"), None)


def write(run: Path, event: str, **facts: Any) -> None:
    """Appends a line."""
    line = {"event": event, "time": datetime.now(UTC).isoformat(timespec="seconds"), **facts}
    append(run / FILE, (json.dumps(line) + "\n").encode())


def read(run: Path) -> list[dict[str, Any]]:
    """All lines that can be read."""
    return read_rows(run / FILE).rows
