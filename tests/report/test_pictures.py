import io
from base64 import b64decode
from dataclasses import replace

import jax
import numpy as np
import pytest
from PIL import Image

from tutelage.env import TestLevel
from tutelage.envs.maze import MazeDomain
from tutelage.report.facts import students
from tutelage.report.facts.comparison import gather
from tutelage.report.facts.levels import evenly
from tutelage.report.facts.runs import Evaluation, Missing
from tutelage.report.facts.students import choose_episode, hardest_first
from tutelage.report.plots import pictures
from tutelage.report.plots.pictures import MAX_FRAMES, animate, encode, exhibit, fitted, gallery
from tutelage.runs.browse import Found, best
from tutelage.runs.evaluate import Result

SMALL = MazeDomain().suites()["small"]


def opened(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(b64decode(uri.partition(",")[2])))


def found(score: float, *, seed: int = 0, generation: int = 0, layout: int = 0) -> Found:
    level = MazeDomain(size=5, blocks=9).design().sample(jax.random.key(layout))
    return Found(level, 0, -1, generation, 0, score, seed, {})


def test_the_gallery_shows_each_level_once_and_every_seed() -> None:
    design = MazeDomain(size=5).design()
    strong = [found(0.9, layout=0), found(0.8, layout=0), found(0.7, layout=1), found(0.6, layout=2)]
    weak = [found(0.2, seed=1, layout=3), found(0.1, seed=1, layout=0)]
    shown = gallery(design, [strong, weak], n=3)
    assert [x.found.score for x in shown] == [0.9, 0.7, 0.2]


def test_pictures_are_of_the_levels(maze_run) -> None:
    design = maze_run.config.env.design()
    x = exhibit(design, best(maze_run, 1)[0])
    picture = opened(x.picture)
    assert picture.size == (x.width, x.height)
    np.testing.assert_array_equal(picture, fitted(Image.fromarray(design.render(x.found.level))))


@pytest.mark.parametrize(("length", "n"), [(1, 10), (10, 10), (11, 10), (500, 10), (3, 2)])
def test_evenly_spaced_with_both_ends(length: int, n: int) -> None:
    chosen = evenly(length, n)
    assert chosen[0] == 0
    assert chosen[-1] == length - 1
    assert len(chosen) == min(n, length)


def test_the_hardest_level_that_is_solved_comes_first() -> None:
    for rates, order in (
        ({"SBend": 0.0, "Spiral": 0.9, "Choice": 0.6}, ["Choice", "Spiral"]),
        ({"SBend": 0.2, "Spiral": 0.9, "Choice": 0.1}, ["Spiral", "SBend", "Choice"]),
    ):
        results = [Result(name, 0, 10, rate, rate, 50.0) for name, rate in rates.items()]
        assert [level.name for level in hardest_first(SMALL, results)] == order
    assert hardest_first(SMALL, []) == list(SMALL)


def test_levels_too_long_to_watch_are_passed_over() -> None:
    suite = MazeDomain().suites()["maze"]
    assert all(level.env.max_steps <= students.WATCHABLE for level in hardest_first(suite, []))


def member_of(run, results):
    member = gather([run]).comparisons[0].groups[0].members[0]
    return replace(member, evaluation=Evaluation("small", 6, tuple(results)))


def test_an_episode_moves(maze_run, results) -> None:
    episode = choose_episode(member_of(maze_run, results), SMALL)
    assert (episode.level_name, episode.seed) == ("Choice", 1)
    shown = animate(maze_run.config.env, episode)
    film = opened(shown.moving)
    assert film.format == "WEBP"
    assert 1 < film.n_frames <= MAX_FRAMES
    assert film.size == (shown.width, shown.height) == opened(shown.still).size


def test_the_last_picture_rests_and_the_file_stays_small() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (12, 300, 300, 3), np.uint8)
    uri = encode([Image.fromarray(frame) for frame in noise])
    film = opened(uri)
    times = []
    for n in range(film.n_frames):
        film.seek(n)
        film.load()
        times.append(film.info["duration"])
    assert times == [160] * 11 + [1000]
    assert len(uri) < 1_500_000


def test_without_webp_it_is_a_gif(monkeypatch) -> None:
    monkeypatch.setattr(pictures.features, "check", lambda name: False)
    film = opened(encode([Image.new("RGB", (8, 8), c) for c in ("red", "blue", "green")]))
    assert (film.format, film.n_frames) == ("GIF", 3)


def test_an_env_without_pictures_of_episodes_says_so(own_run) -> None:
    domain = own_run.config.env
    suite = (TestLevel("new", domain.env(), domain.design().sample),)
    with pytest.raises(Missing, match="does not draw its episodes"):
        animate(domain, choose_episode(member_of(own_run, []), suite))
