"""The paper's published walkers act here as their numbers say, and walk."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.env import Domain
from tutelage.errors import UserError
from tutelage.interop.walkers import SHAPES, published_walker
from tutelage.runs.evaluate import evaluate
from tutelage.runs.presets import DOMAINS


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in SHAPES.items()}


def check(student, arrays):
    obs = np.random.default_rng(1).normal(size=(5, 24)).astype(np.float32)
    hidden = np.tanh(np.tanh(obs @ arrays["w0"] + arrays["b0"]) @ arrays["w1"] + arrays["b1"])
    _, policy, value = student.act((), jnp.asarray(obs), jnp.zeros(5, bool))
    np.testing.assert_allclose(policy.mean, hidden @ arrays["w2"] + arrays["b2"], atol=1e-5)
    np.testing.assert_allclose(policy.log_std, np.tile(arrays["log_std"], (5, 1)), atol=1e-6)
    assert not value.any()


def write_tensorflow(folder, arrays):
    """As TensorFlow.js's converter writes the demo's graphs: constants of the graph among the weights."""
    half = arrays["log_std"][None] / 2
    weights = {"constant": half, "transpose": half, "where": np.zeros((0, 1), np.int32), "flat": np.int32([-1, 24])}
    weights |= {name: arrays[name] for name in SHAPES if name != "log_std"}
    listed = [{"name": n, "shape": list(x.shape), "dtype": str(x.dtype)} for n, x in weights.items()]
    folder.mkdir(exist_ok=True)
    (folder / "group1-shard1of1.bin").write_bytes(b"".join(x.tobytes() for x in weights.values()))
    manifest = {"weightsManifest": [{"paths": ["group1-shard1of1.bin"], "weights": listed}]}
    (folder / "model.json").write_text(json.dumps(manifest))


def test_a_downloaded_folder_is_a_student(arrays, tmp_path):
    write_tensorflow(tmp_path / "walker", arrays)
    check(published_walker(tmp_path / "walker"), arrays)


def test_an_npz_file_is_a_student(arrays, tmp_path):
    np.savez(tmp_path / "walker.npz", **arrays)
    check(published_walker(str(tmp_path / "walker.npz")), arrays)


def test_what_is_no_walker_is_said(arrays, tmp_path):
    cases = {
        "has no": "model.json is not there",
        "odd.npz": "is no .npz file",
        "nowhere.npz": "nowhere.npz is not there",
        "small.npz": "its w1 is not 64×64",
    }
    (tmp_path / "has no").mkdir()
    (tmp_path / "odd.npz").write_bytes(b"what?")
    np.savez(tmp_path / "small.npz", **(arrays | {"w1": np.zeros((8, 8))}))
    for name, sentence in cases.items():
        with pytest.raises(UserError, match=sentence):
            published_walker(tmp_path / name)
    write_tensorflow(tmp_path / "short", arrays)
    (tmp_path / "short" / "group1-shard1of1.bin").write_bytes(b"1234")
    with pytest.raises(UserError, match=r"model\.json is not that of a published walker"):
        published_walker(tmp_path / "short")


@pytest.mark.parametrize("seed", range(5))
def test_the_papers_five(shared, seed):
    file = shared / "data" / "bipedal_policies" / f"accel_30k_s{seed}.npz"
    with np.load(file) as arrays:
        check(published_walker(file), arrays)


@pytest.mark.slow
def test_one_of_the_papers_walks(shared):
    """Its mean return in gymnasium is 317.9 on this terrain."""
    student = published_walker(shared / "data" / "bipedal_policies" / "accel_30k_s1.npz")
    domain: Domain = DOMAINS["bipedal"]()
    basic = [level for level in domain.suites()["validation"] if level.name == "Basic"]
    [result] = evaluate(jax.tree.map(lambda x: x[None], student), [0], tuple(basic), episodes=4)
    assert 310 < result.mean_return < 325
