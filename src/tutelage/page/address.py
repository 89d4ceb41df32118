"""Levels in addresses: what stands behind the # of a page's address, so that a link shows a level."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import urlencode

import numpy as np

from tutelage.env import Level
from tutelage.envs.bipedal import WalkerDomain
from tutelage.envs.bipedal.level import NAMES
from tutelage.envs.lava import LavaDomain
from tutelage.envs.maze import MazeDomain


def address(domain: Any, level: Level) -> str | None:
    """The level as the domain's room reads it; None where there is no such room."""
    if isinstance(domain, WalkerDomain):
        facts = {name: f"{float(str(np.float32(gene))):g}" for name, gene in zip(NAMES, level.genes, strict=True)}
        return urlencode({"room": domain.name, **facts, "seed": int(level.seed)})
    if isinstance(domain, MazeDomain):
        return _grid(domain, level, "walls") + f"&facing={int(level.direction)}"
    return _grid(domain, level, "lava") if isinstance(domain, LavaDomain) else None


def _grid(domain: Any, level: Level, blocks: str) -> str:
    tiles = np.asarray(getattr(level, blocks))
    bits = urlsafe_b64encode(np.packbits(tiles).tobytes()).decode().rstrip("=")
    facts = {"size": tiles.shape[1], blocks: bits, "start": int(level.agent), "goal": int(level.goal)}
    return urlencode({"room": domain.name, **facts})
