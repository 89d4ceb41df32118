import dataclasses

import numpy as np
import pytest

from tutelage.report.facts.ancestry import Pedigree, Tree, concentration, largest_family
from tutelage.report.facts.comparison import gather
from tutelage.report.facts.levels import Findings, landmarks
from tutelage.runs.archive import Admitted

#        0 ─ 1 ─ 2 ─ 4
#            │   └─ 5 ─ 8
#            └─ 3 ─ 6
#               └─ 7            and 9 alone, and 10 ─ 11
PARENTS = [-1, 0, 1, 1, 2, 2, 3, 3, 5, -1, -1, 10]
GENERATIONS = [0, 1, 2, 2, 3, 3, 3, 3, 4, 0, 0, 1]


@pytest.fixture
def pedigree() -> Pedigree:
    """Ids are ten times the number, and another seed's levels stand in between."""
    n = len(PARENTS)
    ids = 10 * np.arange(n)
    parents = np.where(np.array(PARENTS) < 0, -1, 10 * np.array(PARENTS))
    both = [np.repeat(x, 2).astype(np.int32) for x in (ids, parents, np.array(GENERATIONS), np.arange(n))]
    seeds = np.tile(np.array([3, 4], np.int32), n)
    return Pedigree(Admitted({"x": np.repeat(np.arange(n), 2)}, *both, np.repeat(np.linspace(0, 1, n), 2), seeds), 3)


def test_roots_and_lines(pedigree) -> None:
    assert pedigree.root.tolist() == [0] * 9 + [9, 10, 10]
    assert pedigree.line(8) == [0, 1, 2, 5, 8]
    assert pedigree.line(9) == [9]
    assert pedigree.numbers([80, 15, 9999, -1, 0]).tolist() == [8, 0]


def test_concentration_is_the_share_of_the_most_fertile(pedigree) -> None:
    everything = 10 * np.arange(12)
    assert concentration(pedigree, everything, ancestors=1) == pytest.approx(9 / 12)
    assert concentration(pedigree, everything, ancestors=2) == pytest.approx(11 / 12)
    assert concentration(pedigree, everything) == 1.0
    assert np.isnan(concentration(pedigree, np.array([5])))


def test_the_largest_family(pedigree) -> None:
    tree = largest_family(pedigree, 10 * np.array([11, 8, 4, 6, 9]))
    assert tree is not None
    assert tree.leaves == (8, 4, 6)
    assert tree.deepest == 8
    assert largest_family(pedigree, np.array([0, 90])) is None, "levels of the generator have no family"
    assert largest_family(pedigree, 10 * np.array([8, 4, 6, 7]), most=2).leaves == (8, 4)


def test_a_tree_is_laid_out_without_crossings(pedigree) -> None:
    tree = Tree(pedigree, (8, 4, 6, 7))
    assert tree.children == {0: [1], 1: [2, 3], 2: [5, 4], 5: [8], 3: [6, 7]}
    rows = tree.rows()
    assert sorted(rows) == list(range(9))
    assert sorted(rows[leaf] for leaf in tree.leaves) == [0, 1, 2, 3]
    assert rows[1] == (rows[2] + rows[3]) / 2
    assert max(rows[6], rows[7]) < min(rows[4], rows[8]) or max(rows[4], rows[8]) < min(rows[6], rows[7])


def test_a_tree_is_laid_out_whatever_generations_a_damaged_file_gives(pedigree) -> None:
    wrong = dataclasses.replace(pedigree.admitted, generation=pedigree.admitted.generation[::-1])
    assert Tree(Pedigree(wrong, 3), (8, 4, 6, 7)).rows() == Tree(pedigree, (8, 4, 6, 7)).rows()


def test_an_inner_level_may_be_a_leaf_too(pedigree) -> None:
    rows = Tree(pedigree, (8, 2, 6)).rows()
    assert rows[2] == rows[5] == rows[8]


def test_siblings_come_from_different_branches(pedigree) -> None:
    tree = Tree(pedigree, (4, 8, 6, 7))
    assert tree.siblings(2) == (1, [8, 6])
    assert tree.siblings(3) is None


def test_the_best_levels_are_those_of_highest_score(three_runs) -> None:
    """Each seed's own, though another seed's may score higher."""
    found = Findings(gather([three_runs["accel"]]).comparisons[0].groups[0]).best
    assert [x.seed for _, x in found] == [0, 1]
    for _, x in found:
        assert len(x) == 20
        assert x.record.id[:3].tolist() == [19, 18, 17]
        assert x.found(0).score == pytest.approx(0.19)
        assert set(x.metrics) == {"blocks", "path_length", "solvable"}
        assert [f.id for f in x.first(2)] == [19, 18]


def test_landmarks_are_trained_students(three_runs) -> None:
    member = gather([three_runs["accel"]]).comparisons[0].groups[0].members[0]
    assert landmarks(member) == [3, 6]
    assert landmarks(member, 1) == [3]
