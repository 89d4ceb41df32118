import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from toys import ROOT, jumper
from tutelage.errors import UserError
from tutelage.runs import checkpoint
from tutelage.runs.storage import Damaged, read_arrays, write_arrays


def state(seed=0):
    return {
        "key": jax.random.key(seed),
        "weights": jnp.arange(6.0).reshape(2, 3) + seed,
        "flags": jnp.array([True, False]),
    }


@pytest.fixture
def folder(tmp_path):
    for updates in (10, 20):
        checkpoint.save(tmp_path, updates, state(updates), {"a": 1})
    return tmp_path


TEMPLATE = jax.eval_shape(state)


def test_every_array_comes_back_as_it_was(folder):
    got = checkpoint.load(folder, 20, TEMPLATE)
    assert jnp.array_equal(jax.random.key_data(got["key"]), jax.random.key_data(jax.random.key(20)))
    assert jnp.array_equal(got["weights"], state(20)["weights"])
    assert got["flags"].tolist() == [True, False]


def test_the_header_says_what_is_inside(folder):
    _, header = read_arrays(checkpoint.path_of(folder, 20))
    assert header["updates"] == 20
    assert header["config"] == {"a": 1}
    assert header["tree"]["['weights']"] == ["float32", [2, 3]]


def test_older_names_of_arrays_are_known():
    """In the state itself and in what a method keeps besides; names that merely look alike are left alone."""

    now = {".buffer.level.walls": "a", ".own.buffer.level": "b", ".own.buffer.levels_seen": "c"}
    then = {".buffer.levels.walls": "a", ".own.buffer.levels": "b", ".own.buffer.levels_seen": "c"}
    assert {checkpoint.todays_name(name): x for name, x in then.items()} == now
    assert {checkpoint.todays_name(name): x for name, x in now.items()} == now


@pytest.mark.skipif(not (ROOT / "results" / "bipedal-accel").is_dir(), reason="that run is not part of this copy")
def test_the_run_among_the_results_opens():
    """It was trained when checkpoints had the older names."""
    run = tut.Run(ROOT / "results" / "bipedal-accel")
    arrays, _ = read_arrays(checkpoint.path_of(run.path / "checkpoints", 5750))
    assert ".buffer.levels.genes" in arrays
    assert np.array_equal(run.state().buffer.level.genes, arrays[".buffer.levels.genes"])


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (truncated, "truncated"),
        (flipped, "checksum"),
        (lambda data: b"", "truncated or not a checkpoint"),
        (lambda data: b"not safetensors at all" * 50, "truncated or not a checkpoint"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(folder, damage, says):
    path = checkpoint.path_of(folder, 20)
    path.write_bytes(damage(path.read_bytes()))
    warnings = []
    updates, got = checkpoint.load_newest(folder, TEMPLATE, warnings.append)
    assert updates == 10
    assert jnp.array_equal(got["weights"], state(10)["weights"])
    assert len(warnings) == 1
    assert says in warnings[0]


def test_a_foreign_checkpoint_is_refused(folder):
    other = {**state(), "weights": jnp.zeros((3, 3))}
    checkpoint.save(folder, 30, other, {})
    with pytest.raises(
        Damaged, match=r"another configuration: \['weights'\] is float32\[3, 3\] instead of float32\[2, 3\]"
    ):
        checkpoint.load(folder, 30, TEMPLATE)
    checkpoint.save(folder, 30, {"something": jnp.zeros(2)}, {})
    with pytest.raises(Damaged, match="another configuration"):
        checkpoint.load(folder, 30, TEMPLATE)


def test_safetensors_from_elsewhere_are_refused(folder):
    from safetensors.numpy import save_file

    save_file({"x": np.zeros(3)}, checkpoint.path_of(folder, 30))
    with pytest.raises(Damaged, match="not written by this program"):
        checkpoint.load(folder, 30, TEMPLATE)


def test_a_renamed_checkpoint_is_refused(folder):
    checkpoint.path_of(folder, 20).rename(checkpoint.path_of(folder, 40))
    with pytest.raises(Damaged, match="really the checkpoint of update 20"):
        checkpoint.load(folder, 40, TEMPLATE)


def test_no_usable_checkpoint_is_said_plainly(folder):
    for updates in (10, 20):
        checkpoint.path_of(folder, updates).write_bytes(b"x")
    with pytest.raises(UserError, match="no usable checkpoint"):
        checkpoint.load_newest(folder, TEMPLATE, lambda text: None)


def test_pruning_keeps_the_newest_and_the_archived(tmp_path):
    for updates in range(0, 60, 10):
        checkpoint.save(tmp_path, updates, {"x": jnp.zeros(1)}, {})
    checkpoint.prune(tmp_path, keep=2, archive_every=20)
    assert checkpoint.available(tmp_path) == [0, 20, 40, 50]


def test_a_half_written_file_is_never_seen(tmp_path, monkeypatch):
    write_arrays(tmp_path / "00000001.safetensors", {"x": np.zeros(2)}, {"updates": 1})
    monkeypatch.setattr("pathlib.Path.replace", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_arrays(tmp_path / "00000002.safetensors", {"x": np.ones(2)}, {"updates": 2})
    assert checkpoint.available(tmp_path) == [1]


def test_a_config_survives_its_file():
    from tutelage.runs import config as configs
    from tutelage.runs import presets

    for name, (_, config) in presets.PRESETS.items():
        data = json.loads(json.dumps(configs.to_json(config, presets.method_name(config.method))))
        assert configs.from_json(data, presets.DOMAINS, presets.METHODS) == config, name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d | {"format": 99}, "not a run configuration"),
        (lambda d: [], "not a run configuration"),
        (lambda d: d | {"slotz": 3}, "unknown field slotz"),
        (lambda d: d | {"slots": "many"}, "slots cannot be 'many'"),
        (lambda d: d | {"slots": True}, "slots cannot be True"),
        (lambda d: d | {"ppo": 3}, "ppo must be an object"),
        (lambda d: d | {"env": {"name": "moon"}}, "unknown env 'moon'"),
        (lambda d: d | {"method": {"name": "accel", "edit": 3}}, "unknown field method.edit"),
        (lambda d: d | {"seeds": 0}, "--seeds must be at least 1"),
    ],
)
def test_a_config_that_is_none_is_refused(tmp_path, change, says):
    from tutelage.runs import config as configs
    from tutelage.runs import presets

    data = configs.to_json(presets.preset("maze", "accel"), "accel")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(change(data)))
    with pytest.raises(UserError, match=says):
        configs.load(path, presets.DOMAINS, presets.METHODS)


def test_an_own_env_must_be_the_one_the_run_was_made_with():
    from tutelage.runs import config as configs
    from tutelage.runs import presets

    config = jumper()
    data = json.loads(json.dumps(configs.to_json(config, "accel")))
    assert configs.from_json(data, presets.DOMAINS, presets.METHODS, config.env) == config
    data["env"]["space"]["length"] = 99
    with pytest.raises(UserError, match="not this 'jumper'"):
        configs.from_json(data, presets.DOMAINS, presets.METHODS, config.env)
