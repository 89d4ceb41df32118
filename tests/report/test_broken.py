"""Runs with broken files: what is whole is reported, what is not is named, and nothing ends in a traceback."""

import json
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from report.made import RATES, UPDATES, write_results
from tutelage import cli
from tutelage.report.facts.comparison import gather
from tutelage.report.facts.levels import Findings
from tutelage.report.facts.runs import Missing, open_runs
from tutelage.report.pages import report as reports
from tutelage.report.pages.chapters import CHAPTERS
from tutelage.report.plots.figure import Data

TOKENS = ["[1]", "nan", "NaN", "1e999", "-1", "\ufeff", "\u2028", "\\ud800", "<script>", "q[/a]", "\0", "=1+1", "null"]
TOKENS += ["true", "{}", "[]", '""', '"', "\n", "\n\n", ",", "[" * 2000, "\x1b[31m", "x" * 3000]


@dataclass(frozen=True)
class Break:
    """Something that is done to a file."""

    kind: str
    at: float  # where in the file
    token: bytes

    def __call__(self, path: Path) -> None:
        old = path.read_bytes()
        n = round(self.at * len(old))
        if self.kind in ("gone", "folder"):
            path.unlink()
        if self.kind == "folder":
            path.mkdir()
        if self.kind == "cut":
            path.write_bytes(old[:n])
        if self.kind == "put in":
            path.write_bytes(old[:n] + self.token + old[n:])
        if self.kind == "put over":
            path.write_bytes(old[:n] + self.token + old[n + len(self.token) :])
        if self.kind == "all":
            path.write_bytes(self.token)


tokens = st.one_of(st.sampled_from([t.encode() for t in TOKENS]), st.binary(min_size=1, max_size=4))
kinds = st.sampled_from(["gone", "folder", "cut", "put in", "put over", "all"])
breaks = st.builds(Break, kinds, st.floats(0, 1), tokens)


@pytest.fixture(scope="module")
def whole(three_runs, tmp_path_factory) -> Path:
    """A run with every file that a run may have."""
    folder = tmp_path_factory.mktemp("whole") / "whole"
    shutil.copytree(three_runs["accel"].path, folder)
    past = [{"event": "begin", "time": "today", "device": "cpu"}, {"event": "end", "seconds": 3.5}]
    (folder / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in past))
    return folder


def files_of(run: Path) -> list[Path]:
    return sorted(p.relative_to(run) for p in run.rglob("*") if p.is_file())


def everything(runs: list[Path]) -> list[str]:
    """Finds out all that a report wants to know; gives the names of the runs that it is about."""
    found = gather(open_runs(runs)[0])
    for comparison in found.comparisons:
        for findings in map(Findings, comparison.groups):
            for ask in (lambda f: f.family, lambda f: f.concentrations, lambda f: f.composition("solvable", 2)):
                with suppress(Missing):
                    ask(findings)
    return [member.name for comparison in found.comparisons for member in comparison.members]


def often(times: int) -> settings:
    checks = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=times, deadline=None, suppress_health_check=checks, derandomize=True)


def break_one_of_two(whole, other, data) -> None:
    with tempfile.TemporaryDirectory() as folder:
        broken = Path(folder) / "broken"
        shutil.copytree(whole, broken)
        for file in data.draw(st.lists(st.sampled_from(files_of(whole)), min_size=1, max_size=3, unique=True)):
            data.draw(breaks)(broken / file)
        assert "dr" in everything([broken, other])


@often(20)
@given(data=st.data())
def test_whatever_is_broken_in_one_run_the_other_is_reported(whole, three_runs, data) -> None:
    break_one_of_two(whole, three_runs["dr"].path, data)


@pytest.mark.slow
@often(300)
@given(data=st.data())
def test_whatever_is_broken_in_many_ways_the_other_is_reported(whole, three_runs, data) -> None:
    break_one_of_two(whole, three_runs["dr"].path, data)


BROKEN = {
    "metrics.jsonl": [
        b"[1]\n",
        b"\xff\xfe",
        b'{"updates": 1e999, "seed": 0}\n',
        b'{"updates": "x", "seed": 0, "a": NaN}\n',
    ],
    f"evals/small-{UPDATES:08d}.csv": [
        b"level,seed,episodes,solved_rate,mean_return,mean_length\nx,0,1,nan,0,1\n",
        b"level,seed,episodes,solved_rate,mean_return,mean_length\nx,0,1,inf,0,1\n",
        b"\xff\n",
        b"level\nx\n",
    ],
}


@pytest.mark.parametrize(("file", "content"), [(f, c) for f, contents in BROKEN.items() for c in contents])
def test_what_is_broken_is_named_with_its_reason(whole, tmp_path, file, content) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(whole, broken)
    (broken / file).write_bytes(content)
    found = gather(open_runs([broken])[0])
    assert any(str(broken / file) in note and "left out" in note for note in found.notes), found.notes


def test_missing_metrics_are_named_and_nothing_is_said_of_learning(whole, tmp_path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(whole, broken)
    (broken / "metrics.jsonl").unlink()
    found = gather(open_runs([broken])[0])
    assert f"`{broken / 'metrics.jsonl'}` is missing: training writes metrics there" in " ".join(found.notes)
    assert found.comparisons[0].groups[0].rows == []


@often(4)
@given(data=st.data())
def test_the_command_ends_with_a_page_or_a_sentence(whole, three_runs, monkeypatch, data) -> None:
    """Figures and films are left out here: they are of what was found to be whole."""
    monkeypatch.setattr(reports, "CHAPTERS", [c for c in CHAPTERS if c[0] in ("Level by level", "How it was made")])
    with tempfile.TemporaryDirectory() as folder:
        broken, out = Path(folder) / "q[/a] <b>", Path(folder) / "out"
        shutil.copytree(whole, broken)
        data.draw(breaks)(broken / data.draw(st.sampled_from(files_of(whole))))
        assert cli.main(["report", str(broken), "--out", str(out)]) in (0, 2)
        assert cli.main(["report", str(broken), str(three_runs["dr"].path), "--out", str(out)]) == 0
        assert "q[/a] <b>" not in (out / "index.html").read_text("utf-8")


def test_a_level_may_have_any_name(three_runs, tmp_path) -> None:
    names = ["=1+1", "q[/a]", "<script>", "a\tb", "\x00", "x" * 5000, "-"]
    run = tmp_path / "run"
    shutil.copytree(three_runs["dr"].path, run)
    write_results(open_runs([run])[0][0], "small", RATES | dict.fromkeys(names, 0.5))
    (comparison,) = gather(open_runs([run])[0]).comparisons
    assert len(comparison.levels) == len(RATES) + len(names)
    assert all(name.isprintable() and len(name) <= 120 for name in comparison.levels)


def test_no_cell_of_a_table_is_a_formula() -> None:
    text = Data(("level", "x"), [["=1+1", -1.5], ["@a", 2], ["+b", 3], ["-c", 4], ["d", 5]]).csv()
    assert [line.split(",")[0] for line in text.splitlines()] == ["level", "'=1+1", "'@a", "'+b", "'-c", "d"]
    assert "-1.5" in text, "numbers are left as they are"
