"""What other libraries are there for, with the libraries themselves: tests that skip without them, and examples."""

import subprocess

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
