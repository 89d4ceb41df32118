"""Unsupervised environment design in JAX: a teacher evolves levels at the frontier of what a student can do.

Each name is imported when it is first asked for, so that what needs no JAX does not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what _HOMES says, for who reads without running
    from tutelage.curricula.accel import ACCEL
    from tutelage.curricula.accel_parallel import ParallelACCEL
    from tutelage.curricula.alp_gmm import ALPGMM
    from tutelage.curricula.buffer import BufferConfig
    from tutelage.curricula.cenie import CENIE
    from tutelage.curricula.dr import DR
    from tutelage.curricula.learned_editor import LearnedEditor
    from tutelage.curricula.minimax import Minimax
    from tutelage.curricula.ncc import NCC
    from tutelage.curricula.no_editor import NoEditor
    from tutelage.curricula.paired import PAIRED
    from tutelage.curricula.plr import PLR
    from tutelage.curricula.plr_parallel import ParallelPLR
    from tutelage.curricula.poet import POET
    from tutelage.curricula.remidi import ReMiDi
    from tutelage.curricula.repaired import REPAIRED
    from tutelage.curricula.robust_plr import RobustPLR
    from tutelage.curricula.sfl import SFL
    from tutelage.curricula.teacher import Teacher
    from tutelage.curricula.traced import TRACED
    from tutelage.env import Box, DesignSpace, Discrete, Domain, Env, TestLevel, Timestep
    from tutelage.envs.hosted import Engine, HostedEnv, seen
    from tutelage.envs.own import OwnDomain
    from tutelage.errors import UserError
    from tutelage.runs.config import Config
    from tutelage.runs.metrics import Track
    from tutelage.runs.presets import preset
    from tutelage.runs.run import Run, load_student
    from tutelage.runs.train import resume, train
    from tutelage.student.es import ES
    from tutelage.student.nets import StudentConfig
    from tutelage.student.ppo import PPO
    from tutelage.student.prediction import Prediction

__version__ = "0.1.0"

__all__ = [
    "ACCEL",
    "ALPGMM",
    "CENIE",
    "DR",
    "ES",
    "NCC",
    "PAIRED",
    "PLR",
    "POET",
    "PPO",
    "REPAIRED",
    "SFL",
    "TRACED",
    "Box",
    "BufferConfig",
    "Config",
    "DesignSpace",
    "Discrete",
    "Domain",
    "Engine",
    "Env",
    "HostedEnv",
    "LearnedEditor",
    "Minimax",
    "NoEditor",
    "OwnDomain",
    "ParallelACCEL",
    "ParallelPLR",
    "Prediction",
    "ReMiDi",
    "RobustPLR",
    "Run",
    "StudentConfig",
    "Teacher",
    "TestLevel",
    "Timestep",
    "Track",
    "UserError",
    "load_student",
    "preset",
    "resume",
    "seen",
    "train",
]

_HOMES = {
    "ACCEL": "curricula.accel",
    "ParallelACCEL": "curricula.accel_parallel",
    "ALPGMM": "curricula.alp_gmm",
    "BufferConfig": "curricula.buffer",
    "CENIE": "curricula.cenie",
    "DR": "curricula.dr",
    "LearnedEditor": "curricula.learned_editor",
    "Minimax": "curricula.minimax",
    "NCC": "curricula.ncc",
    "NoEditor": "curricula.no_editor",
    "PAIRED": "curricula.paired",
    "PLR": "curricula.plr",
    "ParallelPLR": "curricula.plr_parallel",
    "POET": "curricula.poet",
    "REPAIRED": "curricula.repaired",
    "ReMiDi": "curricula.remidi",
    "RobustPLR": "curricula.robust_plr",
    "SFL": "curricula.sfl",
    "Teacher": "curricula.teacher",
    "TRACED": "curricula.traced",
    "Prediction": "student.prediction",
    "Box": "env",
    "DesignSpace": "env",
    "Discrete": "env",
    "Domain": "env",
    "Env": "env",
    "TestLevel": "env",
    "Timestep": "env",
    "Engine": "envs.hosted",
    "HostedEnv": "envs.hosted",
    "seen": "envs.hosted",
    "OwnDomain": "envs.own",
    "UserError": "errors",
    "Config": "runs.config",
    "Track": "runs.metrics",
    "preset": "runs.presets",
    "Run": "runs.run",
    "load_student": "runs.run",
    "resume": "runs.train",
    "train": "runs.train",
    "ES": "student.es",
    "StudentConfig": "student.nets",
    "PPO": "student.ppo",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
