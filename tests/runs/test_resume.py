"""A run killed at any moment and resumed ends as if it had never been killed."""

import dataclasses
import errno
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import tutelage as tut
from toys import jumper
from tutelage.errors import UserError
from tutelage.runs import checkpoint, history, lock
from tutelage.runs.signals import Interrupted

UPDATES = 40
KILLS = 6

# Trains or resumes in a process of its own for each line that it reads, before JAX has begun anything in this one; a
# thread pulls the plug a random while after training has begun.
NURSERY = """
import json, os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from toys import jumper
import tutelage as tut
from tutelage.runs import train

config = jumper(updates=int(sys.argv[2]), log_every=2, checkpoint_every=3)

def work(path, delay):
    def pull_the_plug():
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)

    calls = []
    def on_progress(p):
        calls.append(p)
        if delay >= 0 and len(calls) == 2:  # the first comes before anything is compiled
            threading.Thread(target=pull_the_plug, daemon=True).start()

    train.train(config, path, resume=True, on_progress=on_progress)

for line in sys.stdin:
    path, delay = json.loads(line)
    if (process := os.fork()) == 0:
        work(Path(path), delay)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@pytest.fixture
def run_child() -> Iterator[Callable[[Path, float], int]]:
    """Trains until it ends, or until so many seconds after it has begun; the exit code."""
    tests = str(Path(__file__).resolve().parents[1])
    words = [sys.executable, "-c", NURSERY, tests, str(UPDATES)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        assert nursery.stdin
        assert nursery.stdout

        def run(path: Path, delay: float) -> int:
            nursery.stdin.write(json.dumps([str(path), delay]) + "\n")
            nursery.stdin.flush()
            return int(nursery.stdout.readline())

        yield run
        nursery.stdin.close()


def contents(path: Path) -> dict[str, object]:
    """All that must be the same: the last checkpoint, every admitted level, the metrics but for speed."""
    found: dict[str, object] = {"checkpoint": checkpoint.path_of(path / "checkpoints", UPDATES).read_bytes()}
    levels = tut.Run(path, jumper().env).levels()
    for name in ("seed", "id", "parent", "generation", "birth", "score"):
        found[name] = getattr(levels, name).tobytes()
    rows = tut.Run(path, jumper().env).metrics()
    found["metrics"] = [{k: v for k, v in row.items() if k != "steps_per_second"} for row in rows]
    return found


def test_a_run_killed_again_and_again_ends_bit_identical(tmp_path, run_child):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run_child(whole, -1) == 0
    rng = random.Random(0)
    kills = 0
    while kills < KILLS:
        code = run_child(broken, rng.choice([0.0, 0.02, 0.05, 0.1, 0.2]) * rng.random())
        if code == 0:  # it was faster than the plug: begin another one, so that each kill is a kill
            assert contents(broken) == contents(whole)
            broken = tmp_path / f"broken-{kills}"
            continue
        assert code == -signal.SIGKILL
        kills += 1
    assert run_child(broken, -1) == 0
    assert contents(broken) == contents(whole)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "finished"
    return tut.train(jumper(updates=10), path)


def test_resuming_a_finished_run_changes_nothing(finished):
    before = {p: p.read_bytes() for p in finished.path.rglob("*.safetensors")}
    tut.resume(finished.path, domain=finished.config.env)
    assert {p: p.read_bytes() for p in finished.path.rglob("*.safetensors")} == before


def test_a_damaged_newest_checkpoint_costs_only_the_stretch_since_the_one_before(tmp_path, finished):
    path = tmp_path / "copy"
    shutil.copytree(finished.path, path)
    newest = checkpoint.path_of(path / "checkpoints", 10)
    good = newest.read_bytes()
    newest.write_bytes(good[:1000])
    said = []
    tut.resume(path, domain=finished.config.env, warn=said.append)
    assert "Checkpoint 10 is passed over" in said[0]
    assert newest.read_bytes() == good, "what was trained again is what was lost"
    assert (path / "checkpoints" / "00000010.damaged").exists(), "nothing is thrown away"


def test_a_run_of_which_only_the_newest_checkpoint_was_kept_goes_on(tmp_path, finished):
    """As one that was handed on without its archive of levels, and without folders that had nothing in them."""
    (tmp_path / "checkpoints").mkdir()
    newest = checkpoint.available(finished.path / "checkpoints")[-2]
    kept = ["config.json", checkpoint.path_of(Path("checkpoints"), newest)]
    for name in kept:
        shutil.copy(finished.path / name, tmp_path / name)
    run = tut.resume(tmp_path, domain=finished.domain)
    assert run.checkpoints[-1] == finished.checkpoints[-1]
    last = [checkpoint.path_of(r.path / "checkpoints", r.checkpoints[-1]).read_bytes() for r in (run, finished)]
    assert last[0] == last[1]


def test_a_second_process_is_kept_out(finished):
    with (finished.path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="Another process is training"):
            tut.resume(finished.path, domain=finished.config.env)


class Msvcrt:
    """Windows' way of locking, as far as it is used: a byte of an open file, refused if another holds it."""

    LK_NBLCK = 2

    @staticmethod
    def locking(file: int, mode: int, count: int) -> None:
        assert (mode, count) == (Msvcrt.LK_NBLCK, 1)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None


