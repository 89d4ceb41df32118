"""Held-out lava grids: the test levels of the ACCEL paper."""

from __future__ import annotations

from collections.abc import Mapping

from tutelage.env import Env, Suite, TestLevel
from tutelage.envs.lava.draws import Crossing, Tiles

DRAWS = {
    "Empty": Tiles(0),
    "10 Tiles": Tiles(10),
    "20 Tiles": Tiles(20),
    "LavaCrossing S9N1": Crossing(),
}


def suites(env: Env) -> Mapping[str, Suite]:
    """The suite `lava`, played in `env`; the same levels are cheap enough to validate on."""
    levels = tuple(TestLevel(name, env, draw) for name, draw in DRAWS.items())
    return {"lava": levels, "validation": levels}
