"""Errors of single steps from states of gymnasium's Box2D: of walkers here, and of Box2D itself.

    python bench/fidelity/steps.py [--episodes 48] [--steps 250]

Half the episodes are the heuristic's, half random; half on normal, half on hardcore terrain. Every step begins where
Box2D's began; the impulses to start the solver from are those of one's own last step. Box2D with its own 180 iterations
is measured in the same way: what it shows is what moving bodies by hand costs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

QUANTILES = (0.5, 0.9, 0.99)
ITERATIONS = (180, 360, 4000)
FAR = 0.1  # m/s or rad/s


class Iterating:
    """A world of Box2D's that takes another number of iterations over velocities than it is asked to."""

    def __init__(self, world: Any, iterations: int) -> None:
        self.world, self.iterations = world, iterations

    def Step(self, seconds: float, _: int, position_iterations: int) -> None:
        self.world.Step(seconds, self.iterations, position_iterations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)


def put(env: Any, rows: np.ndarray) -> None:
    """Moves gymnasium's bodies to where rows of `box2d.bodies_of` say they are."""
    for body, (x, y, angle, vx, vy, spin) in zip((env.hull, *env.legs), rows.tolist(), strict=True):
        cx, cy = body.localCenter
        cos, sin = np.cos(angle), np.sin(angle)
        body.transform = ((x - cos * cx + sin * cy, y - sin * cx - cos * cy), angle)
        body.linearVelocity, body.angularVelocity = (vx, vy), spin


def follow_in_box2d(played: dict, iterations: int) -> dict[str, np.ndarray]:
    """Errors of Box2D's own steps with this many iterations, from the states of the episodes."""
    from bipedal import box2d

    count = len(played["force"])
    errors = []
    for k in range(count):
        env, *_ = box2d.make(k, hardcore=k >= count // 2)
        env.world = Iterating(env.world, iterations)
        alive = played["alive"][k] & ~played["over"][k]
        for t in range(int(alive.sum())):
            put(env, played["bodies"][k, t])
            env.step(played["action"][k, t])
            errors.append(np.abs(box2d.bodies_of(env) - played["bodies"][k, t + 1]))
    errors = np.array(errors)
    return {"pose": errors[..., :3].max((1, 2)), "velocity": errors[..., 3:].max((1, 2))}


def row(name: str, errors: dict[str, np.ndarray]) -> str:
    """A line of the table."""
    cells = [" / ".join(f"{v:.0e}" for v in np.quantile(errors[what], QUANTILES)) for what in ("pose", "velocity")]
    cells.append(f"{100 * np.mean(errors['velocity'] > FAR):.2f} %")
    cells.extend(f"{100 * errors[what].mean():.2f} %" if what in errors else "" for what in ("flags", "ends"))
    return f"| {name} | {len(errors['pose'])} | {' | '.join(cells)} |"


def main() -> None:
    from bipedal import box2d, lockstep
    from tutelage.envs.bipedal import TOLERANCE

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=48)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--tolerances", type=float, nargs="+", default=(0.0, TOLERANCE))
    args = parser.parse_args()
    played = box2d.episodes(args.episodes, args.steps)
    quantiles = " / ".join(f"p{100 * q:.0f}" for q in QUANTILES)
    print(
        f"| | steps | pose, {quantiles} | velocity, {quantiles} | velocity off by {FAR} | flags differ | ends differ |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for iterations in ITERATIONS:
        print(row(f"Box2D, {iterations} iterations", follow_in_box2d(played, iterations)), flush=True)
    for tolerance in args.tolerances:
        errors = lockstep.follow(*lockstep.compiled(tolerance), played)
        print(row(f"tolerance {tolerance:g}", errors), flush=True)


if __name__ == "__main__":
    main()
