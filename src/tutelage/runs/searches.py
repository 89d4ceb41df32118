"""The searches for hyperparameters that the ACCEL paper reports in its appendix, as sweeps of presets."""

from __future__ import annotations

from typing import Any

from tutelage.errors import UserError
from tutelage.runs import sweep as sweeps
from tutelage.runs.sweep import Sweep

SEARCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "paper-maze": (
        "ACCEL's edits, random or learned, and its replay rate",
        {
            "env": "maze",
            "methods": ["accel-dr", "learned-editor"],
            "settings": {"updates": 20_000},
            "grid": {"method.buffer.replay_rate": [0.8, 0.9]},
        },
    ),
    "paper-lava": (
        "the buffer's size for PLR and ACCEL; ACCEL's edits, learned or random",
        {
            "env": "lava",
            "methods": ["robust-plr", "accel", "accel-random"],
            "grid": {"method.buffer.capacity": [4000, 10_000]},
        },
    ),
    "paper-bipedal-ppo": (
        "the student's learning rate, epochs, entropy and minibatches, by domain randomisation",
        {
            "env": "bipedal",
            "methods": ["dr"],
            "grid": {
                "ppo.learning_rate": [3e-4, 3e-5],
                "ppo.epochs": [5, 20],
                "ppo.entropy_coef": [0.0, 1e-3],
                "ppo.minibatches": [4, 32],
            },
        },
    ),
    "paper-bipedal-plr": (
        "PLR's buffer size, replay rate and staleness",
        {
            "env": "bipedal",
            "methods": ["robust-plr"],
            "grid": {
                "method.buffer.capacity": [1000, 5000],
                "method.buffer.replay_rate": [0.9, 0.5],
                "method.buffer.staleness": [0.3, 0.5, 0.7],
            },
        },
    ),
    "paper-bipedal-edits": (
        "how many edits ACCEL makes",
        {"env": "bipedal", "methods": ["accel"], "grid": {"method.edits": [1, 2, 3, 4]}},
    ),
}


def search(name: str) -> Sweep:
    """One of the paper's searches."""
    if name not in SEARCHES:
        raise UserError(f"Unknown sweep {name!r}; known: {', '.join(SEARCHES)}.")
    return sweeps.from_json(SEARCHES[name][1])
