"""Small things to train on, cheap to compile: the README's own env, and a tiny maze."""

import importlib.util
from pathlib import Path

import tutelage as tut
from tutelage.envs.maze import MazeDomain

ROOT = Path(__file__).resolve().parents[1]


def example(name: str):
    """A module of examples/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_own_env = example("own_env")


def jumper(**changes) -> tut.Config:
    """ACCEL on strips with pits: compiles in seconds, a student without memory."""
    settings = dict(
        env=tut.OwnDomain("jumper", _own_env.Jumper(), _own_env.Strips()),
        method=tut.ACCEL(tut.BufferConfig(capacity=16, min_fill=0.01, gate="fixed"), edits=2),
        student=tut.StudentConfig(memory=False, hidden=16, head=8),
        ppo=tut.PPO(learning_rate=3e-3, entropy_coef=0.01, epochs=2),
        slots=8,
        steps=24,
        updates=20,
        log_every=5,
        eval_every=0,
        checkpoint_every=5,
        archive_every=0,
    )
    return tut.Config(**(settings | changes))


def tiny_maze(method=None, **changes) -> tut.Config:
    """A 5×5 maze and a student with a small memory."""
    buffer = tut.BufferConfig(capacity=24, min_fill=0.3, replay_rate=0.7)
    settings = dict(
        env=MazeDomain(size=5, max_steps=20, generator="variable", blocks=8),
        method=tut.ACCEL(buffer, edits=2) if method is None else method,
        student=tut.StudentConfig(hidden=16, head=8),
        ppo=tut.PPO(learning_rate=1e-3, epochs=2),
        slots=8,
        steps=24,
        updates=6,
        log_every=2,
        eval_every=0,
        checkpoint_every=2,
        archive_every=0,
    )
    return tut.Config(**(settings | changes))
