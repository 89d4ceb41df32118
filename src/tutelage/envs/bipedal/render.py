"""Pictures: the profile of a whole terrain, and a walker on it with the camera following."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

from tutelage.envs.bipedal.level import WalkerLevel
from tutelage.envs.bipedal.physics.body import HALF_LENGTH, HALF_WIDTH, HULL_CENTRE, HULL_SHAPE
from tutelage.envs.bipedal.terrain import CELL, CELLS, FINISH, Rules, Terrain, build

SKY, HORIZON = (142, 190, 232), (232, 242, 250)
FAR_HILLS, NEAR_HILLS, CLOUD = (190, 208, 226), (164, 194, 190), (255, 255, 255)
TURF, EARTH, DEEP = (104, 168, 82), (122, 92, 68), (98, 72, 54)
STONE, STONE_TOP, STONE_EDGE = (168, 170, 178), (206, 208, 214), (84, 86, 96)
POLE, START_FLAG, CLOTH, CHECK = (60, 60, 66), (226, 64, 46), (250, 250, 250), (34, 34, 40)
HULL_FILL, HULL_EDGE, VISOR = (112, 72, 200), (58, 36, 110), (214, 228, 255)
NEAR_LEG, FAR_LEG, LEG_EDGE = (206, 116, 168), (140, 66, 116), (76, 32, 64)
RAY = (226, 48, 48)

PROFILE, FRAME = (640, 128), (600, 400)  # pixels of a terrain's picture and of a film's, wide and high
RAY_RANGE = 160 / 30  # m
FLAG_HEIGHT = 50 / 30  # m
START = 3 * CELL  # m, the start flag
SMOOTHNESS = 40  # frames over which the camera's height is averaged

Picture = UInt8[np.ndarray, "height width 3"]
Colour = tuple[int, int, int]
Points = Float[np.ndarray, "n 2"]


@dataclass(frozen=True)
class Camera:
    """Where the world is on a sheet of pixels that is `samples` times finer than the picture."""

    left: float  # m
    bottom: float  # m
    across: float  # pixels a metre
    up: float
    width: int
    height: int
    samples: int = 3

    def __call__(self, points: Sequence[tuple[float, float]] | Points) -> list[tuple[float, float]]:
        """From metres to pixels of the sheet."""
        x, y = np.asarray(points, float).T
        right = (x - self.left) * self.across * self.samples
        down = (self.height - (y - self.bottom) * self.up) * self.samples
        return list(zip(right.tolist(), down.tolist(), strict=True))

    @property
    def right(self) -> float:
        """The last metre in view."""
        return self.left + self.width / self.across

    def pixels(self, n: float) -> int:
        """A line of `n` pixels of the picture."""
        return max(1, round(n * self.samples))


@partial(jax.jit, static_argnums=1)
def _terrain(level: WalkerLevel, rules: Rules) -> Terrain:
    return build(level, rules)[0]


def draw(level: WalkerLevel, rules: Rules = "parametrised") -> Picture:
    """The whole way from start to finish, all of its heights in view; where they leave room, twice as steep."""
    terrain, (width, height) = jax.tree.map(np.asarray, _terrain(level, rules)), PROFILE
    across = width / (CELLS * CELL)
    low, high = _extent(terrain)
    up = min(2 * across, height / (1.2 * (high - low) + 5.0))
    middle = (low + high + FLAG_HEIGHT) / 2
    camera = Camera(0.0, middle - height / up / 2, across, up, width, height)
    sheet = _sky(camera).copy()
    _ground(sheet, camera, terrain)
    return _developed(sheet, camera)


def film(
    terrain: Terrain, poses: Float[np.ndarray, "time 5 3"], lidar: Float[np.ndarray, "time 10"] | None = None
) -> list[Picture]:
    """A picture for each pose (x, y, angle) of hull, upper and lower left leg, upper and lower right leg.

    x and y are those of the centres of mass. With `lidar`, the fractions of the rays' range that are free, rays show.
    """
    terrain, (width, height) = jax.tree.map(np.asarray, terrain), FRAME
    scale = width / 20.0
    rays = [None] * len(poses) if lidar is None else lidar
    pictures = []
    for pose, (left, bottom), free in zip(poses, _path(poses, width / scale, height / scale), rays, strict=True):
        camera = Camera(left, bottom, scale, scale, width, height)
        sheet = _sky(camera).copy()
        _scenery(sheet, camera)
        _ground(sheet, camera, terrain)
        if free is not None:
            _rays(sheet, camera, pose[0], free)
        _walker(sheet, camera, pose)
        pictures.append(_developed(sheet, camera))
    return pictures


def _path(poses: Float[np.ndarray, "time 5 3"], width: float, height: float) -> Iterator[tuple[float, float]]:
    """The lower left corner of the view: the hull a third from the left, at a height that changes gently."""
    x, y = poses[:, 0, 0], poses[:, 0, 1]
    around = np.pad(y, SMOOTHNESS, mode="edge")
    window = np.hanning(2 * SMOOTHNESS + 3)[1:-1]
    gentle = np.convolve(around, window / window.sum(), mode="valid")
    left = np.clip(x - width / 3, 0.0, (CELLS - 1) * CELL - width)
    return zip(left.tolist(), (gentle - 0.48 * height).tolist(), strict=True)


def _extent(terrain: Terrain) -> tuple[float, float]:
    """The lowest and the highest point of the ground and of what stands on it."""
    tops = np.where(terrain.box_id >= 0, terrain.box[:, 2], terrain.y)
    return float(terrain.y.min()), float(max(terrain.y.max(), tops.max()))


def _developed(sheet: Image.Image, camera: Camera) -> Picture:
    return np.asarray(sheet.reduce(camera.samples))


@lru_cache(maxsize=4)
def _gradient(width: int, height: int) -> Image.Image:
    shades = np.linspace(SKY, HORIZON, height).round().astype(np.uint8)
    return Image.fromarray(np.broadcast_to(shades[:, None], (height, width, 3)).copy())


def _sky(camera: Camera) -> Image.Image:
    return _gradient(camera.width * camera.samples, camera.height * camera.samples)


def _scenery(sheet: Image.Image, camera: Camera) -> None:
    """Clouds and two ridges, the slower the farther away."""
    pen, (width, height) = ImageDraw.Draw(sheet), sheet.size
    for x, y, size in _clouds():
        centre = (x * width - 0.1 * camera.left / 20 * width) % (1.5 * width) - 0.25 * width
        for dx, dy, r in ((-0.9, 0.1, 0.55), (0.0, -0.15, 0.8), (0.85, 0.1, 0.6), (0.3, 0.2, 0.6)):
            u, v, w = centre + dx * size * width, y * height + dy * size * width, r * size * width
            pen.ellipse((u - 1.35 * w, v - 0.6 * w, u + 1.35 * w, v + 0.6 * w), CLOUD)
    for colour, depth, level, seed in ((FAR_HILLS, 0.15, 0.52, 1.0), (NEAR_HILLS, 0.3, 0.64, 4.0)):
        x = np.linspace(0, 20, 81)
        far = x + depth * camera.left + 7 * seed
        ridge = level - 0.045 * np.sin(0.55 * far) - 0.03 * np.sin(1.3 * far + seed) - 0.012 * np.sin(3.1 * far)
        line = list(zip((x / 20 * width).tolist(), (ridge * height).tolist(), strict=True))
        pen.polygon([(0, height), *line, (width, height)], colour)


@lru_cache
def _clouds() -> list[tuple[float, float, float]]:
    """Places across one and a half views, and sizes."""
    rng = np.random.default_rng(7)
    return [(0.3 * (i + rng.uniform(0.1, 0.9)), rng.uniform(0.08, 0.3), rng.uniform(0.03, 0.06)) for i in range(5)]


def _ground(sheet: Image.Image, camera: Camera, terrain: Terrain) -> None:
    """Earth under the line of vertices, grass along it, rectangles on it, and the two flags."""
    pen = ImageDraw.Draw(sheet)
    line = _in_view(camera, terrain)
    pen.polygon(_filled(camera, line), EARTH)
    pen.polygon(_filled(camera, _undercut(line) - [0.0, 0.9]), DEEP)
    turf = np.concatenate([line, (line - [0.0, 0.14])[::-1]])
    pen.polygon(camera(turf), TURF)
    for box in _boxes_in_view(camera, terrain).tolist():
        _draw_block(pen, camera, *box)
    for flag, colour in ((START, START_FLAG), (FINISH, None)):
        if camera.left - 2 < flag < camera.right + 2:
            _flag(pen, camera, flag, _top(terrain, flag), colour)


def _in_view(camera: Camera, terrain: Terrain) -> Points:
    """The vertices that can be seen, one more at either end, and level ground beyond the ends of the world."""
    x = np.concatenate([[-20.0], terrain.x, [terrain.x[-1] + 20.0]])
    y = np.concatenate([terrain.y[:1], terrain.y, terrain.y[-1:]])
    seen = np.flatnonzero((x > camera.left - 1) & (x < camera.right + 1))
    part = slice(max(seen[0] - 1, 0), seen[-1] + 2)
    return np.stack([x[part], y[part]], axis=1)


def _undercut(line: Points) -> Points:
    """The line without its steep rises: nowhere above the lowest of the vertices around."""
    around = np.pad(line[:, 1], 2, mode="edge")
    return np.stack([line[:, 0], np.lib.stride_tricks.sliding_window_view(around, 5).min(axis=1)], axis=1)


def _top(terrain: Terrain, x: float) -> float:
    """The height of the ground, or of what stands on it."""
    cell = min(int(x / CELL + 1e-6), CELLS - 1)
    ground = float(np.interp(x, terrain.x, terrain.y))
    return max(ground, float(terrain.box[cell, 2])) if terrain.box_id[cell] >= 0 else ground


def _filled(camera: Camera, line: Points) -> list[tuple[float, float]]:
    floor = camera.bottom - 1
    return camera([(line[0, 0], floor), *map(tuple, line), (line[-1, 0], floor)])


def _boxes_in_view(camera: Camera, terrain: Terrain) -> np.ndarray:
    _, first = np.unique(terrain.box_id, return_index=True)
    boxes = np.asarray(terrain.box)[first]
    return boxes[(boxes[:, 0] < boxes[:, 1]) & (boxes[:, 1] > camera.left) & (boxes[:, 0] < camera.right)]


def _draw_block(pen: ImageDraw.ImageDraw, camera: Camera, left: float, right: float, top: float, bottom: float) -> None:
    """A stone with a bright upper edge."""
    edge = camera.pixels(1 if camera.across > 15 else 0.5)
    (x0, y0), (x1, y1) = camera([(left, top), (right, bottom)])
    pen.rectangle((x0, y0, x1, max(y1, y0 + edge)), STONE, STONE_EDGE, edge)
    rim = y0 + edge + camera.pixels(0.07 * camera.up)
    if rim < y1 - edge:
        pen.rectangle((x0 + edge, y0 + edge, x1 - edge, rim), STONE_TOP)


def _flag(pen: ImageDraw.ImageDraw, camera: Camera, x: float, y: float, colour: Colour | None) -> None:
    """A pennant of one colour, or the chequered flag."""
    unit = FLAG_HEIGHT * camera.across / camera.up if camera.across < 15 else FLAG_HEIGHT
    across = unit * camera.up / camera.across
    top = y + unit
    pen.line(camera([(x, y), (x, top)]), POLE, camera.pixels(1.5 if camera.across > 15 else 1))
    if colour is not None:
        pen.polygon(camera([(x, top), (x, top - 0.4 * unit), (x + 0.55 * across, top - 0.2 * unit)]), colour)
        return
    for row in range(3):
        for column in range(4):
            left, upper = x + column * 0.16 * across, top - row * 0.16 * unit
            corners = camera([(left, upper), (left + 0.16 * across, upper - 0.16 * unit)])
            pen.rectangle((*corners[0], *corners[1]), CHECK if (row + column) % 2 else CLOTH)


def _rays(sheet: Image.Image, camera: Camera, hull: np.ndarray, free: np.ndarray) -> None:
    """The lidar, from the hull's origin to what it meets."""
    pen = ImageDraw.Draw(sheet, "RGBA")
    (origin,) = _in_world(hull, np.zeros((1, 2)) - HULL_CENTRE)
    for k, fraction in enumerate(free):
        end = origin + RAY_RANGE * fraction * np.array([np.sin(0.15 * k), -np.cos(0.15 * k)])
        pen.line(camera([tuple(origin), tuple(end)]), (*RAY, 150), camera.pixels(1))
        if fraction < 1:
            ((x, y),) = camera([tuple(end)])
            r = camera.pixels(2)
            pen.ellipse((x - r, y - r, x + r, y + r), RAY)


