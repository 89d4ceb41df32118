"""How a run came about: the command that trains it again, and the versions at work."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import matplotlib
import numpy as np

import tutelage
from tutelage.report import text
from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs.config import Config

INCIDENTAL = frozenset(
    {"seed", "seeds", "log_every", "eval_every", "eval_episodes", "checkpoint_every", "archive_every", "track"}
)


def closest_preset(config: Config[Any, Any]) -> tuple[str, dict[str, Any]] | None:
    """The preset of the same env and method that differs in the fewest settings, with those settings; None if none."""
    settings = _settings(config)
    changes = {name: _changes(_settings(c), settings) for name, (_, c) in presets.PRESETS.items()}
    fitting = [name for name, change in changes.items() if not {"env.name", "method.name"} & change.keys()]
    closest = min(fitting, key=lambda name: len(changes[name]), default=None)
    return None if closest is None else (closest, changes[closest])


def command(config: Config[Any, Any]) -> str | None:
    """The shortest `tutelage train` that gives this config; None if no preset has its env and method."""
    closest = closest_preset(config)
    if closest is None:
        return None
    flags = [_flag(name, value) for name, value in closest[1].items()]
    return " ".join(["tutelage train", *closest[0].split("/"), *flags])


def decisive(config: Config[Any, Any]) -> dict[str, Any]:
    """The settings that decide what is trained, under dotted names: not which seeds, nor what is logged and kept."""
    return {name: value for name, value in _settings(config).items() if name not in INCIDENTAL}


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


def _settings(config: Config[Any, Any]) -> dict[str, Any]:
    return _flat(configs.to_json(config, presets.method_name(config.method)))


def _flat(data: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Nested settings under dotted names."""
    out: dict[str, Any] = {}
    for name, value in data.items():
        out |= _flat(value, f"{where}{name}.") if isinstance(value, dict) else {where + name: value}
    return out


def _changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in after.items() if name not in before or before[name] != value}


def _flag(name: str, value: Any) -> str:
    """A setting as the command line takes it: `--env.no-see-through`, `--env.edits wall empty`."""
    group, dot, last = name.replace("_", "-").rpartition(".")
    if isinstance(value, bool):
        return f"--{group}{dot}{'' if value else 'no-'}{last}"
    values = value if isinstance(value, list | tuple) else [value]
    return shlex.join([f"--{group}{dot}{last}", *map(str, values)])
