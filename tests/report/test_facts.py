import shutil
from pathlib import Path

import pytest

from report.made import RATES, UPDATES, write_config, write_results, write_run
from toys import tiny_maze
from tutelage.report.facts.comparison import covering, gather, most_played
from tutelage.report.facts.runs import Evaluation, open_runs, short_names
from tutelage.runs.evaluate import Result


def test_runs_are_grouped_by_method(three_runs) -> None:
    (comparison,) = gather(list(three_runs.values())).comparisons
    assert [g.label for g in comparison.groups] == ["ACCEL", "DR", "Robust PLR"]
    assert [g.method for g in comparison.groups] == ["accel", "dr", "robust-plr"]
    assert (comparison.env, comparison.suite) == ("maze", "small")
    assert comparison.levels == comparison.common == tuple(RATES)
    assert comparison.groups[0].scores(comparison.measure.of, ["Spiral"]).tolist() == [[0.2], [0.3]]


def test_runs_of_the_same_settings_pool_their_seeds(three_runs, tmp_path) -> None:
    more = write_run(tiny_maze(seeds=3, seed=1, log_every=3), tmp_path / "more")
    write_results(more, "small", RATES)
    found = gather([three_runs["accel"], more])
    (group,) = found.comparisons[0].groups
    assert [m.seeds for m in group.members] == [(0, 1), (2, 3)]
    assert group.seeds == 4
    assert len(group.scores(found.comparisons[0].measure.of, ["Spiral"])) == 4
    assert any("Seed 1 of more would count twice: accel has the same settings" in note for note in found.notes)


def test_what_two_groups_of_one_method_differ_in_is_in_their_labels(three_runs, tmp_path) -> None:
    config = tiny_maze(seeds=2)
    other = write_run(tiny_maze(type(config.method)(config.method.buffer, edits=7), seeds=2), tmp_path / "other")
    (comparison,) = gather([three_runs["accel"], other]).comparisons
    assert [g.label for g in comparison.groups] == ["ACCEL (edits 2)", "ACCEL (edits 7)"]
    assert [g.slug for g in comparison.groups] == ["accel-edits-2", "accel-edits-7"]


def test_labels_name_as_many_settings_as_it_takes(tmp_path) -> None:
    changes = [dict(slots=8), dict(slots=16, steps=32, updates=9), dict(slots=16, steps=32, updates=8)]
    runs = [write_config(tiny_maze(**c), tmp_path / str(n)) for n, c in enumerate(changes)]
    (comparison,) = gather(runs).comparisons
    assert [g.label for g in comparison.groups] == [
        "ACCEL (slots 8, steps 24, updates 6)",
        "ACCEL (slots 16, steps 32, updates 9)",
        "ACCEL (slots 16, steps 32, updates 8)",
    ]


def test_a_directory_that_is_no_run_is_said(three_runs, tmp_path) -> None:
    (tmp_path / "config.json").write_text("{")
    path = three_runs["dr"].path
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    none = [tmp_path / "nowhere", tmp_path, tmp_path / "loop", Path("\ud800")]
    runs, notes = open_runs([path, *none, path / ".." / "dr"])
    assert [run.path for run in runs] == [path / ".." / "dr"]
    assert "nowhere is not a run" in notes[0]
    assert "cannot be read as a run configuration" in notes[1]
    assert all("is not a run" in note for note in notes[2:])
    assert len(notes) == len(none)


def test_what_is_amiss_is_said_in_a_sentence(three_runs, tmp_path) -> None:
    alone = write_run(tiny_maze(seeds=1, updates=50), tmp_path / "alone")
    (alone.path / "evals").mkdir()
    (alone.path / "evals" / f"small-{UPDATES:08d}.csv").write_text("level,seed\nx,many\n")
    (alone.path / "evals" / f"small-{UPDATES:08d}-greedy.csv").write_text("")
    notes = " ".join(gather([*three_runs.values(), alone]).notes)
    for sentence in (
        "cannot be read as an evaluation and is left out (invalid literal for int() with base 10: 'many').",
        "alone was not evaluated on the suite small: `tutelage eval",
        "unequal numbers of seeds (ACCEL (updates 6) 2, DR 2, Robust PLR 2 and ACCEL (updates 50) 1)",
    ):
        assert sentence in notes
    assert "unfinished" not in notes


def test_an_unfinished_run_is_said(three_runs, tmp_path) -> None:
    folder = tmp_path / "half"
    shutil.copytree(three_runs["dr"].path, folder)
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"updates": 6,', '"updates": 1000,'))
    runs, _ = open_runs([folder])
    assert "half is unfinished, at 50 of 1,000 student updates: what there is of it is reported." in gather(runs).notes


def test_levels_that_not_all_played_are_left_out_of_aggregates(three_runs, tmp_path) -> None:
    less = write_run(tiny_maze(seeds=2, updates=7), tmp_path / "less")
    write_results(less, "small", {"Spiral": 0.5})
    found = gather([three_runs["dr"], less])
    assert found.comparisons[0].common == ("Spiral",)
    assert any("Only 1 of 3 levels of maze were played by every seed" in note for note in found.notes)


def evaluation(suite: str, *levels: str, updates: int = 1) -> Evaluation:
    return Evaluation(suite, updates, tuple(Result(name, 0, 1, 0.0, 0.0, 1.0) for name in levels))


SUITES = {"all": ["a", "b", "c"], "two": ["a", "b"]}


def test_a_larger_suite_serves_for_a_smaller_one() -> None:
    found = covering([evaluation("all", "c", "b", "a")], "two", SUITES["two"])
    assert found is not None
    assert [r.level for r in found.results] == ["a", "b"]
    assert covering([evaluation("two", "a", "b")], "all", SUITES["all"]) is None
    assert covering([], None, []) is None


def test_the_suite_is_the_one_that_most_runs_played() -> None:
    whole, part = [evaluation("all", "a", "b", "c")], [evaluation("two", "a", "b")]
    assert most_played([whole, whole], SUITES) == "all"
    assert most_played([whole, part], SUITES) == "two"
    assert most_played([[evaluation("mine", "x")]], SUITES) == "mine"
    assert most_played([[]], SUITES) is None


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a/run", "/a/other"], ["run", "other"]),
        (["/a/run", "/b/run"], ["a/run", "b/run"]),
        (["/run"], ["run"]),
    ],
)
def test_runs_are_called_by_as_little_of_their_path_as_tells_them_apart(paths, names) -> None:
    assert short_names([Path(p) for p in paths]) == names
