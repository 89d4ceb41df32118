"""Slow, plain readings of the lava grid's rules, to test the fast ones against."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from maze.reference import breadth_first
from tutelage.envs.lava import LavaLevel


def fewest_moves(level: LavaLevel) -> int | None:
    """Moves from start to goal around the lava, diagonal ones included."""
    lava = np.asarray(level.lava)

    def neighbours(node: tuple[int, int]) -> Iterable[tuple[int, int]]:
        for y in range(max(0, node[0] - 1), min(7, node[0] + 2)):
            for x in range(max(0, node[1] - 1), min(7, node[1] + 2)):
                if not lava[y, x]:
                    yield y, x

    start, goal = divmod(int(level.agent), 7), divmod(int(level.goal), 7)
    return breadth_first(start, neighbours, lambda node: node == goal)


def edited(level: LavaLevel, locs: Iterable[int], lava: Iterable[bool]) -> tuple[np.ndarray, int | None, int | None]:
    """Lava, goal and start after edits one by one; None for what has lost its tile and waits for a random one."""
    tiles, goal, agent = np.array(level.lava).reshape(-1), int(level.goal), int(level.agent)
    done = set()
    for loc, burns in zip(locs, lava, strict=True):
        if loc not in done:
            tiles[loc] = burns
            goal, agent = (None if place == loc else place for place in (goal, agent))
        done.add(loc)
    return tiles, goal, agent


def assert_sound(levels: LavaLevel) -> None:
    """Start and goal of every level of a batch differ, are inside, and are not lava."""
    lava, agent, goal = (np.asarray(leaf) for leaf in levels)
    lava = lava.reshape(len(lava), -1)
    rows = np.arange(len(lava))
    assert (agent != goal).all()
    for loc in (agent, goal):
        assert (loc >= 0).all()
        assert (loc < 49).all()
        assert not lava[rows, loc].any()
