"""What is said while a run trains: what begins, that it compiles, how long it will take, and the end."""

from pathlib import Path

import pytest

from toys import tiny_maze
from tutelage.commands import training
from tutelage.commands.training import DAY, Watch
from tutelage.console import Terminal, roughly
from tutelage.errors import UserError
from tutelage.runs.trainer import Progress

CONFIG = tiny_maze(updates=100)
ROLLOUT = CONFIG.slots * CONFIG.steps


def stand(updates=0, left=None, speed=0.0) -> Progress:
    return Progress(updates, CONFIG.updates, updates * ROLLOUT, speed, 0.5, {"buffer/blocks": 2.0}, left)


def follow(*stands: Progress, asks: bool = True) -> None:
    with Watch(CONFIG, Path("runs/x"), asks=asks) as watch:
        for p in stands:
            watch(p)


@pytest.fixture(autouse=True)
def one_clock(monkeypatch):
    """Half a second from each look at it to the next."""
    now = iter(range(10_000))
    for module in ("tutelage.console", "tutelage.commands.training"):
        monkeypatch.setattr(f"{module}.time.monotonic", lambda: next(now) / 2)


def test_where_there_is_no_terminal_each_thing_is_said_once(capsys):
    follow(stand(), stand(10, 90.0, 50.0), stand(20, 80.0, 50.0), stand(100, 0.0, 50.0), stand(100, 0.0, 50.0))
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("accel on maze, 1 seed → runs/x, on cpu, JAX ")
    assert [line.split(" · ")[0] for line in lines] == [
        "compiling …",
        "This will take about 2 minutes on this machine.",
        "10/100 updates",
        "100/100 updates",
        "Done in 0:02. Evaluate with `tutelage eval runs/x`.",
    ]


def test_nothing_is_said_of_a_training_that_was_refused(capsys):
    def refuse() -> None:
        raise UserError("No.")

    with pytest.raises(UserError), Watch(CONFIG, Path("runs/x")):
        refuse()
    follow()
    assert capsys.readouterr().out == ""


LONG = {
    "by its rate": stand(10, 3 * DAY, 50.0),
    "by its rollouts, before the first update": stand(0, None, 100 * ROLLOUT / (3 * DAY)),
}


@pytest.mark.parametrize("case", LONG)
def test_more_than_a_day_wants_a_yes(case):
    with pytest.raises(UserError, match=r"take about 3 days .* `tutelage resume runs/x` goes on .* --yes"):
        follow(stand(), LONG[case])
    follow(stand(), LONG[case], stand(100, 0.0, 50.0), asks=False)


def test_it_is_asked_on_a_terminal(monkeypatch):
    answers, asked = iter(["y", "n", ""]), []
    monkeypatch.setattr(Terminal, "is_terminal", True)
    monkeypatch.setattr(training.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(Terminal, "input", lambda self, text: asked.append(text) or next(answers))
    long = LONG["by its rate"]
    follow(stand(), long, long, stand(100, 0.0, 50.0))
    assert asked == ["This will take about 3 days on this machine. Go on? [y/N] "]
    for _ in ("n", ""):
        with pytest.raises(UserError, match="goes on with it"):
            follow(stand(), long)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (20, "less than a minute"),
        (70, "about 1 minute"),
        (20 * 60, "about 20 minutes"),
        (5 * 3600, "about 5 hours"),
        (40 * 3600, "about 2 days"),
        (30 * DAY, "about 30 days"),
    ],
)
def test_durations_are_rough(seconds, text):
    assert roughly(seconds) == text
