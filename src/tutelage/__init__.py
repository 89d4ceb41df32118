"""Unsupervised environment design in JAX: a teacher evolves levels at the frontier of what a student can do."""

from tutelage.curricula.accel import ACCEL
from tutelage.curricula.accel_parallel import ParallelACCEL
from tutelage.curricula.alp_gmm import ALPGMM
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.dr import DR
from tutelage.curricula.learned_editor import LearnedEditor
from tutelage.curricula.minimax import Minimax
from tutelage.curricula.no_editor import NoEditor
from tutelage.curricula.paired import PAIRED
from tutelage.curricula.plr import PLR
from tutelage.curricula.plr_parallel import ParallelPLR
from tutelage.curricula.repaired import REPAIRED
from tutelage.curricula.robust_plr import RobustPLR
from tutelage.curricula.sfl import SFL
from tutelage.curricula.teacher import Teacher
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
    "ALPGMM",
    "DR",
    "PAIRED",
    "PLR",
    "PPO",
    "REPAIRED",
    "SFL",
    "Box",
    "BufferConfig",
    "Config",
    "DesignSpace",
    "Discrete",
    "Domain",
    "Env",
    "LearnedEditor",
    "Minimax",
    "NoEditor",
    "OwnDomain",
    "ParallelACCEL",
    "ParallelPLR",
    "RobustPLR",
    "Run",
    "StudentConfig",
    "Teacher",
    "TestLevel",
    "Timestep",
    "UserError",
    "preset",
    "resume",
    "train",
]
