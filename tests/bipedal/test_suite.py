"""Held-out terrains, and the two domains that hold them."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
import pytest
from jax import random

from tutelage.env import Domain, HasOriginal
from tutelage.envs.bipedal import PoetDomain, WalkerDomain
from tutelage.envs.bipedal.design import FULL_HIGH, FULL_LOW, WalkerDesign
from tutelage.envs.bipedal.level import NAMES
from tutelage.envs.bipedal.suite import HIGH, PAPER, POET, Drawn
from tutelage.report.facts.paper import published
from tutelage.runs.presets import DOMAINS, PRESETS, preset

ROSES = {  # roughness; stump low and high; pit low and high
    "Rose1a": (5.6, 2.4, 2.82, 4.48, 6.4),
    "Rose1b": (5.44, 1.8, 2.82, 4.48, 6.72),
    "Rose2a": (7.2, 1.98, 2.82, 5.6, 7.2),
    "Rose2b": (5.76, 2.16, 2.76, 1.6, 7.2),
    "Rose3a": (5.28, 1.98, 2.76, 4.8, 7.2),
    "Rose3b": (4.8, 2.4, 2.76, 4.48, 4.8),
}


def levels(draw: Drawn, count: int = 400):
    """Many of a test level's episodes."""
    return jax.tree.map(np.asarray, jax.vmap(draw)(random.split(random.key(0), count)))


def test_what_the_suites_hold() -> None:
    """Names, rules and limits; the paper's rows are found by their names."""
    suites = WalkerDomain().suites()
    assert [*suites] == ["bipedal", "bipedal-poet", "bipedal-high", "poet", "validation"]
    found = [(level.name, level.env.rules, level.env.max_steps) for level in suites["bipedal"]]
    rest = [(name, "parametrised", 2000) for name in ("Stairs", "PitGap", "Stump", "Roughness")]
    assert found == [("Basic", "parametrised", 1600), ("Hardcore", "hardcore", 2000), *rest]
    assert all(published("bipedal/accel", level.name) is not None for level in suites["bipedal"])
    assert suites["validation"] == suites["bipedal"][:2]
    assert [level.name for level in suites["bipedal-poet"]] == ["Extreme", *ROSES]
    assert [level.name for level in suites["bipedal-high"]][-1] == "Insane"
    assert all(hash(level) == hash(level) for suite in suites.values() for level in suite)


def test_poets_suite_comes_first_in_its_domain() -> None:
    domain = PoetDomain(stumps="shorten")
    assert [*domain.suites()] == ["bipedal-poet", "bipedal", "bipedal-high", "poet", "validation"]
    rules = {level.name: level.env.rules for level in domain.suites()["bipedal"]}
    assert rules["Basic"] == "parametrised"
    assert rules["Hardcore"] == "hardcore"
    assert rules["Stump"] == domain.env().rules == domain.design().rules == "poet"


@pytest.mark.parametrize("draw", [*PAPER.values(), *HIGH.values(), *POET.values()])
def test_levels_are_of_the_design_space(draw: Drawn) -> None:
    """Within its ranges, in order, with a seed for each episode; what is not random is fixed."""
    genes, seeds = levels(draw)
    assert (genes >= FULL_LOW).all()
    assert (genes <= FULL_HIGH).all()
    assert (genes[:, [1, 3, 5]] <= genes[:, [2, 4, 6]]).all()
    assert len(np.unique(seeds)) == 400
    if draw is not POET["Extreme"]:
        assert (genes == genes[0]).all()


def test_poets_levels() -> None:
    """Roses as published; the extreme ones meet all three challenges, in ranges drawn for each episode."""
    for name, (roughness, stump_low, stump_high, pit_low, pit_high) in ROSES.items():
        genes = dict(zip(NAMES, levels(POET[name], 1).genes[0], strict=True))
        wanted = (roughness, pit_low, pit_high, stump_low, stump_high, 0, 0, 1)
        assert [*genes.values()] == pytest.approx(wanted, rel=1e-6)
    extreme = levels(POET["Extreme"])
    difficulty = jax.vmap(WalkerDesign(5).describe)(extreme)["difficulty"]
    assert (np.asarray(difficulty) == 3).all()
    spread = extreme.genes.max(axis=0) - extreme.genes.min(axis=0)
    np.testing.assert_allclose(spread, [3.5, 0, 2, 0, 0.6, 0, 0, 0], rtol=0.05)


@pytest.mark.parametrize("domain", [WalkerDomain(), PoetDomain()], ids=lambda d: d.name)
def test_is_a_domain(domain: WalkerDomain) -> None:
    """It fulfils the protocols, stands in the table under its name, and has a teacher's space of its size."""
    assert isinstance(domain, Domain)
    assert isinstance(domain, HasOriginal)
    assert DOMAINS[domain.name] is type(domain)
    assert len(domain.design().low) == domain.parameters
    assert domain.encoder(random.key(0)).size == 24


def test_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match=r"^`\w+` must .*\.$"):
        WalkerDomain(max_steps=0)


@dataclass(frozen=True)
class Row:
    """What tells the presets apart."""

    generator: str
    replay_rate: float
    updates: int


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("bipedal/dr", Row("full", 0.5, 30_000)),
        ("bipedal/robust-plr", Row("full", 0.5, 30_000)),
        ("bipedal/accel", Row("easy", 0.9, 30_000)),
        ("bipedal/accel-dr", Row("full", 0.9, 30_000)),
        ("bipedal-poet/robust-plr", Row("full", 0.5, 30_000)),
        ("bipedal-poet/accel", Row("easy", 0.9, 50_000)),
    ],
)
def test_presets_are_the_papers(name: str, row: Row) -> None:
    """16 slots of 2048 steps; what differs is in the row."""
    assert name in PRESETS
    config = preset(*name.split("/"))
    buffer = config.method.buffer
    assert Row(config.env.generator, buffer.replay_rate, config.updates) == row
    assert (config.slots, config.steps, config.ppo.minibatches, config.ppo.epochs) == (16, 2048, 32, 5)
    assert (buffer.capacity, buffer.temperature, buffer.staleness, buffer.min_fill) == (1000, 0.1, 0.5, 0.5)
    assert (config.ppo.discount, config.ppo.gae_lambda, config.ppo.learning_rate) == (0.99, 0.9, 3e-4)
    assert config.ppo.normalise_returns
    assert not config.ppo.clip_value
    assert config.student.separate
