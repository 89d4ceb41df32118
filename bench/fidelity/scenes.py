"""Drops, slides, limits, stalled motors and strikes of a second each: how far walkers part from Box2D.

    python bench/fidelity/scenes.py

The scenes are those of `tests/bipedal/test_validation_scenes.py`, with all iterations and with those of the default
tolerance. Beside them: how far Box2D parts from itself when it begins a tenth of a millimetre higher or lower. Metres
or radians, the largest over bodies and steps.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

SHIFTS = (1e-4, -1e-4)


def main() -> None:
    from bipedal import lockstep
    from bipedal.test_validation_scenes import SCENES, parted, sensitivity
    from tutelage.envs.bipedal import TOLERANCE

    parts = {tolerance: parted(lockstep.compiled(tolerance), SCENES) for tolerance in (0.0, TOLERANCE)}
    print(f"| scene | {' | '.join(f'tolerance {t:g}' for t in parts)} | Box2D, begun 0.1 mm off |\n|---|---|---|---|")
    for name, scene in SCENES.items():
        own = max(sensitivity(scene, shift) for shift in SHIFTS)
        print(f"| {name} | {' | '.join(f'{apart[name]:.0e}' for apart in parts.values())} | {own:.0e} |")


if __name__ == "__main__":
    main()
