"""Seeds spread over devices: what they learn is the same, and the same number of devices gives the same bits.

A process of its own has two devices, which are really one processor.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import tutelage as tut
from toys import jumper, tiny_maze
from tutelage.errors import UserError
from tutelage.runs import devices
from tutelage.runs.leaves import named_leaves
from tutelage.runs.presets import METHODS

TESTS = Path(__file__).resolve().parents[1]
OTHERS = ("lava/small", "lava/accel", "bipedal/accel", "bipedal/alp-gmm")
TWO = "--xla_force_host_platform_device_count=2"


def on_two_devices(program: str, *words: str) -> None:
    environment = {**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {TWO}", "PYTHONPATH": str(TESTS)}
    subprocess.run([sys.executable, "-c", program, *words], env=environment, check=True)


TRAIN = """
import sys
from pathlib import Path
import jax.numpy as jnp
import tutelage as tut
from toys import jumper
from tutelage.runs.devices import placed
from tutelage.runs.run import initial_state
from tutelage.runs.trainer import programs

folder, config = Path(sys.argv[1]), jumper(seeds=4, updates=6, checkpoint_every=3)
tut.train(config, folder / "two", devices=2)
tut.train(jumper(seeds=4, updates=3, checkpoint_every=3), folder / "stopped", devices=2)
tut.resume(folder / "stopped", updates=6, domain=config.env)
said = []
tut.train(jumper(seeds=4, updates=3, checkpoint_every=3), folder / "moved", devices=2)
tut.resume(folder / "moved", updates=6, devices=1, domain=config.env, warn=said.append)
(folder / "said").write_text("\\n".join(said))
state = placed(initial_state(config), 2)
text = programs(config, 2)[1].lower(state.with_log(None), jnp.int32(6)).compile().as_text()
(folder / "program").write_text(text)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("devices")
    on_two_devices(TRAIN, str(made))
    tut.train(jumper(seeds=4, updates=6, checkpoint_every=3), made / "one")
    return made


def final(folder: Path, name: str):
    return tut.Run(folder / name, jumper().env).state(6)


def test_two_devices_learn_what_one_learns(folder):
    """Whole numbers are equal, and so all levels and decisions; what is learned differs by rounding."""
    one, two = named_leaves(final(folder, "one")), named_leaves(final(folder, "two"))
    assert one.keys() == two.keys()
    for name, a in one.items():
        if np.issubdtype(a.dtype, np.floating):
            np.testing.assert_allclose(a, two[name], atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(a, two[name], err_msg=name)


def test_the_same_number_of_devices_gives_the_same_bits(folder):
    """Here to a run that was stopped, and knows by itself on how many it was."""
    name = "checkpoints/00000006.safetensors"
    assert (folder / "stopped" / name).read_bytes() == (folder / "two" / name).read_bytes()


def test_another_number_of_devices_is_said(folder):
    assert "devices 2 → 1" in (folder / "said").read_text()
    lines = [json.loads(line) for line in (folder / "moved" / "history.jsonl").read_text().splitlines()]
    assert [line["devices"] for line in lines if line["event"] == "begin"] == [2, 1]


def test_no_device_waits_for_another(folder):
    program = (folder / "program").read_text()
    assert "while" in program
    assert not [word for word in ("all-reduce", "all-gather", "all-to-all", "collective-permute") if word in program]


@pytest.mark.parametrize(
    ("seeds", "count", "says"),
    [
        (5, 2, "5 seeds cannot be shared out evenly over 2 devices: --seeds 4 can"),
        (7, 4, "--seeds 8 can"),
        (1, 2, "--seeds 2 can"),
        (4, 3, "must be from 1 to 2, the devices there are here, not 3"),
        (4, 0, "not 0"),
    ],
)
def test_seeds_that_cannot_be_shared_out_evenly_are_refused(monkeypatch, seeds, count, says):
    monkeypatch.setattr(jax, "local_device_count", lambda: 4 if count == 4 else 2)
    with pytest.raises(UserError, match=says):
        devices.check(seeds, count)


def test_nothing_is_written_where_devices_are_refused(tmp_path):
    with pytest.raises(UserError, match="devices"):
        tut.train(tiny_maze(seeds=2), tmp_path / "run", devices=2)
    assert list(tmp_path.iterdir()) == []


EVERY = """
import sys
from pathlib import Path
import tutelage as tut
from tutelage.runs.presets import PRESETS
from tutelage.runs.sweep import changed

small = {
    "updates": 2, "slots": 4, "seeds": 2, "eval_every": 0, "log_every": 1, "checkpoint_every": 2, "student.hidden": 8,
    "student.head": 8, "method.buffer.capacity": 8, "method.buffer.min_fill": 0.1,
}
env, method = sys.argv[1].split("/")
steps = 32 if env == "bipedal" else 16
small |= {"env.max_steps": steps, "steps": steps}
small |= {"env.eye": "small"} if env == "lava" else {}
small |= {"method.scout_batches": 1, "method.scout_levels": 16} if method == "sfl" else {}
config = changed(PRESETS[sys.argv[1]][1], small)
for devices in (1, 2):
    tut.train(config, Path(sys.argv[2]) / str(devices), devices=devices)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(f"maze/{name}" for name in METHODS if name != "alp-gmm"), *OTHERS])
def test_every_method_and_domain_can_be_spread(tmp_path, name):
    on_two_devices(EVERY, name, str(tmp_path))
    one, two = (tut.Run(tmp_path / count).state() for count in ("1", "2"))
    for a, b in zip(jax.tree.leaves(one.buffer), jax.tree.leaves(two.buffer), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert np.array_equal(one.updates, two.updates)
