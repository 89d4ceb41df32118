"""What XLA is told before JAX starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tutelage import cli
from tutelage.envs.bipedal import SMALL_LOOPS, PoetDomain, WalkerDomain
from tutelage.envs.maze import MazeDomain
from tutelage.errors import UserError
from tutelage.runs import bench, config, flags, train
from tutelage.runs.flags import start_jax, tell_xla
from tutelage.runs.presets import preset


@pytest.mark.parametrize(
    ("domain", "before", "after"),
    [
        (WalkerDomain(), "", SMALL_LOOPS),
        (PoetDomain(), "--xla_cpu_ftz=true", f"--xla_cpu_ftz=true {SMALL_LOOPS}"),
        (WalkerDomain(), SMALL_LOOPS, SMALL_LOOPS),
        (WalkerDomain(), "--xla_backend_extra_options=mine=1", "--xla_backend_extra_options=mine=1"),
        (MazeDomain(), "--xla_cpu_ftz=true", "--xla_cpu_ftz=true"),
    ],
)
def test_what_the_user_says_stays_and_what_the_env_wants_is_added(monkeypatch, domain, before, after) -> None:
    monkeypatch.setenv("XLA_FLAGS", before)
    tell_xla(domain)
    assert os.environ["XLA_FLAGS"] == after


def test_nothing_is_set_for_an_env_that_wants_nothing(monkeypatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    tell_xla(MazeDomain())
    assert "XLA_FLAGS" not in os.environ


@pytest.mark.parametrize("error", [AssertionError(), RuntimeError("Unable to initialize backend 'moon'")])
def test_a_device_that_is_not_there_is_said_in_a_sentence(monkeypatch, error) -> None:
    """JAX fails at an assertion where a platform's plugin is not installed, elsewhere with a `RuntimeError`."""

    def none() -> None:
        raise error

    monkeypatch.setattr(flags.jax, "devices", none)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with pytest.raises(UserError, match=r"JAX_PLATFORMS is 'cuda': unset it, or install .*cuda12"):
        start_jax(MazeDomain())


@pytest.mark.slow
def test_a_training_without_its_device_ends_in_a_sentence(tmp_path) -> None:
    command = [sys.executable, "-m", "tutelage", "train", "maze", "demo", "--out", str(tmp_path / "run")]
    environment = os.environ | {"JAX_PLATFORMS": "cuda"}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        pytest.skip("there is such a device")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tutelage: JAX finds no device")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


class Told(Exception):
    """XLA has been told."""


@pytest.mark.parametrize("where", ["train", "resume", "eval", "bench", "library"])
def test_it_is_told_before_anything_is_computed(monkeypatch, tmp_path, where) -> None:
    """By all that train, evaluate or time: `jax.devices`, which starts JAX, comes after it."""

    def tell(domain) -> None:
        raise Told(domain.name)

    def started(*_) -> None:
        raise AssertionError("JAX was started first")

    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text(json.dumps(config.to_json(preset("bipedal", "dr"), "dr")))
    monkeypatch.setattr(flags, "tell_xla", tell)
    monkeypatch.setattr(bench.jax, "devices", started)
    calls = {
        "train": lambda: cli._dispatch(["train", "bipedal", "dr", "--out", str(tmp_path / "other")]),
        "resume": lambda: cli._dispatch(["resume", str(run)]),
        "eval": lambda: cli._dispatch(["eval", str(run)]),
        "bench": lambda: cli._dispatch(["bench", "bipedal"]),
        "library": lambda: train.resume(run),
    }
    with pytest.raises(Told, match="bipedal"):
        calls[where]()


LOOP = """
import jax, jax.numpy as jnp
step = lambda _, x: jnp.sin(jax.lax.optimization_barrier(2 * x)) - x
program = jax.jit(lambda x: jax.lax.fori_loop(0, 9, step, x)).lower(jnp.ones(5000)).compile()
print("small_call" in program.as_text())
"""


NONE_SMALL = SMALL_LOOPS.replace("4000000", "1024")


@pytest.mark.parametrize(("flags", "is_one"), [(SMALL_LOOPS, "True"), (NONE_SMALL, "False")])
def test_xla_makes_a_loop_one_function_when_told(flags, is_one, tmp_path: Path) -> None:
    """If this fails with a new JAX, look for what the option is called now: walkers on CPUs are slow without it."""
    surroundings = os.environ | {"XLA_FLAGS": flags, "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LOOP], capture_output=True, text=True, check=True, env=surroundings)
    assert done.stdout.strip() == is_one
