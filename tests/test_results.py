"""The tables in results/ say what the files there do."""

import sys

import numpy as np
import pytest

from compiling import ROOT

RESULTS = ROOT / "results"
PAGES = sorted(RESULTS.glob("*.md"))

pytestmark = pytest.mark.skipif(not (RESULTS / "runs").is_dir(), reason="the source archive has no runs")


@pytest.fixture(scope="module")
def results():
    sys.path.insert(0, str(ROOT / "bench"))
    import results

    yield results
    sys.path.remove(str(ROOT / "bench"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_hold_the_tables_that_the_files_make(results, path):
    page = path.read_text()
    assert results.renewed(page, None) == page, "`make results` writes them anew"


def test_a_table_is_made_of_the_scores_of_all_seeds(results):
    scores = results.ACCEL.scores(results.PAPER)
    assert len(scores) >= 5
    assert f"| {scores[:, 0].mean():.2f} ± " in results.levels_table([results.ACCEL], results.PAPER).replace("**", "")


def test_welch_from_errors_is_welch_from_samples(results):
    from scipy.stats import ttest_ind

    ours, theirs = np.array([0.5, 0.6, 0.9, 0.7]), np.array([0.8, 0.95, 1.0, 0.9, 0.7])
    said = results.against(results.Summary.of(ours.tolist()), 4, results.Summary.of(theirs.tolist()))
    assert said == f"−{theirs.mean() - ours.mean():.2f}, p = {ttest_ind(ours, theirs, equal_var=False).pvalue:.2f}"


def test_released_seeds_are_those_of_the_paper(results, shared):
    released = results.released(shared / "data" / "paper_results", results.ACCEL)
    assert released.shape == (5, 12)
    assert released[:, 0].tolist() == [1.0] * 5


def test_one_difference_alone_is_pooled_to_its_own_test(results):
    random = np.random.default_rng(0)
    pair = results.Pair("one", random.uniform(size=(5, 3)), random.uniform(size=(5, 3)))
    alone = results.order_table([pair]).splitlines()[2].split(" | ")
    assert results.pooled_row("one", [pair]).split(" | ")[:3] == alone[:3]
