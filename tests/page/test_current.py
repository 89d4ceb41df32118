"""The engines in the package are made of today's functions: their C text is the one that the manifests name."""

import hashlib
import os
import subprocess
import sys

import jax
import pytest

from tutelage.page.engines import shipped

MADE_WITH = {engine.manifest["jax"] for engine in shipped().values()}


def check(*names: str) -> None:
    """In a process of its own, in which types are not checked at each call: there are many."""
    if {jax.__version__} != MADE_WITH:
        pytest.skip(f"the engines are made with JAX {MADE_WITH}, whose equations may be others")
    command = [sys.executable, "-m", "tutelage.page.build", "--check", *names]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert run.returncode == 0, run.stdout + run.stderr


def test_engines_are_current() -> None:
    check("lava", "maze-17", "student-bipedal-dr", "student-maze-dr")


@pytest.mark.slow
def test_all_engines_are_current() -> None:
    check()


@pytest.mark.parametrize("name", shipped())
def test_modules_are_those_of_their_manifests(name: str) -> None:
    engine = shipped()[name]
    for simd, key in ((True, "wasm"), (False, "plain")):
        module = engine.wasm(simd=simd)
        assert hashlib.sha256(module).hexdigest() == engine.manifest[key]
        assert len(module) < 2**20
