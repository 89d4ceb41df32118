"""Configs of versions that named their velocity solvers still open."""

import json
from pathlib import Path

import pytest

from tutelage.envs.bipedal import TOLERANCE
from tutelage.errors import UserError
from tutelage.runs import config
from tutelage.runs.presets import DOMAINS, METHODS

FORMER = Path(__file__).resolve().parents[2] / "results" / "bipedal-accel" / "config.json"


def written(tmp_path: Path, solver: str) -> Path:
    """The config of a run with this solver."""
    data = json.loads(FORMER.read_text())
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data | {"env": data["env"] | {"solver": solver}}))
    return path


@pytest.mark.parametrize(("solver", "tolerance"), [("exact", 0.0), ("prompt", TOLERANCE)])
def test_a_solver_is_a_tolerance(tmp_path, capsys, solver, tolerance) -> None:
    assert config.load(written(tmp_path, solver), DOMAINS, METHODS).env.tolerance == tolerance
    assert not capsys.readouterr().err


def test_what_cannot_be_played_as_it_was_is_said(capsys) -> None:
    assert config.load(FORMER, DOMAINS, METHODS).env.tolerance == TOLERANCE
    [line] = capsys.readouterr().err.splitlines()
    assert "reduced velocity solver" in line


def test_other_solvers_are_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="solver"):
        config.load(written(tmp_path, "another"), DOMAINS, METHODS)
