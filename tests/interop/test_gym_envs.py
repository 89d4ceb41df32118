"""The suites as Gymnasium environments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tutelage.interop.gym_envs  # noqa: F401  registers them
from tutelage.envs.bipedal import WalkerDesign
from tutelage.envs.maze import MazeDesign
from tutelage.errors import UserError

NAMES = ("Maze", "Lava", "Walker", "PoetWalker")


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing_amiss(name: str) -> None:
    env = gymnasium.make(f"tutelage/{name}-v0", render_mode="rgb_array")
    check_env(env.unwrapped)
    assert env.unwrapped.render().dtype == np.uint8


def test_a_maze_is_walked_to_its_goal() -> None:
    """By turning to it and then straight ahead; the reward is MiniGrid's, and the end says that it was solved."""
    rows = ["S.G" + "." * 10, *["." * 13] * 12]
    env = gymnasium.make("tutelage/Maze-v0")
    obs, info = env.reset(seed=0, options={"level": {"rows": rows, "direction": 0}})
    assert info["level"]["rows"] == rows
    assert obs["image"].shape == (5, 5, 3)
    way = [0] * int(obs["direction"]) + [2, 2]
    *before, last = [env.step(action)[1:] for action in way]
    assert all(step == (0.0, False, False, {}) for step in before)
    assert last == (pytest.approx(1 - 0.9 * len(way) / 250), True, False, {"solved": True})


def test_levels_are_chosen() -> None:
    """By name, in their own env; for an episode or for all; drawn from the generator otherwise."""
    env = gymnasium.make("tutelage/Maze-v0", suite_level="PerfectMazeM").unwrapped
    first = env.reset(seed=1)[1]["level"]["rows"]
    assert len(first) == 19
    assert first != env.reset()[1]["level"]["rows"]
    assert first == env.reset(seed=1)[1]["level"]["rows"]
    assert len(env.reset(options={"suite_level": "16Rooms"})[1]["level"]["rows"]) == 13
    drawn = gymnasium.make("tutelage/Maze-v0", generator="empty", blocks=0).unwrapped
    assert "#" not in "".join(drawn.reset(seed=0)[1]["level"]["rows"])
    MazeDesign().from_json(drawn.reset()[1]["level"])


def test_terrains_are_chosen() -> None:
    """By some parameters, by all, by name."""
    env = gymnasium.make("tutelage/Walker-v0").unwrapped
    level = env.reset(seed=3, options={"parameters": {"roughness": 5.0}})[1]["level"]
    assert (level["roughness"], level["stump_height_high"]) == (5.0, 0.0)
    WalkerDesign().from_json(level)
    same = dict(level)
    assert env.reset(options={"level": same})[1]["level"] == same
    del same["seed"]
    assert env.reset(options={"level": same})[1]["level"]["seed"] != level["seed"]
    assert env.reset(options={"suite_level": "Stump"})[1]["level"]["stump_height_high"] == 2.0


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("Maze", {"floor": 1}, "one of level, suite_level, parameters"),
        ("Maze", {"level": {}, "suite_level": "Maze"}, "one of level"),
        ("Maze", {"suite_level": "Nowhere"}, "no held-out level 'Nowhere'; it has 16Rooms"),
        ("Maze", {"level": {"rows": ["."], "direction": 0}}, "13 rows"),
        ("Maze", {"parameters": {}}, "no parameters"),
        ("Walker", {"parameters": {"roughness": 99}}, "roughness .* 0 to 10"),
        ("Walker", {"parameters": {"wetness": 1}}, "keys roughness"),
        ("Walker", {"level": 7}, "mapping of parameters by name, not 7"),
    ],
)
def test_what_cannot_be_chosen_is_said(name: str, options: dict, words: str) -> None:
    env = gymnasium.make(f"tutelage/{name}-v0").unwrapped
    with pytest.raises(UserError, match=words):
        env.reset(seed=0, options=options)


def test_many_at_once() -> None:
    """By Gymnasium's own vector environments."""
    envs = gymnasium.make_vec("tutelage/Lava-v0", num_envs=3, vectorization_mode="sync")
    obs, _ = envs.reset(seed=[0, 1, 2])
    assert obs["glyphs"].shape == (3, 7, 7)
    for _ in range(30):
        obs, reward, *_ = envs.step(envs.action_space.sample())
    assert reward.shape == (3,)
    envs.close()


def test_a_window_shows_each_moment(monkeypatch) -> None:
    """In a window of pygame's that nobody sees."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make("tutelage/Lava-v0", render_mode="human").unwrapped
    env.reset(seed=0)
    env.step(1)
    window = pygame.display.get_surface()
    assert window.get_size() == (360, 360)
    assert pygame.surfarray.array3d(window).std() > 0
    env.close()
    assert not pygame.display.get_init()


@pytest.mark.parametrize("name", NAMES)
def test_pictures(name: str) -> None:
    """They change as the episode goes on."""
    env = gymnasium.make(f"tutelage/{name}-v0", render_mode="rgb_array")
    env.reset(seed=0)
    env.action_space.seed(0)
    before, changed = env.render(), False
    for _ in range(20):
        env.step(env.action_space.sample())
        changed |= bool((env.render() != before).any())
    assert changed
