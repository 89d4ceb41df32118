"""The versions that are declared are enough: the oldest of each, and the newest of all there are."""

import os
import re
import subprocess
import tomllib
import venv

import pytest

from toys import ROOT

DEPENDENCIES = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
WANTED = {
    "oldest": [re.sub(r"^([\w.-]+)>=([\w.]+).*", r"\1==\2", dependency) for dependency in DEPENDENCIES],
    "newest": DEPENDENCIES,
}
SMALL = "--updates 2 --slots 4 --steps 64 --eval-every 1 --eval-episodes 1 --method.buffer.capacity 8"
COMMANDS = [
    f"train maze demo {SMALL} --student.hidden 8 --student.head 8 --out run",
    "resume run --updates 3",
    "eval run --episodes 2",
    "levels run --top 2 --png pictures",
    "export run --hub students",
    "report run --out report",
]


def test_every_dependency_has_an_oldest_version():
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", wanted) for wanted in WANTED["oldest"])


@pytest.mark.slow
@pytest.mark.parametrize("versions", WANTED)
def test_the_package_works_with_what_it_declares(tmp_path, versions):
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [python, "-m", "pip", "install", "-q", "--no-input", "--only-binary", ":all:"]
    done = subprocess.run([*pip, *WANTED[versions]], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheels: {done.stderr.strip().splitlines()[-1]}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for line in COMMANDS:
        subprocess.run([python, "-m", "tutelage", *line.split()], check=True, cwd=tmp_path, env=environment)
