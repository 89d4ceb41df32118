"""What XLA is told before JAX starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tutelage import cli, commands
from tutelage.envs.bipedal import SMALL_LOOPS, PoetDomain, WalkerDomain
from tutelage.envs.maze import MazeDomain
from tutelage.runs import bench, config, train
from tutelage.runs.flags import tell_xla
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
    for module in (train, bench, *map(commands.module, ("train", "resume", "eval", "bench"))):
        monkeypatch.setattr(module, "tell_xla", tell)
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
