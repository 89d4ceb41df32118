"""How a run came about: what decided its numbers, what it was trained on, and the versions at work."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import matplotlib
import numpy as np

import tutelage
from tutelage.report import text
from tutelage.runs.config import Config
from tutelage.runs.recipe import settings

INCIDENTAL = frozenset(
    {"seed", "seeds", "log_every", "eval_every", "eval_episodes", "checkpoint_every", "archive_every", "track"}
)


def decisive(config: Config[Any, Any]) -> dict[str, Any]:
    """The settings that decide what is trained, under dotted names: not which seeds, nor what is logged and kept."""
    return {name: value for name, value in settings(config).items() if name.partition(".")[0] not in INCIDENTAL}


def versions() -> dict[str, str]:
    """What the page was written with."""
    device = jax.devices()[0]
    return {
        "tutelage": tutelage.__version__,
        "JAX": jax.__version__,
        "NumPy": np.__version__,
        "matplotlib": matplotlib.__version__,
        "Python": platform.python_version(),
        "device": device.device_kind if device.platform != "cpu" else f"CPU, {platform.machine()}",
    }


def devices(past: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a run was trained on, by its own record."""
    return sorted({text.plain(str(line["device"])) for line in past if "device" in line})


def beginning(past: Sequence[Mapping[str, Any]]) -> str:
    """When a run was begun and with what, by its own record; empty where there is none."""
    begun = [line for line in past if line.get("event") == "begin"]
    known = {name: value for line in begun for name, value in line.items() if name not in ("event", "time", "updates")}
    said = text.listed([text.plain(f"{name} {value}") for name, value in known.items()])
    return f"Trained with {said}; begun {text.plain(str(begun[0].get('time')))}." if said else ""
