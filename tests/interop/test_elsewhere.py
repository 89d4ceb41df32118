"""With other libraries themselves, in environments of their own: tests that skip without them, and the examples."""

import re
import subprocess
import tomllib

import pytest

from toys import ROOT
from venvs import python_with

TESTS = {
    "tests/interop/test_onnx.py": ("jax2onnx==0.17.1", "onnxruntime==1.31.1"),
    "tests/interop/test_gymnax.py": ("gymnax==1.0.1", "six==1.17.0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("file", TESTS)
def test_with_the_library_itself(file):
    command = [python_with(*TESTS[file]), "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout.splitlines()[-1]


EXAMPLES = ("craftax_worlds", "cartpole_physics", "xland_rules", "car_racing")

TRAIN = """
import dataclasses, pathlib, sys
sys.path.insert(0, "examples")
import {name} as example
import tutelage as tut
config = example.config()
buffer = dataclasses.replace(config.method.buffer, capacity=20)
method = dataclasses.replace(config.method, buffer=buffer)
ppo = dataclasses.replace(config.ppo, minibatches=1, epochs=1)
config = dataclasses.replace(config, method=method, ppo=ppo, slots=2, updates=1, eval_every=0)
run = tut.train(config, pathlib.Path(sys.argv[1]))
assert run.metrics()[-1]["updates"] == 1
design, levels = config.env.design(), run.levels()
first = levels.at(0).level
assert design.render(first).dtype == "uint8"
again = design.from_json(design.to_json(first))
from tutelage.env import same_level
assert same_level(again, first)
"""


def pins(name: str) -> list[str]:
    """What an example says it needs, besides this package."""
    text = (ROOT / "examples" / f"{name}.py").read_text()
    (block,) = re.findall(r"^# /// script\n(.*?)^# ///$", text, re.MULTILINE | re.DOTALL)
    needed = tomllib.loads(re.sub(r"^# ?", "", block, flags=re.MULTILINE))["dependencies"]
    return [requirement for requirement in needed if requirement != "tutelage"]


@pytest.mark.parametrize("name", [*EXAMPLES, "sb3_maze"])
def test_examples_name_exact_versions(name):
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", pin) for pin in pins(name)), pins(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_trains(name, tmp_path):
    command = [python_with(*pins(name)), "-c", TRAIN.format(name=name), tmp_path / "run"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.slow
def test_stable_baselines_learn_and_play_our_suite():
    command = [python_with(*pins("sb3_maze")), "examples/sb3_maze.py", "--steps", "1024"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert len(re.findall(r"^\w+ +[01]\.\d\d$", done.stdout, re.MULTILINE)) == 6
