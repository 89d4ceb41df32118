"""Figures over many runs: what they show, and that they stand in a page and in files."""

import csv
import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from PIL import Image

from tutelage.report.facts import levels
from tutelage.report.facts.comparison import Comparison, gather
from tutelage.report.facts.levels import Composition, Findings, Frontier, Rose, shares_of
from tutelage.report.facts.runs import Missing
from tutelage.report.facts.students import trials
from tutelage.report.pages.html import measures
from tutelage.report.plots import frontier, methods
from tutelage.report.plots.figure import Data, Sketch, finish
from tutelage.report.plots.levels import composition, rose_plot


@pytest.fixture(scope="module")
def three(three_runs) -> Comparison:
    return gather(list(three_runs.values())).comparisons[0]


@pytest.fixture(scope="module")
def one(three_runs) -> Comparison:
    return gather([three_runs["accel"]]).comparisons[0]


def texts(svg: str | bytes) -> set[str]:
    return {"".join(e.itertext()) for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}


def rows(data: Data) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.csv())))


def check(sketch: Sketch | None) -> set[str]:
    """Every version is whole SVG with ids of its own and no outside references, the PNG a picture; gives its texts."""
    assert sketch is not None
    plate = finish(sketch)
    ids = [i for x in plate.inline for i in re.findall(r'\bid="([^"]*)"', x)]
    assert len(ids) == len(set(ids))
    for x in plate.inline:
        assert ElementTree.fromstring(x).get("aria-label") == sketch.told
        assert "#010203" not in x
    picture = Image.open(io.BytesIO(plate.png))
    assert picture.format == "PNG"
    assert picture.width == 2 * sketch.widths[0]
    assert len(rows(sketch.data)) == len(sketch.data.rows) > 0
    return set().union(*(texts(x) for x in (*plate.inline, plate.svg)))


def test_learning_curves_of_all_methods(three) -> None:
    sketches = methods.learning(three)
    assert [s.name for s in sketches] == ["maze-validation", "maze-training"]
    assert {"DR 43%", "ACCEL 43%", "Robust PLR 43%"} <= check(sketches[1])
    assert {r["method"] for r in rows(sketches[0].data)} == {"ACCEL", "DR", "Robust PLR"}


def test_the_same_runs_give_the_same_bytes(three) -> None:
    first, second = (methods.aggregates(three) for _ in range(2))
    assert first is not None
    assert second is not None
    assert finish(first) == finish(second)


def test_complexity_over_updates(three) -> None:
    (only,) = methods.complexity(three)
    assert {"Depth", "ACCEL", "DR", "Robust PLR", "student updates"} <= check(only)


def test_aggregates_with_intervals(three) -> None:
    sketch = methods.aggregates(three)
    assert {"IQM, more is better", "Optimality gap, less is better"} <= check(sketch)
    found = {(r["statistic"], r["method"]): r for r in rows(sketch.data)}
    accel = found["Mean", "ACCEL"]
    assert float(accel["value"]) == pytest.approx((0.0 + 0.1 + 0.2 + 0.3 + 0.5 + 0.6) / 6, abs=1e-6)
    assert float(accel["low"]) < float(accel["value"]) < float(accel["high"])


def test_improvement_of_the_leader_over_the_others(three, one) -> None:
    sketch = methods.improvement(three)
    assert any("of ACCEL over each other method" in t for t in check(sketch))
    assert [(r["method"], r["over"]) for r in rows(sketch.data)] == [("ACCEL", "DR"), ("ACCEL", "Robust PLR")]
    assert methods.improvement(one) is None


def test_profiles_fall_and_bands_hold_them(three) -> None:
    sketch = methods.profile(three)
    check(sketch)
    for method in ("ACCEL", "DR"):
        found = [r for r in rows(sketch.data) if r["method"] == method]
        shares = np.array([[float(r[k]) for k in ("low", "mean", "high")] for r in found])
        assert (np.diff(shares[:, 1]) <= 0).all()
        assert (np.diff(shares, axis=1) >= -1e-9).all()


def test_bars_level_by_level(three) -> None:
    sketch = methods.level_bars(three)
    assert {"SBend", "Spiral", "Choice", "ACCEL", "DR"} <= check(sketch)
    assert len(rows(sketch.data)) == 9


def test_without_results_there_are_no_such_figures(own_run) -> None:
    bare = gather([own_run]).comparisons[0]
    for figure in (methods.aggregates, methods.improvement, methods.profile, methods.level_bars):
        assert figure(bare) is None
    assert bare.leader is None


def test_a_single_seed_has_no_interval() -> None:
    found = methods.estimate(np.mean, np.array([[0.5, 0.7]]))
    assert found.value == pytest.approx(0.6)
    assert np.isnan(found.low)


