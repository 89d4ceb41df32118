"""Pictures of lava grids after MiniHack's: dark floor, glowing lava, stairs down as the goal, the student as an @."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image, ImageDraw, ImageFont

from tutelage.envs.lava.env import LavaState
from tutelage.envs.lava.level import SIDE, LavaLevel

STONE, FLOOR, SPECK = (22, 22, 28), (56, 54, 58), (104, 100, 100)
LAVA, GLOW = (206, 58, 16), (255, 176, 48)
STEP, EDGE, START_STEP = (255, 220, 140), (88, 82, 78), (150, 144, 136)
AGENT, BURNT, TRAIL = (250, 250, 250), (30, 12, 8), (122, 168, 214)

Picture = UInt8[np.ndarray, "height width 3"]
Opacity = Float[np.ndarray, "tile tile"]
Colour = tuple[int, int, int]


def draw(level: LavaLevel, *, tile: int = 16) -> Picture:
    """A level in its stone, `tile` pixels a tile."""
    canvas = _room(level, tile)
    _stamp(canvas, _letter(tile), AGENT, int(level.agent))
    return canvas


def film(level: LavaLevel, states: LavaState) -> list[Picture]:
    """One picture for each of an episode's stacked states `[T, …]`, with the trail so far."""
    tile = 40
    room, pictures = _room(level, tile), []
    states = jax.tree.map(np.asarray, states)
    lava = np.asarray(level.lava).reshape(-1)
    for loc in (states.y * SIDE + states.x).tolist():
        picture = room.copy()
        _stamp(picture, _letter(tile), BURNT if lava[loc] else AGENT, loc)
        pictures.append(picture)
        _stamp(room, _dot(tile), TRAIL, loc)
    return pictures


def _room(level: LavaLevel, tile: int) -> Picture:
    """Stone, floor, lava and both stairs."""
    lava: Bool[np.ndarray, "7 7"] = np.asarray(level.lava)
    tiles = np.full((SIDE + 2, SIDE + 2, 3), STONE, np.uint8)
    tiles[1:-1, 1:-1] = np.where(lava[..., None], LAVA, FLOOR)
    canvas = np.repeat(np.repeat(tiles, tile, 0), tile, 1)
    for loc, burns in enumerate(lava.flat):
        _stamp(canvas, _waves(tile) if burns else _speck(tile), GLOW if burns else SPECK, loc)
    for loc, colour in ((int(level.agent), START_STEP), (int(level.goal), STEP)):
        _stamp(canvas, _square(tile), EDGE, loc)
        _stamp(canvas, _stairs(tile), colour, loc)
    return canvas


def _stamp(canvas: Picture, shape: Opacity, colour: Colour, loc: int) -> None:
    """Paints a shape over one tile of the room, in place."""
    tile = len(shape)
    row, column = (i + 1 for i in divmod(loc, SIDE))
    here = canvas[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
    here[:] = (here + (np.asarray(colour, float) - here) * shape[..., None]).round()


@lru_cache
def _letter(tile: int) -> Opacity:
    """The student."""
    font = ImageFont.load_default(size=8 * tile)
    return _shape(tile, lambda pen, u: pen.text((0.5 * u, 0.5 * u), "@", 255, font, anchor="mm"))


@lru_cache
def _stairs(tile: int) -> Opacity:
    """Five steps, each narrower than the one before it."""

    def paint(pen: ImageDraw.ImageDraw, u: int) -> None:
        for i in range(5):
            top = (0.14 + 0.15 * i) * u
            pen.rectangle(((0.14 + 0.13 * i) * u, top, 0.86 * u, top + 0.09 * u), 255)

    return _shape(tile, paint)


@lru_cache
def _square(tile: int) -> Opacity:
    """The stairwell."""
    return _shape(tile, lambda pen, u: pen.rectangle((0.06 * u, 0.06 * u, 0.94 * u, 0.94 * u), 255))


@lru_cache
def _waves(tile: int) -> Opacity:
    """Three bright ripples."""

    def paint(pen: ImageDraw.ImageDraw, u: int) -> None:
        along = np.linspace(0.1, 0.9, 33)
        for height in (0.26, 0.5, 0.74):
            across = height + 0.05 * np.sin(8 * np.pi * along + 9 * height)
            pen.line([(x * u, y * u) for x, y in zip(along, across, strict=True)], 255, width=max(1, u // 12))

    return 0.8 * _shape(tile, paint)


@lru_cache
def _speck(tile: int) -> Opacity:
    """NetHack's dot for a floor tile."""
    return _shape(tile, lambda pen, u: pen.ellipse((0.45 * u, 0.45 * u, 0.55 * u, 0.55 * u), 255))


@lru_cache
def _dot(tile: int) -> Opacity:
    """The mark of a visited tile."""
    return 0.7 * _shape(tile, lambda pen, u: pen.ellipse((0.36 * u, 0.36 * u, 0.64 * u, 0.64 * u), 255))


def _shape(tile: int, paint: Callable[[ImageDraw.ImageDraw, int], None]) -> Opacity:
    """What `paint` draws on a large square sheet, shrunk smoothly to a tile."""
    unit = 8 * tile
    sheet = Image.new("L", (unit, unit))
    paint(ImageDraw.Draw(sheet), unit)
    return np.asarray(sheet.resize((tile, tile), Image.Resampling.BOX)) / 255
