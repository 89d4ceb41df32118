"""A new env is one folder and one entry in the tables: it trains, is evaluated, shows its levels and is reported on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from toys import example, jumper
from tutelage import cli
from tutelage.env import Classes, Measure, Suite
from tutelage.runs import presets
from tutelage.student.nets import Flatten

own = example("own_env")


@dataclass(frozen=True)
class Roads(own.Strips):
    """Strips that say how bad they are."""

    def describe(self, level):
        return {"pits": level.sum().astype(jnp.float32), "state": jnp.clip(level.sum() // 3, 0, 2).astype(jnp.float32)}


@dataclass(frozen=True)
class RoadDomain:
    """What would be a folder of `envs/`."""

    length: int = 16
    """Tiles from start to end."""

    @property
    def name(self) -> str:
        return "road"

    def env(self):
        return own.Jumper()

    def design(self):
        return Roads(self.length)

    def encoder(self, key):
        return Flatten(3)

    def suites(self) -> Mapping[str, Suite]:
        patched = jnp.zeros(self.length, bool).at[jnp.array([4, 9])].set(True)
        return {"roads": (tut.TestLevel("Patched", self.env(), lambda key: patched),)}

    @property
    def measure(self) -> Measure:
        return Measure("mean_return", "distance", 0.0, 4.0)

    @property
    def classes(self) -> Classes:
        return {"state": ("smooth", "bumpy", "broken")}

    def film(self, level, states):
        return [np.zeros((16, 16, 3), np.uint8) for _ in jax.tree.leaves(states)[0]]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Trained and evaluated from the command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(presets.DOMAINS, "road", RoadDomain)
        patch.setitem(presets.PRESETS, "road/accel", ("ACCEL on roads", replace(jumper(), env=RoadDomain())))
        path = tmp_path_factory.mktemp("road") / "run"
        assert cli.main(["train", "road", "accel", "--env.length", "15", "--seeds", "2", "--out", str(path)]) == 0
        assert cli.main(["eval", str(path), "--episodes", "4"]) == 0
        yield tut.Run(path)


def test_its_options_are_in_the_config(run):
    assert run.config.env == RoadDomain(length=15)


def test_its_levels_are_listed(run, tmp_path):
    assert cli.main(["levels", str(run.path), "--top", "3", "--json", str(tmp_path / "levels.json")]) == 0
    for found in json.loads((tmp_path / "levels.json").read_text()):
        pits = found["level"]["pits"]
        assert found["metrics"] == {"pits": len(pits), "state": min(len(pits) // 3, 2)}


def test_it_is_reported_on_in_its_own_terms(run, tmp_path):
    assert cli.main(["report", str(run.path), "--out", str(tmp_path / "report")]) == 0
    html = (tmp_path / "report" / "index.html").read_text("utf-8")
    for said in ("road", "Patched", "distance", "smooth", "broken"):
        assert said in html
    assert "extremely challenging" not in html
