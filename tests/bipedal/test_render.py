"""Pictures show the terrain and the walker where they are."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tutelage.envs.bipedal import render
from tutelage.envs.bipedal.level import make_level
from tutelage.envs.bipedal.terrain import CELL, Terrain, build

PITS = make_level([0.0, 5, 5, 0, 0, 0, 0, 1], 2)
STUMPS = make_level([0.0, 0, 0, 2, 2, 0, 0, 1], 2)
STANDING = np.array([(0, 0, 0.0), (0.05, -0.8, 0.05), (0.02, -1.9, -0.1), (0, -0.8, 0.0), (-0.05, -1.9, -0.2)])


@pytest.fixture(scope="module")
def stumps() -> Terrain:
    """A terrain with stumps of two cells' height."""
    return jax.tree.map(np.asarray, build(STUMPS, "parametrised")[0])


def walking(*x: float, height: float = 5.4) -> np.ndarray:
    """Poses of a walker that stands at some places."""
    return np.stack([STANDING + np.array([here, height, 0]) for here in x])


def close(colour: np.ndarray, to: tuple[int, int, int]) -> np.ndarray:
    """Where a picture has about this colour."""
    return (np.abs(colour.astype(int) - to) < 12).all(axis=-1)


def test_profile_shows_every_pit() -> None:
    """Along the level of the ground there is sky exactly over the openings."""
    terrain = jax.tree.map(np.asarray, build(PITS, "parametrised")[0])
    picture = render.draw(PITS)
    assert picture.shape == (128, 640, 3)
    assert picture.dtype == np.uint8
    ground = np.flatnonzero(close(picture[:, 30], render.EARTH))[0]  # on the start pad
    row = picture[ground + 6]
    scale = 640 / (200 * CELL)
    blocks = terrain.box[np.unique(terrain.box_id, return_index=True)[1][1:]]
    openings = [(a[1], b[0]) for a, b in zip(blocks[::2], blocks[1::2], strict=False)]
    assert len(openings) > 8
    for left, right in openings:
        middle = (left + right) / 2
        assert row[int(middle * scale)].min() > 130, "sky"
        assert close(row[int((right + 2.5 * CELL) * scale)], render.EARTH)


def test_all_heights_are_in_view() -> None:
    """Even stairs of many metres: sky at the top, ground at the bottom, and grass at both ends."""
    for seed in range(5):
        picture = render.draw(make_level([0.0, 0, 0, 0, 0, 5, 5, 9], seed))
        assert (picture[0, :, 2] > picture[0, :, 0]).all()
        assert close(picture[-1], render.DEEP).mean() + close(picture[-1], render.EARTH).mean() > 0.9


def test_rules_decide_what_a_level_looks_like() -> None:
    assert (render.draw(STUMPS, "hardcore") != render.draw(STUMPS, "parametrised")).any()


def test_film_follows_the_walker(stumps: Terrain) -> None:
    """The hull stays a third from the left, except at the ends of the world; stones pass by."""
    frames = render.film(stumps, walking(4.67, 30.0, 50.0, 90.0))
    assert [f.shape for f in frames] == [(400, 600, 3)] * 4
    columns = [np.flatnonzero(close(f, render.HULL_FILL).any(axis=0)).mean() for f in frames]
    assert columns[0] == pytest.approx(4.67 * 30, abs=12)
    assert columns[1] == pytest.approx(200, abs=12)
    assert columns[2] == pytest.approx(200, abs=12)
    assert columns[3] > 400
    assert close(frames[1], render.STONE).any()
    assert (frames[1] != frames[2]).any()


def test_film_follows_into_the_depth(stumps: Terrain) -> None:
    """A walker far below the first height is still in the picture."""
    low = stumps._replace(y=stumps.y - 40)
    (frame,) = render.film(low, walking(30.0, height=5.4 - 40))
    assert close(frame, render.HULL_FILL).sum() > 300
    assert close(frame, render.TURF).sum() > 300


def test_legs_are_told_apart_and_rays_shown_on_request(stumps: Terrain) -> None:
    poses = walking(30.0) + np.array([0, 0, 0.4]) * np.array([0, 1, 1, -1, -1])[:, None]
    (plain,) = render.film(stumps, poses)
    (with_rays,) = render.film(stumps, poses, np.full((1, 10), 0.5))
    for colour in (render.NEAR_LEG, render.FAR_LEG):
        assert close(plain, colour).sum() > 100
    assert not close(plain, render.RAY).any()
    assert close(with_rays, render.RAY).any()
