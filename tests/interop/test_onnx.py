"""Students as ONNX act as they do in JAX. Runs where jax2onnx and onnxruntime are; `make slow` brings them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from toys import tiny_maze
from tutelage import cli
from tutelage.interop.onnx import Step, export

pytest.importorskip("jax2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

SLOTS = 3
CONFIGS = {
    "lstm": tiny_maze(),
    "gru": tiny_maze(student=tut.StudentConfig(cell="gru", hidden=16, head=8)),
    "s5": tiny_maze(student=tut.StudentConfig(cell="s5", hidden=16, head=8)),
    "transformer": tiny_maze(student=tut.StudentConfig(cell="transformer", hidden=16, head=8, window=8)),
    "lava": tut.preset("lava", "small"),
    "walker": tut.preset("bipedal", "accel"),
}


def seen(config, slots):
    """Observations of episodes that have just begun."""
    env, design = config.env.env(), config.env.design()
    keys = jax.random.split(jax.random.key(1), slots)
    return jax.jit(jax.vmap(lambda key: env.reset(key, design.sample(key))[1]))(keys)


def new_student(config):
    return config.classroom().new_student(jax.random.key(0))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_is_that_of_the_student(name, tmp_path):
    config = CONFIGS[name]
    student = new_student(config)
    assert export(student, config, tmp_path / "student.onnx"), "any number of students at a time"
    session = onnxruntime.InferenceSession(str(tmp_path / "student.onnx"))
    names = [given.name for given in session.get_inputs()]
    assert names == Step(student, config, 1).input_names
    obs = seen(config, SLOTS)
    memory = jax.tree.map(lambda x: jax.random.normal(jax.random.key(2), x.shape), student.memory(SLOTS))
    start = jnp.array([True, False, False])
    after, policy, value = student.act(memory, obs, start)
    given = [*jax.tree.leaves(obs), *([start] if student.recurrent else []), *jax.tree.leaves(memory)]
    found = session.run(None, {n: np.asarray(x) for n, x in zip(names, given, strict=True)})
    wanted = [*jax.tree.leaves(policy), value, *jax.tree.leaves(after)]
    for a, b in zip(wanted, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_it_remembers_from_step_to_step(name, tmp_path):
    """Through more steps than a transformer looks back on, and past the beginning of another episode."""
    config = CONFIGS[name]
    student = new_student(config)
    export(student, config, tmp_path / "student.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "student.onnx"))
    names = [given.name for given in session.get_inputs()]
    memory = student.memory(SLOTS)
    kept = [np.zeros(x.shape, x.dtype) for x in jax.tree.leaves(memory)]
    for t in range(12):
        obs = jax.tree.map(lambda x, t=t: jnp.roll(x, t, axis=0), seen(config, SLOTS))
        start = jnp.array([t == 0, t in (0, 5), t == 0])
        memory, policy, value = student.act(memory, obs, start)
        given = [np.asarray(x) for x in (*jax.tree.leaves(obs), start)]
        logits, worth, *kept = session.run(None, dict(zip(names, [*given, *kept], strict=True)))
        np.testing.assert_allclose(logits, jax.tree.leaves(policy)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(worth, value, rtol=1e-4, atol=1e-5)


def test_inputs_and_outputs_have_the_names_of_what_they_are(tmp_path):
    config = CONFIGS["lstm"]
    step = Step(new_student(config), config, 1)
    assert step.input_names == ["obs.image", "obs.direction", "start", "memory.h", "memory.c"]
    assert step.output_names == ["logits", "value", "next_memory.h", "next_memory.c"]
    step = Step(new_student(CONFIGS["walker"]), CONFIGS["walker"], 1)
    assert (step.input_names, step.output_names) == (["obs"], ["mean", "log_std", "value"])


def test_a_network_that_must_know_how_many_there_are_acts_one_at_a_time(tmp_path):
    config = tut.preset("lava", "dr")
    assert not export(new_student(config), config, tmp_path / "student.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "student.onnx"))
    assert {given.shape[0] for given in session.get_inputs()} == {1}


def test_the_command_writes_the_student_of_a_seed(tmp_path, capsys):
    from report.made import write_run

    run = write_run(tiny_maze(seeds=2), tmp_path / "run")
    assert cli.main(["export", str(run.path), "--onnx", str(tmp_path / "student.onnx"), "--seed", "1"]) == 0
    assert "any number of students at a time" in capsys.readouterr().out
    export(tut.load_student(run.path, seed=1), run.config, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "student.onnx").read_bytes()
