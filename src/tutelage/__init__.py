"""Unsupervised environment design in JAX: a teacher evolves levels at the frontier of what a student can do."""

from tutelage.curricula.accel import ACCEL
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.dr import DR
from tutelage.curricula.no_editor import NoEditor
from tutelage.curricula.plr import PLR
from tutelage.curricula.robust_plr import RobustPLR
from tutelage.env import Box, DesignSpace, Discrete, Domain, Env, TestLevel, Timestep
from tutelage.envs.own import OwnDomain
from tutelage.errors import UserError
from tutelage.runs.config import Config
from tutelage.runs.presets import preset
from tutelage.runs.run import Run
from tutelage.runs.train import resume, train
from tutelage.student.nets import StudentConfig
from tutelage.student.ppo import PPO

__version__ = "0.1.0"

__all__ = [
    "ACCEL",
    "DR",
    "PLR",
    "PPO",
    "Box",
    "BufferConfig",
    "Config",
    "DesignSpace",
    "Discrete",
    "Domain",
    "Env",
    "NoEditor",
    "OwnDomain",
    "RobustPLR",
    "Run",
    "StudentConfig",
    "TestLevel",
    "Timestep",
    "UserError",
    "preset",
    "resume",
    "train",
]
