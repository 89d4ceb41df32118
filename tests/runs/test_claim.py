"""Two processes that begin in one directory at one moment: one wins, its config is there, the other says so."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tutelage.errors import UserError
from tutelage.runs import claim

RACER = Path(__file__).with_name("racer.py")
STAGGER = {"hasty": 1e-3, "patient": 0.05}  # seconds by which one may come later: longer than a beginning takes
SAID = ("Another process is training in", "is already in use: go on with")


@contextmanager
def racers(manner: str) -> Iterator[list[subprocess.Popen]]:
    """Two processes, called by what they write as their config."""
    words = [sys.executable, str(RACER)]
    started = [
        subprocess.Popen([*words, name, manner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        for name in ("one", "two")
    ]
    try:
        yield started
    finally:
        for process in started:
            process.communicate()


def race(both: list[subprocess.Popen], path: Path, delays: list[float], *, holds: bool) -> tuple[str, str]:
    """Who won, and what the other said. The winner `holds` the run, or is done with it at once."""
    for process, delay in zip(both, delays, strict=True):
        process.stdin.write(json.dumps([str(path), delay, holds]) + "\n")
    answers = {process.args[2]: json.loads(process.stdout.readline()) for process in both}
    (winner,) = [name for name, answer in answers.items() if answer == "won"]
    assert (path / "config.json").read_text() == winner
    assert sorted(p.name for p in path.iterdir()) == sorted([".lock", "config.json", *claim.FOLDERS])
    for process in both:
        process.stdin.write("\n")
    (said,) = [answer for name, answer in answers.items() if name != winner]
    return winner, said


def check(folder: Path, manner: str, count: int) -> None:
    rng, wins = Random(0), Counter()
    with racers(manner) as both:
        for n in range(count):
            late = rng.choice([0.0, STAGGER[manner] * rng.random()])
            winner, said = race(both, folder / "run", [late, 0.0] if n % 2 else [0.0, late], holds=n % 3 > 0)
            wins[winner] += 1
            assert any(known in said for known in SAID)
            assert n % 3 == 0 or SAID[0] in said, "the winner still held it"
            shutil.rmtree(folder / "run")
    assert len(wins) == 2, "each of them wins sometimes"


def test_two_starts_at_one_moment(tmp_path):
    check(tmp_path, "hasty", 300)


@pytest.mark.slow
@pytest.mark.parametrize("manner", ["hasty", "patient"])
def test_two_starts_at_one_moment_two_thousand_times(tmp_path, manner):
    check(tmp_path, manner, 2000)


def test_a_start_that_comes_later_says_what_can_be_done(tmp_path):
    with claim.claimed(tmp_path / "run", b"{}"):
        pass
    with pytest.raises(UserError, match=r"is already in use: go on with `tutelage resume .*run`, or choose another"):
        claim.check_free(tmp_path / "run")
    with pytest.raises(UserError, match=SAID[1]), claim.claimed(tmp_path / "run", b"other"):
        pass
    assert (tmp_path / "run" / "config.json").read_bytes() == b"{}"
