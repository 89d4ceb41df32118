"""The maze domain as a whole: options, encoder, pictures."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from tutelage.env import Domain
from tutelage.envs.maze import MazeDomain, MazeLevel, MazeObs, MazeState, render
from tutelage.envs.maze.level import level_from_rows


def test_builds_its_parts() -> None:
    """One set of options, the same in every part."""
    domain = MazeDomain(
        size=7, view=7, max_steps=98, reward="paper", generator="fixed", blocks=9, edits=("wall", "empty")
    )
    assert isinstance(domain, Domain)
    assert domain.name == "maze"
    assert (domain.env().height, domain.env().view, domain.env().max_steps) == (7, 7, 98)
    assert (domain.design().width, domain.design().blocks, domain.design().edits) == (7, 9, ("wall", "empty"))
    assert all(level.env.view == 7 for level in domain.suites()["small"])  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 2},
        {"size": 100},
        {"view": 6},
        {"view": 9},
        {"max_steps": 0},
        {"blocks": -1},
        {"edits": ()},
        {"edits": ("wall", "wall")},
    ],
)
def test_refuses_nonsense(wrong: dict) -> None:
    """One sentence for each option that cannot be."""
    with pytest.raises(ValueError, match=r"^`\w+` must .*\.$"):
        MazeDomain(**wrong)


def plain_features(encoder, image: np.ndarray, direction: int) -> np.ndarray:
    """The encoder's output, by loops."""
    kernel = np.asarray(encoder.kernel).reshape(3, 3, 3, 16)
    side = len(image) - 2
    seen = np.zeros((side, side, 16))
    for i in range(side):
        for j in range(side):
            seen[i, j] = np.einsum("abc,abcf->f", image[i : i + 3, j : j + 3] / 10.0, kernel) + encoder.bias
    return np.concatenate([np.maximum(seen, 0).ravel(), encoder.compass[direction] + encoder.compass_bias])


@pytest.mark.parametrize(("view", "size"), [(5, 149), (7, 405)])
def test_encoder_is_a_convolution(view: int, size: int) -> None:
    """Against a plain one, with the reference's number of parameters, 448 + 25."""
    encoder = MazeDomain(view=view).encoder(random.key(0))
    image = np.asarray(random.randint(random.key(1), (view, view, 3), 0, 11), np.uint8)
    found = encoder(MazeObs(jnp.asarray(image), jnp.int32(2)))
    assert encoder.size == size
    assert found.shape == (size,)
    np.testing.assert_allclose(found, plain_features(encoder, image, 2), atol=1e-5)
    assert sum(leaf.size for leaf in jax.tree.leaves(encoder)) == 448 + 25


def test_a_constant_compass_is_the_reference_implementations_mistake() -> None:
    """Its one-hot vectors had every column set that any row of the batch had: all four, as good as always."""
    directions = np.array([2, 0, 3, 1, 1, 0])
    mistaken = np.zeros((6, 4))
    mistaken[:, directions] = 1
    encoder = MazeDomain(compass="constant").encoder(random.key(0))
    shown = MazeDomain().encoder(random.key(0))
    image = np.asarray(random.randint(random.key(1), (5, 5, 3), 0, 11), np.uint8)
    for direction, row in zip(directions, mistaken, strict=True):
        obs = MazeObs(jnp.asarray(image), jnp.int32(direction))
        np.testing.assert_allclose(encoder(obs)[-5:], row @ shown.compass + shown.compass_bias, atol=1e-6)
        np.testing.assert_array_equal(encoder(obs)[:-5], shown(obs)[:-5])


def test_encoder_starts_as_the_reference_does() -> None:
    """Xavier-uniform filters without bias; a direction embedding within ±1/2."""
    encoder = MazeDomain().encoder(random.key(0))
    bound = np.sqrt(6 / (27 + 144))
    assert 0.95 * bound < jnp.abs(encoder.kernel).max() <= bound
    assert not encoder.bias.any()
    assert 0.35 < jnp.abs(encoder.compass).max() <= 0.5
    assert encoder.compass_bias.any()


LEVEL = level_from_rows(["S.#.", "..#.", "...G"], direction=1)


@pytest.mark.parametrize("tile", [8, 16, 32])
def test_picture_shows_every_kind_of_tile(tile: int) -> None:
    """Border, wall, floor, goal and student have their colours."""
    picture = render.draw(LEVEL, tile=tile)
    assert picture.shape == (5 * tile, 6 * tile, 3)
    assert picture.dtype == np.uint8

    def colour(x: int, y: int) -> tuple:
        return tuple(picture[(y + 1) * tile + tile // 2, (x + 1) * tile + tile // 2])

    assert colour(-1, -1) == colour(2, 0) == render.WALL
    assert colour(1, 0) == render.FLOOR
    assert colour(0, 0) == render.AGENT
    assert colour(3, 2) == render.GOAL


def test_student_points_where_it_faces() -> None:
    """The picture of the student turned by a quarter is the picture turned."""
    tiles = [render.draw(LEVEL._replace(direction=jnp.int32(d)), tile=16)[16:32, 16:32] for d in range(4)]
    red = [(tile == render.AGENT).all(axis=-1) for tile in tiles]
    for d in range(4):
        np.testing.assert_array_equal(red[(d + 1) % 4], np.rot90(red[d], -1))
    assert red[0][:, :8].sum() > red[0][:, 8:].sum()


def state_at(level: MazeLevel, x: int, y: int, direction: int, time: int = 0) -> MazeState:
    """A moment of an episode on the level."""
    return MazeState(level.walls, level.goal, *map(jnp.int32, (x, y, direction, time)))


def test_film() -> None:
    """A frame a state, on a level of any size; what is seen is lit, where the student was is marked."""
    states = [state_at(LEVEL, 0, y, direction=1, time=y) for y in range(3)]
    frames = MazeDomain().film(LEVEL, jax.tree.map(lambda *leaves: np.stack(leaves), *states))
    assert len({frame.tobytes() for frame in frames}) == len(frames) == 3
    tile = frames[0].shape[0] // 5
    corner = (slice(tile + 2, tile + 4), slice(2 * tile + 2, 2 * tile + 4))  # of the floor tile right of the start
    assert (frames[0][corner] != render.FLOOR).any(axis=-1).all()
    assert (frames[2][corner] == render.FLOOR).all()
    mark = tuple(frames[2][tile + tile // 2, tile + tile // 2])
    assert mark not in (render.FLOOR, render.AGENT)


def test_field_of_view_stops_at_walls_when_occluded() -> None:
    """Facing a wall, only the wall is seen; see-through, what is behind it too."""
    level = level_from_rows([".....", "#####", "..S..", "....G", "....."])
    state = state_at(level, x=2, y=2, direction=3)
    envs = [MazeDomain(size=5, see_through=see_through).env() for see_through in (True, False)]
    shown, hidden = (jax.jit(env.field_of_view)(state) for env in envs)
    assert shown[1, 1:6].all()
    assert hidden[2, 1:6].all()
    assert not hidden[1].any()
