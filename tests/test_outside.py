"""Levels and names that come from outside: what fits is taken as it is, and the rest is refused in a short sentence."""

import json
import threading
from random import Random

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tutelage as tut
from soak.mutations import change
from toys import jumper, tiny_maze
from tutelage.env import same_level
from tutelage.envs.bipedal import WalkerDesign
from tutelage.envs.lava import LavaDesign
from tutelage.envs.maze import MazeDesign
from tutelage.runs import checkpoint
from tutelage.runs import config as configs
from tutelage.runs.evaluate import Result, write_csv
from tutelage.runs.run import initial_state

SPACES = {"maze": MazeDesign(5, 5), "lava": LavaDesign(), "bipedal": WalkerDesign()}
LEVELS = {name: space.to_json(space.sample(jax.random.key(0))) for name, space in SPACES.items()}


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from([*SPACES]), seed=st.integers(0, 2**32), times=st.integers(1, 3))
def test_whatever_is_given_as_a_level_is_one_or_is_refused_in_a_sentence(name, seed, times):
    space, data, rng = SPACES[name], LEVELS[name], Random(seed)
    for _ in range(times):
        data = change(rng, data)
    level, said = None, ""
    try:
        level = space.from_json(data)
    except ValueError as error:
        said = str(error)
    if level is None:
        assert said.endswith(".")
        assert said.isprintable()
        assert len(said) < 300
    else:
        assert set(data) == set(LEVELS[name]), "nothing is left out"
        assert same_level(space.from_json(json.loads(json.dumps(space.to_json(level)))), level)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("more", ["note", "", "__class__", "x" * 9999])
def test_what_a_level_has_not_is_not_taken(name, more):
    with pytest.raises(ValueError, match=r"^.{1,299}\.$"):
        SPACES[name].from_json(LEVELS[name] | {more: 1})


@pytest.mark.parametrize("name", ["=1+1.json", "+1.json", "-1.json", "@x.json", "=-@.json"])
def test_no_cell_of_an_evaluation_is_a_formula(tmp_path, name):
    config = tiny_maze()
    (tmp_path / "config.json").write_text(json.dumps(configs.to_json(config, "accel")))
    (tmp_path / name).write_text(
        json.dumps([config.env.design().to_json(config.env.design().sample(jax.random.key(0)))])
    )
    _, suite = tut.Run(tmp_path).suite_from(tmp_path / name)
    write_csv(tmp_path / "x.csv", [Result(level.name, 0, 1, 1.0, -1.0, 1.0) for level in suite])
    cells = [line.split(",")[0].strip('"') for line in (tmp_path / "x.csv").read_text().splitlines()]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def test_a_run_is_read_beside_a_training_that_removes_its_checkpoints(tmp_path):
    """Every look finds the newest checkpoint, or one that was the newest a moment ago; none is called damaged."""
    config, folder = jumper(), tmp_path / "checkpoints"
    folder.mkdir()
    data = configs.to_json(config, "accel")
    (tmp_path / "config.json").write_text(json.dumps(data))
    state, done = initial_state(config), threading.Event()
    checkpoint.save(folder, 0, state, data)

    def go_on() -> None:
        updates = 0
        while not done.is_set():
            updates += 1
            checkpoint.save(folder, updates, state, data)
            checkpoint.prune(folder, 1, 0)

    training = threading.Thread(target=go_on)
    training.start()
    try:
        seen = [tut.Run(tmp_path, config.env).snapshot()[0] for _ in range(25)]
    finally:
        done.set()
        training.join()
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
