"""Drops, slides, limits, stalled motors and strikes of a second each: how far both solvers part from Box2D.

    python bench/fidelity/scenes.py

The scenes are those of `tests/bipedal/test_validation_scenes.py`. Beside the solvers: how far Box2D parts from itself
when it begins a tenth of a millimetre higher or lower. Metres or radians, the largest over bodies and steps.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

SHIFTS = (1e-4, -1e-4)


def main() -> None:
    from bipedal import lockstep
    from bipedal.test_validation_scenes import SCENES, parted, sensitivity

    solvers = {solver: parted(lockstep.compiled(solver), SCENES) for solver in ("exact", "prompt", "reduced")}
    print(f"| scene | {' | '.join(solvers)} | Box2D, begun 0.1 mm off |\n|---|---|---|---|")
    for name, scene in SCENES.items():
        own = max(sensitivity(scene, shift) for shift in SHIFTS)
        print(f"| {name} | {' | '.join(f'{apart[name]:.0e}' for apart in solvers.values())} | {own:.0e} |")


if __name__ == "__main__":
    main()
