"""The long trial, made short: runs that were harmed and random command lines end with 0 or 2, and nothing is lost."""

import contextlib
import tempfile
from pathlib import Path

import pytest

from soak.__main__ import ENVS, Trial
from soak.harm import COMMANDS


@pytest.fixture(scope="module")
def trial():
    with tempfile.TemporaryDirectory() as home, contextlib.chdir(Path.cwd()):  # where the tests were, they are again
        Path(home).chmod(0o755)  # other users may look into it, as which some commands are called
        commands = [c for c in COMMANDS if c != "suite"]  # whose programs take long to compile
        yield Trial("small", Path(home), envs={"maze": 1}, commands=commands)


def test_whatever_befalls_a_run_is_said_and_costs_nothing_else(trial):
    for n in range(10):
        trial.harm(n)
    assert not trial.tally.faults
    assert trial.tally.counts["exit code 0"] > 10
    assert trial.tally.counts["exit code 2"] > 3


def test_whatever_is_typed_is_done_or_refused_in_a_sentence(trial):
    for n in range(16):
        trial.say(n)
    assert not trial.tally.faults


@pytest.mark.slow
def test_of_every_env(trial):
    trial.envs, trial.commands = ENVS, COMMANDS
    for n in range(100, 200):
        trial.harm(n)
        trial.say(n)
    assert not trial.tally.faults