@pytest.fixture(scope="module")
def front(one) -> Frontier:
    family = Findings(one.groups[0]).family
    assert family is not None
    return family.frontier()


def test_the_frontier_plays_a_family_with_every_checkpoint(front) -> None:
    assert front.trials.checkpoints == (3, 6)
    assert [f.generation for f in front.found] == list(range(14))
    assert front.line == tuple(range(14))
    for values in (front.trials.returns, front.trials.solved, front.trials.pvl):
        assert values.shape == (2, 14)
        assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_array_equal(front.trials.returns[0], front.trials.returns[1], "the students are the same")


def test_figures_of_the_frontier(one, front) -> None:
    design = one.groups[0].members[0].run.config.env.design()
    assert {"generation 0", "gen. 13", "update 3", "update 6", "return", "PVL"} <= check(
        frontier.generations("g", design, front)
    )
    assert {"0–3", "return", "PVL"} <= check(frontier.bands("b", front))
    assert {"blocks", "path length", "solved"} <= check(frontier.difficulty("d", front, one.classes))


def test_one_checkpoint_is_no_frontier(three) -> None:
    family = Findings(three.groups[0]).family
    assert family is not None
    with pytest.raises(Missing, match="one checkpoint only, and it takes two"):
        replace(family, member=three.groups[1].members[0]).frontier()


def test_trials_tell_levels_apart(one) -> None:
    """A student that never moves solves nothing; where no episode is solved the return is 0."""
    member = one.groups[0].members[0]
    held = Findings(one.groups[0]).best[0][1]
    found = trials(member, 0, [6], jax.tree.map(lambda x: x[:14], held.record.level))
    assert found.solved.shape == (1, 14)
    np.testing.assert_array_equal(found.returns > 0, found.solved > 0)


def test_findings(three) -> None:
    accel, dr, _ = map(Findings, three.groups)
    assert accel.metrics == ["blocks", "path_length", "solvable"]
    assert accel.family is not None
    assert accel.family.member is three.groups[0].members[0]
    assert accel.family.tree.generation(accel.family.tree.deepest) == 13
    assert accel.concentrations == {3: [1.0, 1.0], 6: [1.0, 1.0]}
    shares = dr.composition("solvable", 2)
    assert shares is not None
    assert shares.shares.sum() == pytest.approx(1)
    assert dr.composition("difficulty", 4) is None
    assert accel.roses(["blocks", "path_length"]) == [], "two measures make no rose"


def test_a_rose_has_the_levels_that_were_solved_in_training(one, monkeypatch) -> None:
    monkeypatch.setattr(levels, "MIN_PETALS", 2)
    findings = Findings(one.groups[0])
    early, late = findings.roses(["blocks", "path_length"])
    assert (early.updates, late.updates) == (3, 6)
    solved = [f for f in findings.best[0][1] if f.id % 2]
    np.testing.assert_array_equal(late.values, [[f.metrics["blocks"], f.metrics["path_length"]] for f in solved])


def test_a_rose_of_any_measures() -> None:
    random = np.random.default_rng(0)
    measures = [f"measure_{n}" for n in range(8)]
    hues = {"PLR": "#d55e00", "ACCEL": "#009e73", "DR": "#0072b2"}
    roses = [Rose(label, 10, random.random((5, 8))) for label in ("PLR", "ACCEL")]
    roses.append(Rose("DR", 10, np.zeros((0, 8))))
    assert "DR, update 10: 0 levels" in check(rose_plot("r", measures, roses, hues))


def test_the_composition_by_any_class() -> None:
    values = np.array([0, 0, 1, 3])
    np.testing.assert_allclose(shares_of(values, 4), [0.5, 0.25, 0, 0.25])
    shares = np.stack([shares_of(values, 4), shares_of(values[2:], 4)])
    names = ("flat", "hilly", "steep", "a wall")
    found = check(composition("c", names, [Composition("ACCEL", (1000, 2000), shares)]))
    assert {*names, "ACCEL", "1,000", "2,000"} <= found


def test_amounts_are_numbers_even_where_they_are_0_or_1() -> None:
    assert measures({"stair_steps": 1.0, "solvable": 1.0}, {}) == ["stair steps 1", "solvable yes"]


def test_classes_are_told_by_their_names() -> None:
    names = {"state": ("flat", "steep"), "solvable": ("no way", "solvable")}
    assert measures({"state": 1.0, "solvable": 0.0}, names) == ["state steep", "solvable no"]
    assert measures({"state": 2.0}, names) == ["state 2"], "one that has no name"