def _walker(sheet: Image.Image, camera: Camera, pose: Float[np.ndarray, "5 3"]) -> None:
    """The far leg, the near leg, the hull."""
    pen = ImageDraw.Draw(sheet)
    hull, upper_left, lower_left, upper_right, lower_right = pose
    for colour, upper, lower in ((FAR_LEG, upper_right, lower_right), (NEAR_LEG, upper_left, lower_left)):
        for part, half_width in ((lower, HALF_WIDTH[1]), (upper, HALF_WIDTH[0])):
            _plate(pen, camera, _in_world(part, _leg_corners(half_width)), colour, LEG_EDGE)
    _plate(pen, camera, _in_world(hull, np.array(HULL_SHAPE) - HULL_CENTRE), HULL_FILL, HULL_EDGE)
    visor = np.array([(0.42, 0.16), (0.95, 0.01), (0.95, -0.1), (0.42, 0.02)]) - HULL_CENTRE
    pen.polygon(camera(_in_world(hull, visor)), VISOR)


def _leg_corners(half_width: float) -> Points:
    return np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * (half_width, HALF_LENGTH)


def _in_world(pose: np.ndarray, points: Points) -> Points:
    """Points seen from a body, in the world."""
    x, y, angle = pose
    cos, sin = np.cos(angle), np.sin(angle)
    return points @ np.array([(cos, sin), (-sin, cos)]) + (x, y)


def _plate(pen: ImageDraw.ImageDraw, camera: Camera, corners: Points, colour: Colour, edge: Colour) -> None:
    path = camera(corners)
    pen.polygon(path, colour)
    pen.line([*path, path[0], path[1]], edge, camera.pixels(1.2), joint="curve")
