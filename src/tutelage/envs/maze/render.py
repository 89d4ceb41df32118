"""Pictures of mazes: dark walls, light floor, a green goal, the student as a red triangle pointing where it faces."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image, ImageDraw

from tutelage.envs.maze.env import Maze, MazeState
from tutelage.envs.maze.level import MazeLevel

WALL, FLOOR, LINE = (52, 58, 72), (248, 246, 240), (228, 224, 214)
GOAL, AGENT = (46, 160, 92), (214, 48, 49)
GLOW, TRAIL = (255, 204, 84), (232, 130, 120)

Picture = UInt8[np.ndarray, "height width 3"]
TileMask = Bool[np.ndarray, "rows columns"]  # over the maze with its border
Opacity = Float[np.ndarray, "tile tile"]
Colour = tuple[int, int, int]


def draw(level: MazeLevel, *, tile: int = 16) -> Picture:
    """A level with its border, `tile` pixels a tile."""
    y, x = divmod(int(level.agent), level.walls.shape[1])
    canvas = _ground(np.asarray(level.walls), tile)
    return _with_actors(canvas, int(level.goal), (x, y, int(level.direction)), tile)


def draw_state(
    state: MazeState, *, seen: TileMask | None = None, visited: TileMask | None = None, tile: int = 16
) -> Picture:
    """A moment of an episode; tiles `seen` by the student are lit, those it `visited` have a faint mark."""
    canvas = _ground(np.asarray(state.walls), tile, seen)
    if visited is not None:
        for row, column in np.argwhere(visited).tolist():
            _stamp(canvas, _dot(tile), TRAIL, row, column)
    return _with_actors(canvas, int(state.goal), (int(state.x), int(state.y), int(state.direction)), tile)


def film(env: Maze, states: MazeState) -> list[Picture]:
    """One picture for each of an episode's stacked states `[T, …]`, with the field of view and the trail so far."""
    tile = max(4, min(24, 480 // (2 + max(env.height, env.width))))
    seen = np.asarray(jax.jit(jax.vmap(env.field_of_view))(states))
    states = jax.tree.map(np.asarray, states)
    visited, pictures = np.zeros(seen.shape[1:], bool), []
    for t in range(len(seen)):
        state = jax.tree.map(lambda leaf, t=t: leaf[t], states)
        visited[state.y + 1, state.x + 1] = True
        pictures.append(draw_state(state, seen=seen[t], visited=visited, tile=tile))
    return pictures


def _ground(walls: Bool[np.ndarray, "h w"], tile: int, seen: TileMask | None = None) -> Picture:
    """Walls, floor and the fine lines between floor tiles."""
    solid = np.pad(walls, 1, constant_values=True)[..., None]
    glow = 0.0 if seen is None else seen[..., None] * np.where(solid, 0.18, 0.45)
    light = np.where(solid, FLOOR, GLOW)
    fill, edge = (_mix(np.where(solid, WALL, floor), light, glow) for floor in (FLOOR, LINE))
    canvas = np.repeat(np.repeat(fill, tile, 0), tile, 1)
    if tile >= 8:
        canvas[::tile] = np.repeat(edge, tile, 1)
        canvas[:, ::tile] = np.repeat(edge, tile, 0)
    return canvas.round().astype(np.uint8)


def _with_actors(canvas: Picture, goal: int, agent: tuple[int, int, int], tile: int) -> Picture:
    """Adds the goal, at a flat interior location, and the student at (x, y, direction)."""
    row, column = divmod(goal, canvas.shape[1] // tile - 2)
    _stamp(canvas, _square(tile), GOAL, row + 1, column + 1)
    x, y, direction = agent
    _stamp(canvas, _triangle(tile, direction), AGENT, y + 1, x + 1)
    return canvas


def _stamp(canvas: Picture, shape: Opacity, colour: Colour, row: int, column: int) -> None:
    """Paints a shape over one tile of the canvas, in place."""
    tile = len(shape)
    here = canvas[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
    here[:] = _mix(here, colour, shape[..., None]).round()


def _mix(base: np.ndarray, over: np.ndarray | Colour, share: np.ndarray | float) -> np.ndarray:
    return base + (np.asarray(over, float) - base) * share


@lru_cache
def _square(tile: int) -> Opacity:
    """The goal: a rounded square."""
    return _shape(tile, lambda pen, u: pen.rounded_rectangle((0.12 * u, 0.12 * u, 0.92 * u, 0.92 * u), 0.14 * u, 255))


@lru_cache
def _triangle(tile: int, direction: int) -> Opacity:
    """The student, facing right and then turned clockwise by `direction` quarters."""
    corners = ((0.14, 0.1), (0.14, 0.9), (0.95, 0.5))
    facing_right = _shape(tile, lambda pen, u: pen.polygon([(x * u, y * u) for x, y in corners], 255))
    return np.rot90(facing_right, -direction)


@lru_cache
def _dot(tile: int) -> Opacity:
    """The mark of a visited tile."""
    return 0.7 * _shape(tile, lambda pen, u: pen.ellipse((0.37 * u, 0.37 * u, 0.65 * u, 0.65 * u), 255))


def _shape(tile: int, paint: Callable[[ImageDraw.ImageDraw, int], None]) -> Opacity:
    """What `paint` draws on a large square sheet, shrunk smoothly to a tile."""
    unit = 8 * tile
    sheet = Image.new("L", (unit, unit))
    paint(ImageDraw.Draw(sheet), unit)
    return np.asarray(sheet.resize((tile, tile), Image.Resampling.BOX)) / 255
