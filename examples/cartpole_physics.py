"""MuJoCo Playground: the teacher designs the physics, ACCEL from the task as it is published.

python examples/cartpole_physics.py

A level says how many times as strong gravity is, as heavy the pole, as damped the joints, and as strong the motor as in
the task CartpoleBalance. An adapter of a few lines gives it gymnax's interface, and any other task of Playground or
MJX works alike. For a GPU; on a CPU, `python examples/cartpole_physics.py --updates 5` shows that it runs.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["tutelage", "playground==0.2.0"]
# ///

import copy
import dataclasses
import sys
from dataclasses import dataclass
from typing import NamedTuple

from mujoco_playground import registry

import tutelage as tut
from tutelage.interop.gymnax import domain


@dataclass(frozen=True)
class Physics:
    """Multiples of what the task has."""

    gravity: float = 1.0
    pole: float = 1.0
    damping: float = 1.0
    motor: float = 1.0

    replace = dataclasses.replace


class Between(NamedTuple):
    """The space of actions."""

    low: float
    high: float
    shape: tuple[int, ...]


class Balance:
    """CartpoleBalance with gymnax's interface."""

    default_params = Physics()

    def __init__(self) -> None:
        self.task = registry.load("CartpoleBalance", config_overrides={"impl": "jax"})

    def action_space(self, params):
        return Between(-1.0, 1.0, (self.task.action_size,))

    def at(self, physics):
        """The task with this physics."""
        model, task = self.task.mjx_model, copy.copy(self.task)
        masses = model.body_mass.at[-1].multiply(physics.pole)
        inertia = model.body_inertia.at[-1].multiply(physics.pole)
        task._mjx_model = model.tree_replace(
            {
                "opt.gravity": model.opt.gravity * physics.gravity,
                "body_mass": masses,
                "body_inertia": inertia,
                "dof_damping": model.dof_damping * physics.damping,
                "actuator_gear": model.actuator_gear * physics.motor,
            }
        )
        return task

    def reset_env(self, key, params):
        state = self.at(params).reset(key)
        return state.obs, state

    def step_env(self, key, state, action, params):
        after = self.at(params).step(state, action)
        return after.obs, after, after.reward, after.done > 0, {}


BOUNDS = {"gravity": (0.3, 3), "pole": (0.2, 10), "damping": (0.1, 10), "motor": (0.3, 3)}


def config(**changes) -> tut.Config:
    """The training, with any of its settings changed."""
    settings = dict(
        env=domain("cartpole", Balance(), BOUNDS, max_steps=250, solved_above=200),
        method=tut.ACCEL(tut.BufferConfig(capacity=500, min_fill=0.002, gate="fixed"), edits=3),
        student=tut.StudentConfig(memory=False, hidden=64, separate=True),
        ppo=tut.PPO(learning_rate=3e-4, discount=0.99, entropy_coef=1e-3, minibatches=8, normalise_returns=True),
        slots=64,
        steps=250,
        updates=500,
    )
    return tut.Config(**(settings | changes))


if __name__ == "__main__":
    updates = int(sys.argv[2]) if sys.argv[1:2] == ["--updates"] else 500
    run = tut.train(config(updates=updates), "runs/cartpole", on_progress=lambda p: print(p.updates, p.row))
    for result in run.evaluate(episodes=50):
        print(result.level, round(result.solved_rate, 2), round(result.mean_return, 1))
    print("physics in the buffer:", {k: round(v, 2) for k, v in run.metrics()[-1].items() if k.startswith("buffer/")})
