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

from tutelage.runs.metrics import read_jsonl

FILE = "history.jsonl"


def circumstances() -> dict[str, str]:
    """The versions, the device and the compiler's flags of this process."""
    import tutelage  # here, since the package itself imports this module

    packages = {name: version(name) for name in ("equinox", "optax", "numpy")}
    device, flags = jax.devices()[0], os.environ.get("XLA_FLAGS")
    return {
        "tutelage": tutelage.__version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        **packages,
        "device": f"{jax.device_count()} × {device.device_kind}" if jax.device_count() > 1 else device.device_kind,
        **({"xla_flags": flags} if flags else {}),
    }


def write(run: Path, event: str, **facts: Any) -> None:
    """Appends a line."""
    line = {"event": event, "time": datetime.now(UTC).isoformat(timespec="seconds"), **facts}
    with (run / FILE).open("a") as file:
        file.write(json.dumps(line) + "\n")


def read(run: Path) -> list[dict[str, Any]]:
    """All lines."""
    return read_jsonl(run / FILE)
