"""The statistics against rliable 1.2.0 and SciPy 1.16, whose numbers were computed once and stand here."""

import csv
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tutelage.report.facts.paper import PUBLISHED
from tutelage.runs import presets
from tutelage.statistics import (
    Summary,
    bounds,
    cvar,
    improves,
    interval,
    iqm,
    mean,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    unbiased_cvar,
    welch,
    within_one_error,
)

FILES = {
    "maze/accel": "mg_60_blocks-accel_20k_updates.csv",
    "maze/plr": "mg_60_blocks_uni-robust_plr_20k_updates.csv",
    "maze/dr": "mg_60_blocks_uni-dr_20k_updates.csv",
    "bipedal/accel": "bipedal8d-accel_20k-updates.csv",
    "bipedal/plr": "bipedal8d-robust_plr-20k_updates.csv",
    "bipedal/dr": "bipedal8d-dr_20k-updates.csv",
}
X = np.array(
    [
        [0.62, 0.564, 0.733, 0.859],
        [0.322, 0.871, 0.346, 0.614],
        [0.726, 0.188, 0.499, 0.82],
        [0.196, 0.635, 0.819, 0.541],
        [0.631, 0.484, 0.849, 0.309],
    ]
)
Y = np.array(
    [
        [0.865, 0.4, 0.285, 0.519],
        [0.285, 0.044, 0.368, 0.183],
        [0.162, 0.017, 0.893, 0.357],
        [0.833, 0.28, 0.178, 0.962],
        [0.769, 0.112, 0.947, 0.022],
        [0.299, 0.042, 0.289, 0.013],
        [0.081, 0.697, 0.968, 0.904],
    ]
)


@pytest.fixture(scope="session")
def released(shared):
    """Normalised per-seed scores `[seeds, levels]` that the paper's authors released."""

    def read(name: str) -> np.ndarray:
        measure = presets.DOMAINS[name.split("/", maxsplit=1)[0]]().measure
        kind = {"solved_rate": "solved_rate:", "mean_return": "test_returns:"}[measure.column]
        with (shared / "data" / "paper_results" / FILES[name]).open() as file:
            rows = [row[1:] for row in csv.reader(file) if row[0].startswith(kind)]
        return measure.normalised(np.array(rows, float).T)

    return {name: read(name) for name in FILES}


RLIABLE = {  # IQM and its interval, optimality gap and its interval (20,000 resamples)
    "maze/accel": ((0.985333, 0.9403, 0.9983), (0.125333, 0.0773, 0.1798)),
    "maze/plr": ((0.798, 0.7107, 0.8603), (0.291333, 0.2258, 0.3580)),
    "maze/dr": ((0.684667, 0.5507, 0.7970), (0.379667, 0.3018, 0.4588)),
    "bipedal/accel": ((0.644124, 0.5941, 0.6918), (0.370317, 0.3360, 0.4053)),
    "bipedal/plr": ((0.240004, 0.2093, 0.2779), (0.658935, 0.6350, 0.6820)),
    "bipedal/dr": ((0.071566, 0.0581, 0.0866), (0.804680, 0.7884, 0.8216)),
}


@pytest.mark.parametrize("name", RLIABLE)
def test_aggregates_of_the_released_results_equal_rliable(released, name) -> None:
    for statistic, (value, low, high) in zip((iqm, optimality_gap), RLIABLE[name], strict=True):
        found = interval(statistic, released[name])
        assert found.value == pytest.approx(value, abs=1e-6)
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.006)


@pytest.mark.parametrize(
    ("env", "pairs"),
    [
        ("maze", {("accel", "plr"): 0.76, ("accel", "dr"): 0.723333, ("plr", "dr"): 0.551667, ("plr", "accel"): 0.24}),
        ("bipedal", {("accel", "plr"): 0.938333, ("accel", "dr"): 0.978333, ("plr", "accel"): 0.061667}),
    ],
)
def test_the_probability_of_improvement_equals_rliable(released, env, pairs) -> None:
    for (a, b), value in pairs.items():
        found = probability_of_improvement(released[f"{env}/{a}"], released[f"{env}/{b}"])
        assert found == pytest.approx(value, abs=1e-6)


def test_its_interval_equals_rliable(released) -> None:
    found = interval(probability_of_improvement, released["maze/accel"], released["maze/plr"])
    assert (found.low, found.high) == pytest.approx((0.6733, 0.845), abs=0.01)


def test_performance_profiles_equal_rliable(released) -> None:
    thresholds = np.array([0, 0.25, 0.5, 0.75, 0.9, 0.99])
    found = performance_profile(released["maze/accel"], thresholds)
    np.testing.assert_allclose(found, [0.983333, 0.966667, 0.916667, 0.783333, 0.733333, 0.6], atol=1e-6)
    low, high = bounds(lambda x: performance_profile(x, thresholds), released["maze/accel"])
    np.testing.assert_allclose(low, [0.95, 0.917, 0.85, 0.683, 0.65, 0.5], atol=0.02)
    np.testing.assert_allclose(high, [1.0, 1.0, 0.967, 0.867, 0.817, 0.7], atol=0.02)