def test_a_second_process_is_kept_out_on_windows_too(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt)
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as where there is none
    with lock.Lock(tmp_path):
        assert lock.is_held(tmp_path)
        with pytest.raises(lock.Occupied, match="Another process is training"), lock.Lock(tmp_path):
            pass
    assert not lock.is_held(tmp_path)
    with lock.Lock(tmp_path):
        pass


def test_nothing_of_the_library_needs_what_windows_has_not():
    """`fcntl`, `resource` and the like are imported where they are used, and used where they are there."""
    unix = re.compile(r"^(import|from) (fcntl|resource|termios|pwd|grp|pty)\b", re.MULTILINE)
    sources = Path(tut.__file__).parent.rglob("*.py")
    assert not [path for path in sources if unix.search(path.read_text())]


# Signals


@pytest.fixture
def heard():
    """SIGINT is heard even where whoever started the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2"])
def test_a_signal_ends_at_the_next_checkpoint(tmp_path, finished, name):
    """The sentence names the command that goes on with the run, which ends as if nothing had happened."""
    number, sent = getattr(signal, name), []

    def on_progress(p):
        if p.updates == 3 and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    config = dataclasses.replace(finished.config, log_every=3)
    with pytest.raises(Interrupted) as stop:
        tut.train(config, tmp_path / "run", on_progress=on_progress)
    assert stop.value.number == number
    assert stop.value.updates == 3
    assert str(stop.value) == (
        f"{tmp_path / 'run'} stopped at 3 of 10 student updates: `tutelage resume {tmp_path / 'run'}` goes on with it."
    )
    assert signal.getsignal(number) == before, "what was there before is there again"
    assert tut.Run(tmp_path / "run", config.env).checkpoints[-1] == 3
    assert [line["event"] for line in history.read(tmp_path / "run")] == ["begin", "stop"]


@pytest.mark.usefixtures("heard")
def test_a_second_ctrl_c_ends_at_once(tmp_path, finished):
    def on_progress(p):
        if p.updates == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("it went on")

    config = dataclasses.replace(finished.config, log_every=2)
    with pytest.raises(KeyboardInterrupt) as stop:
        tut.train(config, tmp_path / "run", on_progress=on_progress)
    assert not isinstance(stop.value, Interrupted)
    assert tut.Run(tmp_path / "run", config.env).checkpoints == [0]


# Longer runs, and the circumstances


def test_a_run_that_is_extended_is_one_that_was_straight(tmp_path, finished):
    short = dataclasses.replace(finished.config, updates=5)
    tut.train(short, tmp_path / "run")
    said = []
    run = tut.resume(tmp_path / "run", domain=short.env, updates=10, warn=said.append)
    assert said == []
    assert run.config == finished.config, "the config says how long it is"
    for kind in ("checkpoints", "levels"):
        newest = sorted((run.path / kind).iterdir())[-1].name
        assert (run.path / kind / newest).read_bytes() == (finished.path / kind / newest).read_bytes()
    with pytest.raises(UserError, match="has done 10 student updates already"):
        tut.resume(run.path, domain=short.env, updates=7)


def test_other_circumstances_are_said_once(tmp_path, finished, monkeypatch):
    path = tmp_path / "copy"
    shutil.copytree(finished.path, path)
    said = []
    monkeypatch.setattr(history, "_threads", lambda: 99)
    tut.resume(path, domain=finished.config.env, updates=12, warn=said.append)
    (sentence,) = said
    assert re.search(r"Not bit-identical .*: threads \d+ → 99\.", sentence)
    tut.resume(path, domain=finished.config.env, updates=14, warn=said.append)
    assert len(said) == 1


def test_a_used_directory_is_not_overwritten(finished):
    before = sorted(finished.path.rglob("*"))
    with pytest.raises(UserError, match="already in use: go on with `tutelage resume"):
        tut.train(jumper(), finished.path)
    assert sorted(finished.path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot be made a run directory"):
        tut.train(jumper(), tmp_path / "run")


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "run").write_text("hello")
    with pytest.raises(UserError, match="cannot be made a run directory"):
        tut.train(jumper(), tmp_path / "run")
    assert (tmp_path / "run").read_text() == "hello"
