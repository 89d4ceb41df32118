"""Slow, plain readings of the maze's rules, to test the fast ones against."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable

import numpy as np

from tutelage.envs.maze.level import MazeLevel

STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def breadth_first(start: Hashable, neighbours: Callable[..., Iterable], is_goal: Callable[..., bool]) -> int | None:
    """How many edges the shortest path to a goal node has."""
    distance, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        if is_goal(node):
            return distance[node]
        for other in neighbours(node):
            if other not in distance:
                distance[other] = distance[node] + 1
                queue.append(other)
    return None


def _parts(level: MazeLevel) -> tuple[Callable[[int, int], bool], tuple[int, int], tuple[int, int]]:
    walls = np.asarray(level.walls)
    height, width = walls.shape

    def free(x: int, y: int) -> bool:
        return 0 <= x < width and 0 <= y < height and not walls[y, x]

    (ay, ax), (gy, gx) = divmod(int(level.agent), width), divmod(int(level.goal), width)
    return free, (ax, ay), (gx, gy)


def fewest_moves(level: MazeLevel) -> int | None:
    """Tile moves from start to goal."""
    free, start, goal = _parts(level)

    def neighbours(node: tuple[int, int]) -> list[tuple[int, int]]:
        return [(node[0] + dx, node[1] + dy) for dx, dy in STEPS if free(node[0] + dx, node[1] + dy)]

    return breadth_first(start, neighbours, lambda node: node == goal)


def fewest_steps(level: MazeLevel) -> int | None:
    """Actions from start to goal, turns included."""
    free, start, goal = _parts(level)

    def neighbours(node: tuple[int, int, int]) -> list[tuple[int, int, int]]:
        x, y, d = node
        ahead = (x + STEPS[d][0], y + STEPS[d][1], d)
        return [(x, y, (d + 1) % 4), (x, y, (d - 1) % 4)] + ([ahead] if free(*ahead[:2]) else [])

    return breadth_first((*start, int(level.direction)), neighbours, lambda node: node[:2] == goal)


def kruskal(edges: np.ndarray, nodes: int) -> np.ndarray:
    """Which edges a union-find keeps, taking them in order."""
    parent = list(range(nodes))

    def root(node: int) -> int:
        while parent[node] != node:
            node = parent[node]
        return node

    kept = []
    for a, b in edges:
        ra, rb = root(a), root(b)
        kept.append(ra != rb)
        parent[ra] = rb
    return np.array(kept)


def edited(level: MazeLevel, locs: Iterable[int], kinds: Iterable[str]) -> tuple[np.ndarray, int | None, int | None]:
    """Walls, goal and start after edits one by one; None for what has lost its tile and waits for a random one."""
    walls, goal, agent = np.array(level.walls).reshape(-1), int(level.goal), int(level.agent)
    done = set()
    for loc, kind in zip(locs, kinds, strict=True):
        if loc in done:
            continue
        done.add(loc)
        walls[loc] = False
        goal = None if goal == loc else goal
        agent = None if agent == loc else agent
        if kind == "wall":
            walls[loc] = True
        elif kind == "goal":
            goal = loc
        elif kind == "agent":
            agent = loc
    return walls, goal, agent


def assert_sound(level: MazeLevel) -> None:
    """Start and goal of every level of a batch differ, are inside, and stand on no wall."""
    walls, agent, goal = (np.asarray(leaf) for leaf in (level.walls, level.agent, level.goal))
    walls = walls.reshape(len(walls), -1)
    rows = np.arange(len(walls))
    assert (agent != goal).all()
    for loc in (agent, goal):
        assert (loc >= 0).all()
        assert (loc < walls.shape[1]).all()
    assert not walls[rows, agent].any()
    assert not walls[rows, goal].any()
    assert set(np.unique(level.direction)) <= {0, 1, 2, 3}