def test_the_released_results_are_the_papers_columns(released) -> None:
    """DR and PLR to the printed precision, and the star of ACCEL over PLR."""
    for name, preset in (("maze/dr", "maze/dr"), ("maze/plr", "maze/robust-plr")):
        assert mean(released[name]) == pytest.approx(PUBLISHED[preset]["mean"].mean, abs=0.005)
    accel, plr, dr = (released[f"maze/{m}"].mean(axis=1) for m in ("accel", "plr", "dr"))
    assert improves(accel, plr)
    assert not improves(plr, dr)
    found = welch(accel, plr)
    assert found is not None
    assert (found.t, found.degrees, found.p) == pytest.approx((2.7659677932, 7.8542659368, 0.0248831208))


def test_fixed_cases_equal_rliable() -> None:
    assert iqm(X) == pytest.approx(0.6047)
    assert iqm(Y) == pytest.approx(0.36221429)
    assert optimality_gap(X) == pytest.approx(0.4187)
    assert optimality_gap(Y, 0.5) == pytest.approx(0.19939286)
    assert probability_of_improvement(X, Y) == pytest.approx(0.63571429)


def test_ties_count_one_half() -> None:
    x = np.array([[0, 0.5, 1], [0.5, 0.5, 1], [1, 0, 1]])
    y = np.array([[0, 0.5, 1], [0, 1, 0]])
    assert probability_of_improvement(x, y) == pytest.approx(0.58333333)
    assert iqm(x) == pytest.approx(0.7)


@given(arrays(float, (4, 3), elements=st.floats(0, 1)), arrays(float, (6, 3), elements=st.floats(0, 1)))
def test_what_must_hold_of_any_scores(x, y) -> None:
    one_way, other_way = probability_of_improvement(x, y), probability_of_improvement(y, x)
    assert one_way + other_way == pytest.approx(1)
    assert x.min() - 1e-9 <= iqm(x) <= x.max() + 1e-9
    assert optimality_gap(x) == pytest.approx(1 - mean(x))
    for statistic in (iqm, mean, optimality_gap):
        many = statistic(np.stack([x, x + 1]))
        np.testing.assert_allclose(many, [statistic(x), statistic(x + 1)])


def test_intervals_are_the_same_every_time_and_hold_the_estimate() -> None:
    assert interval(iqm, X) == interval(iqm, X)
    assert interval(iqm, X) != interval(iqm, X, seed=1)
    found = interval(iqm, X)
    assert found.low < found.value < found.high


def test_resampling_is_stratified() -> None:
    """Each task's scores stay that task's: what never varies within a task has no interval."""
    constant = np.tile([0.1, 0.5, 0.9], (5, 1))
    found = interval(mean, constant)
    assert found.low == found.high == pytest.approx(0.5)


def test_welch_equals_scipy() -> None:
    for x, y, expected in (
        (X[:, 0], Y[:, 0], (0.1740125505, 9.9932664463, 0.8653301707)),
        (X[:, 1], Y[:, 2], (-0.0731296952, 9.9990205350, 0.9431451245)),
    ):
        found = welch(x, y)
        assert found is not None
        assert (found.t, found.degrees, found.p) == pytest.approx(expected)


def test_welch_where_nothing_varies() -> None:
    assert welch([1.0, 1.0], [1.0]) is None
    assert improves([1.0, 1.0], [0.0, 0.0])
    assert not improves([0.0, 0.0], [1.0, 1.0])
    assert not improves([1.0, 1.0], [1.0, 1.0])


BOLD = {  # which of the six columns of its maze table the paper prints in bold
    "16rooms": "000011",
    "16rooms2": "000001",
    "simplecrossing": "000111",
    "fourrooms": "000010",
    "smallcorridor": "001001",
    "largecorridor": "000001",
    "labyrinth": "000010",
    "labyrinth2": "000011",
    "maze": "000111",
    "maze2": "000001",
    "maze3": "000010",
    "perfectmazem": "000011",
    "mean": "000011",
}


@pytest.mark.parametrize("level", BOLD)
def test_the_rule_for_bold_prints_the_papers_table(level) -> None:
    columns = [f"maze/{m}" for m in ("paired", "minimax", "dr", "robust-plr", "accel-dr", "accel")]
    found = within_one_error([PUBLISHED[c][level] for c in columns])
    assert found == [mark == "1" for mark in BOLD[level]]


def test_bold_without_numbers_and_with_a_single_seed() -> None:
    assert within_one_error([None, None]) == [False, False]
    assert within_one_error([None, Summary(0.5, math.nan), Summary(0.4, 0.2)]) == [False, True, False]


def test_cvar_is_the_mean_of_the_worst() -> None:
    scores = np.array([0.5, 0.0, 1.0, 0.1, 0.9, 0.8, 0.7, 0.6, 0.4, 0.3])
    assert cvar(scores, 0.2) == pytest.approx(0.05)
    assert cvar(scores, 0.001) == 0.0
    assert cvar(scores, 1.0) == pytest.approx(scores.mean())


def test_two_batches_make_cvar_unbiased() -> None:
    random = np.random.default_rng(0)
    selection, report = random.binomial(10, 0.5, (2, 20_000)) / 10  # every level is solved half of the time
    assert cvar(selection, 0.01) < 0.2
    assert unbiased_cvar(selection, report, 0.01) == pytest.approx(0.5, abs=0.05)
