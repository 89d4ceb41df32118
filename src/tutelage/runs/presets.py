"""The one table of what there is: domains, methods, and presets with every hyperparameter of the paper.

A new domain or method is entered here and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tutelage.curricula.accel import ACCEL
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.classroom import Curriculum
from tutelage.curricula.dr import DR
from tutelage.curricula.no_editor import NoEditor
from tutelage.curricula.plr import PLR
from tutelage.curricula.robust_plr import RobustPLR
from tutelage.env import Domain
from tutelage.envs.lava import LavaDomain
from tutelage.envs.maze import MazeDomain
from tutelage.errors import UserError
from tutelage.runs.config import Config
from tutelage.student.nets import StudentConfig
from tutelage.student.ppo import PPO

DOMAINS: dict[str, type[Domain]] = {"maze": MazeDomain, "lava": LavaDomain}

METHODS: dict[str, type[Curriculum]] = {
    "dr": DR,
    "plr": PLR,
    "robust-plr": RobustPLR,
    "accel": ACCEL,
    "no-editor": NoEditor,
}

# Mazes: Table of hyperparameters of the ACCEL paper; fill ratio, temperature and staleness of PLR from its code.
_MAZE_BUFFER = BufferConfig(capacity=4000, temperature=0.3, staleness=0.3, min_fill=0.5, replay_rate=0.8)
_PLR_BUFFER = replace(_MAZE_BUFFER, replay_rate=0.5)
_RANDOM_MAZES = MazeDomain(generator="variable", blocks=60)
_EMPTY_MAZES = MazeDomain(generator="empty", blocks=0)

_DEMO = Config(
    env=MazeDomain(size=7, max_steps=64, generator="empty", blocks=0),
    method=ACCEL(buffer=BufferConfig(capacity=256, min_fill=0.5, replay_rate=0.8), edits=3),
    student=StudentConfig(hidden=64),
    ppo=PPO(learning_rate=1e-3, entropy_coef=1e-3, discount=0.98),
    slots=32,
    steps=64,
    updates=2500,
    log_every=25,
    eval_every=100,
    checkpoint_every=250,
    archive_every=0,
)

# Lava grids: the same table. It has no fill ratio: half of 10,000 slots, as for mazes, would never be filled from empty
# rooms, of which there are but 49·48 = 2,352. A tenth takes about 41 cycles of exploring.
_LAVA_BUFFER = BufferConfig(capacity=10_000, temperature=0.3, staleness=0.3, min_fill=0.1, replay_rate=0.9)
_LAVA_PLR_BUFFER = replace(_LAVA_BUFFER, replay_rate=0.5)
_LAVA = LavaDomain(generator="binomial", placements=20, eye="nethack")
_UNIFORM_LAVA = replace(_LAVA, generator="uniform")
_EMPTY_LAVA = replace(_LAVA, generator="empty", placements=0)
_NETHACK = StudentConfig(hidden=256, head=0)  # as in the NetHack baseline: actor and critic are one layer each


def _lava(env: LavaDomain, method: Curriculum) -> Config:
    return Config(env, method, student=_NETHACK, updates=1000)


_LAVA_SMALL = Config(
    env=LavaDomain(generator="empty", placements=0),
    method=ACCEL(buffer=BufferConfig(capacity=1000, min_fill=0.5, replay_rate=0.8), edits=5),
    student=StudentConfig(memory=False, hidden=64),
    ppo=PPO(learning_rate=1e-3, entropy_coef=1e-2, discount=0.98),
    slots=32,
    steps=100,
    updates=1000,
    log_every=20,
    eval_every=100,
    checkpoint_every=200,
    archive_every=0,
)

PRESETS: dict[str, tuple[str, Config]] = {
    "maze/dr": ("domain randomisation, 0–60 blocks", Config(_RANDOM_MAZES, DR(_PLR_BUFFER))),
    "maze/plr": ("prioritised level replay, gradients on all levels", Config(_RANDOM_MAZES, PLR(_PLR_BUFFER))),
    "maze/robust-plr": ("PLR⊥, gradients on replayed levels only", Config(_RANDOM_MAZES, RobustPLR(_PLR_BUFFER))),
    "maze/accel": ("ACCEL from empty rooms (ACCEL‡ of the paper)", Config(_EMPTY_MAZES, ACCEL(_MAZE_BUFFER))),
    "maze/accel-dr": ("ACCEL from random levels (ACCEL† of the paper)", Config(_RANDOM_MAZES, ACCEL(_MAZE_BUFFER))),
    "maze/no-editor": (
        "ablation: new random levels in place of edited ones, 10,000 updates",
        Config(_RANDOM_MAZES, NoEditor(replace(_MAZE_BUFFER, replay_rate=0.9)), updates=10_000),
    ),
    "maze/demo": ("ACCEL on 7×7 mazes, small enough for a laptop: what `tutelage demo` trains", _DEMO),
    "lava/dr": ("domain randomisation, lava or not by a coin (†)", _lava(_LAVA, DR(_LAVA_PLR_BUFFER))),
    "lava/dr-uniform": ("domain randomisation, 0–20 lava tiles (‡)", _lava(_UNIFORM_LAVA, DR(_LAVA_PLR_BUFFER))),
    "lava/robust-plr": ("PLR⊥, lava or not by a coin (†)", _lava(_LAVA, RobustPLR(_LAVA_PLR_BUFFER))),
    "lava/robust-plr-uniform": ("PLR⊥, 0–20 lava tiles (‡)", _lava(_UNIFORM_LAVA, RobustPLR(_LAVA_PLR_BUFFER))),
    "lava/accel": ("ACCEL from empty rooms, random edits", _lava(_EMPTY_LAVA, ACCEL(_LAVA_BUFFER))),
    "lava/small": ("ACCEL from empty rooms with a small student: minutes on a laptop's CPU", _LAVA_SMALL),
}


def preset(env: str, method: str, **changes: Any) -> Config[Any, Any]:
    """The configuration called `env/method`, with any of its fields changed."""
    if env not in DOMAINS:
        raise UserError(f"Unknown env {env!r}; known: {', '.join(DOMAINS)}.")
    name = f"{env}/{method}"
    if name not in PRESETS:
        known = [n.split("/")[1] for n in PRESETS if n.startswith(f"{env}/")]
        raise UserError(f"Unknown method {method!r} for {env}; known: {', '.join(known)}.")
    return replace(PRESETS[name][1], **changes)


def method_name(method: Curriculum) -> str:
    """The name under which a method stands in the table, or its class's for one of your own."""
    return next((name for name, cls in METHODS.items() if type(method) is cls), type(method).__name__)
