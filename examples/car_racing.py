"""CarRacing on the host: the teacher draws the tracks.

python examples/car_racing.py

A level is twelve distances from the middle of the field, one every 30 degrees; the track is a smooth closed curve
through these points. Tracks start as a circle, and an edit moves a point outwards or inwards. Pictures are seen small
and grey, four at a time, and an action lasts for eight of the game's steps. Held out are the circle and random tracks.
Hours on a CPU; `python examples/car_racing.py --updates 1` shows that it runs.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["tutelage", "gymnasium==1.2.0", "box2d==2.3.10", "pygame-ce==2.5.8"]
# ///

import math
import sys

import numpy as np
from gymnasium.envs.box2d.car_racing import TRACK_WIDTH, CarRacing
from scipy.interpolate import CubicSpline

import tutelage as tut
from tutelage.interop.gymnasium import domain

POINTS, STEP = 12, 3.5  # of the track, and the length of a piece of road
NEAR, FAR, CIRCLE = 60.0, 200.0, 120.0
REPEAT = 8


class Racing(CarRacing):
    """gymnasium's game on a track through given points."""

    distances: tuple[float, ...] = (CIRCLE,) * POINTS

    def _create_track(self) -> bool:
        pieces = track(np.array(self.distances))
        self.track = [(math.atan2(y, x), beta, x, y) for x, y, beta in pieces]
        self.road = []
        edges = [[at(piece, side) for side in (-TRACK_WIDTH, TRACK_WIDTH)] for piece in pieces]
        for i, (left, right) in enumerate(edges):
            corners = [left, right, *reversed(edges[i - 1])]
            self.fd_tile.shape.vertices = corners
            tile = self.world.CreateStaticBody(fixtures=self.fd_tile)
            tile.userData = tile
            tile.color = self.road_color + 0.01 * (i % 3) * 255
            tile.road_visited, tile.road_friction, tile.idx = False, 1.0, i
            tile.fixtures[0].sensor = True
            self.road_poly.append((corners, tile.color))
            self.road.append(tile)
        return True


def at(piece: np.ndarray, aside: float) -> tuple[float, float]:
    """A place beside the middle of the road."""
    x, y, beta = piece
    return x + aside * math.cos(beta), y + aside * math.sin(beta)


def track(distances: np.ndarray) -> np.ndarray:
    """Places and directions of a closed road, `[pieces, 3]`, one every STEP."""
    turns = np.linspace(0, 2 * math.pi, POINTS + 1)
    radius = CubicSpline(turns, np.append(distances, distances[0]), bc_type="periodic")
    fine = np.linspace(0, 2 * math.pi, 4000)
    r = np.clip(radius(fine), NEAR / 2, FAR)
    x, y = r * np.cos(fine), r * np.sin(fine)
    way = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    places = np.linspace(0, way[-1], round(way[-1] / STEP), endpoint=False)
    x, y = np.interp(places, way, x), np.interp(places, way, y)
    ahead = np.arctan2(np.roll(y, -1) - np.roll(y, 1), np.roll(x, -1) - np.roll(x, 1))
    return np.stack([x, y, ahead - math.pi / 2], axis=1)


class Driver:
    """The game as the student meets it: four small grey pictures, and actions that last."""

    def __init__(self) -> None:
        self.game = Racing()
        self.action_space = self.game.action_space

    def reset(self, *, seed):
        self.frames = [small(self.game.reset(seed=seed)[0])] * 4
        return np.stack(self.frames), {}

    def step(self, action):
        total, over = 0.0, False
        for _ in range(REPEAT):
            picture, reward, over, *_ = self.game.step(action)
            total += reward
            if over:
                break
        self.frames = [*self.frames[1:], small(picture)]
        return np.stack(self.frames), total, over, False, {}


def small(picture: np.ndarray) -> np.ndarray:
    """24×24 grey numbers of what is above the dashboard."""
    grey = picture[:84].mean(axis=2) / 255
    return grey.reshape(21, 4, 24, 4).mean(axis=(1, 3)).astype(np.float32)


def prepare(driver: Driver, distances) -> None:
    """Puts the track of a level in place."""
    driver.game.distances = tuple(distances.values())


def config(**changes) -> tut.Config:
    """The training, with any of its settings changed."""
    names = [f"at_{360 * n // POINTS}" for n in range(POINTS)]
    racing = domain(
        "car-racing",
        Driver,
        dict.fromkeys(names, (NEAR, FAR)),
        defaults=dict.fromkeys(names, CIRCLE),
        prepare=prepare,
        max_steps=1000 // REPEAT,
    )
    settings = dict(
        env=racing,
        # A slot repeats its level: a queue of others would be reset beforehand, and a reset draws a whole track.
        method=tut.ACCEL(tut.BufferConfig(capacity=500, min_fill=0.002, gate="fixed"), edits=2, after_episode="repeat"),
        student=tut.StudentConfig(memory=False, hidden=128, separate=True),
        ppo=tut.PPO(learning_rate=3e-4, discount=0.99, gae_lambda=0.9, minibatches=4, normalise_returns=True),
        slots=16,
        steps=125,
        updates=1000,
    )
    return tut.Config(**(settings | changes))


if __name__ == "__main__":
    updates = int(sys.argv[2]) if sys.argv[1:2] == ["--updates"] else 1000
    run = tut.train(config(updates=updates), "runs/car-racing", on_progress=lambda p: print(p.updates, p.row))
    for result in run.evaluate(episodes=5):
        print(result.level, round(result.mean_return, 1))
