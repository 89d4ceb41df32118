"""Interpreters that have packages of other libraries besides everything of ours, for tests that take minutes."""

import hashlib
import os
import shutil
import site
import subprocess
import venv
from pathlib import Path

import pytest

from toys import ROOT

FOLDER = ROOT / ".pytest_cache" / "venvs"


def python_with(*requirements: str) -> Path:
    """One with these installed, made once; the test is skipped where there are no wheels of them."""
    folder = FOLDER / hashlib.sha256(" ".join(sorted(requirements)).encode()).hexdigest()[:12]
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        (packages,) = (Path(line) for line in _output(python, "-c", "import site; print(site.getsitepackages()[0])"))
        (packages / "ours.pth").write_text("\n".join([*site.getsitepackages(), str(ROOT / "src")]))
        command = [python, "-m", "pip", "install", "-q", "--no-input", "--only-binary", ":all:", *requirements]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{', '.join(requirements)}: {done.stderr.strip().splitlines()[-1]}")
        (folder / "whole").touch()
    return python


def _output(*command: object) -> list[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout.splitlines()
