"""Slow references: the parametrised generator as a plain loop, and gymnasium's own with its draws written down."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tutelage.envs.bipedal.terrain import CELLS, GRASS, PIT, STAIRS, STUMP, Draws

S = 14 / 30
H = 400 / 30 / 4


class Ground(NamedTuple):
    """Vertices, and rectangles (left, right, top, bottom) in the order they were made."""

    x: list[float]
    y: list[float]
    boxes: list[tuple[float, float, float, float]]


def blank() -> Draws:
    """A row of zeros for every sort of draw."""
    real, whole = np.zeros(CELLS), np.zeros(CELLS, np.int32)
    return Draws(*(x.copy() for x in (real, whole, whole, real, whole, whole, whole)))  # pyright: ignore[reportArgumentType]


def parametrised(draws: Draws, roughness: float, *, stump_keeps_segment: bool) -> Ground:
    """The terrain of POET and ACCEL, one cell after another."""
    x, y, boxes = [], [], []
    state, counter, oneshot, velocity, height, base, first = GRASS, 20, False, 0.0, H, 0.0, 0
    for i in range(CELLS):
        here, before = i * S, first
        x.append(here)
        first = i if oneshot else before
        size, slope, steps = float(draws.size[first]), int(draws.slope[first]), int(draws.steps[first])
        if state == GRASS and not oneshot:
            velocity = 0.8 * velocity + 0.01 * np.sign(H - height)
            if i > 20:
                velocity += draws.bump[i] / 30
            height += roughness * velocity
        elif state == STUMP and oneshot:
            if size >= 1e-3:
                boxes.append((here, here + S, height + size * S, height))
            counter = counter if stump_keeps_segment else 1
        elif state == STAIRS and oneshot:
            base = height
            if size > 0.01:
                for k in range(steps):
                    top = height + k * size * slope * S
                    boxes.append((here + 4 * k * S, here + 4 * (k + 1) * S, top, top - size * S))
                counter = 4 * steps + 1
        elif state == STAIRS:
            flight = math.floor((4 * steps - counter) / 4)
            height = base + flight * size * slope * S - (size * S if slope == -1 else 0.0)
        elif state == PIT and oneshot:
            base, way = height, 1 + size
            boxes += [(here + d * S, here + (d + 1) * S, height, height - 4 * S) for d in (0, way)]
            counter = math.ceil(way) + 2
        elif state == PIT:
            height = base - 4 * S if counter > 1 else base
            x[-1] -= 0.0 if counter > 1 else (math.ceil(1 + size) - (1 + size)) * S
        oneshot = False
        y.append(height)
        counter -= 1
        if counter == 0 and i + 1 < CELLS:
            counter, oneshot = int(draws.length[i + 1]), True
            state = int(draws.kind[i + 1]) if state == GRASS else GRASS
    return Ground(x, y, boxes)


def random_draws(rng: np.random.Generator, genes: np.ndarray) -> Draws:
    """Draws of the parametrised generator with NumPy's numbers."""
    ranges = {STUMP: genes[3:5], STAIRS: genes[5:7], PIT: genes[1:3]}
    lowest = {STUMP: 0.2, STAIRS: 0.2, PIT: 0.8}
    kinds = [kind for kind, ends in ranges.items() if ends[1] >= lowest[kind]]
    draws = blank()
    for i in range(CELLS):
        draws.bump[i] = rng.uniform(-1, 1)
        draws.length[i] = rng.integers(5, 10)
        draws.kind[i] = rng.choice(kinds) if kinds else GRASS
        draws.size[i] = rng.uniform(*ranges[int(draws.kind[i])]) if kinds else 0.0
        draws.width[i] = 1
        draws.slope[i] = 1 if rng.random() > 0.5 else -1
        draws.steps[i] = rng.integers(int(genes[7]))
    return draws


class Recorder:
    """gymnasium's random generator, which writes down what each cell of the terrain is given."""

    def __init__(self, env: Any, seed: int) -> None:
        self.env, self.rng, self.draws = env, np.random.default_rng(seed), blank()

    @property
    def cell(self) -> int:
        """The cell that is being made."""
        return len(self.env.terrain_x) - 1

    def uniform(self, low: float, high: float) -> float:
        """A bump."""
        self.draws.bump[self.cell] = value = self.rng.uniform(low, high)
        return value

    def random(self) -> float:
        """The slope of stairs."""
        value = self.rng.random()
        self.draws.slope[self.cell] = 1 if value > 0.5 else -1
        return value

    def integers(self, low: int, high: int) -> int:
        """Lengths, kinds and sizes, told apart by their ranges; those that begin a stretch are of the next cell."""
        value, i, after = int(self.rng.integers(low, high)), self.cell, min(self.cell + 1, CELLS - 1)
        if (low, high) == (5, 10):
            self.draws.length[after] = value
        elif (low, high) == (1, 4):
            self.draws.kind[after] = value
        elif (low, high) == (1, 3):
            self.draws.size[i] = self.draws.width[i] = value
        elif (low, high) == (3, 5) and self.draws.kind[i] == PIT:
            self.draws.size[i] = value - 1
        elif (low, high) == (3, 5):
            self.draws.steps[i], self.draws.size[i] = value, 1
        else:
            assert (low, high) == (4, 5), (low, high)
        return value


def gymnasiums(seed: int, *, hardcore: bool) -> tuple[Draws, Ground]:
    """A terrain of the real BipedalWalker, and the draws it was made of."""
    from gymnasium.envs.box2d.bipedal_walker import BipedalWalker

    env = BipedalWalker(hardcore=hardcore)
    recorder = Recorder(env, seed)
    env.np_random = recorder  # pyright: ignore[reportAttributeAccessIssue]
    env._generate_terrain(hardcore)
    shapes = [body.fixtures[0].shape for body in reversed(env.terrain)]
    corners = [np.array(shape.vertices) for shape in shapes if len(shape.vertices) > 2]
    boxes = [(*c[:, 0].min(keepdims=True), c[:, 0].max(), c[:, 1].max(), c[:, 1].min()) for c in corners]
    return recorder.draws, Ground(env.terrain_x, env.terrain_y, boxes)


def edited(genes: np.ndarray, changes: list[tuple[int, float]], parameters: int) -> np.ndarray:
    """Edits one after another: so many steps of a parameter, clipped; then low ends before high ones, whole stairs."""
    genes, high = genes.astype(float).copy(), [10, 10, 10, 5, 5, 5, 5, 9]
    for which, steps in changes:
        size = [0.6, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 1][which]
        low = 1 if which == 7 else 0
        genes[which] = min(max(genes[which] + steps * size, low), high[which])
    for first in (1, 3, 5)[: 3 if parameters == 8 else 2]:
        genes[first : first + 2] = sorted(genes[first : first + 2])
    genes[7] = round(genes[7])
    return genes
