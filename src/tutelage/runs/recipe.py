"""What a config is a change of: the closest preset, and the command that trains it again."""

from __future__ import annotations

import shlex
from typing import Any

from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs.config import Config


def closest_preset(config: Config[Any, Any]) -> tuple[str, dict[str, Any]] | None:
    """The preset of the same env and method that differs in the fewest settings, with those settings; None if none."""
    wanted = settings(config)
    changes = {name: _changes(settings(c), wanted) for name, (_, c) in presets.PRESETS.items()}
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


def settings(config: Config[Any, Any]) -> dict[str, Any]:
    """Every setting under its dotted name, those of env and method among them."""
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
