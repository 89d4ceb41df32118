"""Where metrics go besides the run directory."""

import json
import sys
from types import SimpleNamespace

import pytest

import tutelage as tut
from toys import jumper
from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs.metrics import Track, open_sinks

ROWS = [{"updates": 3, "seed": s, "replay/solved": 0.5, "replay/return": None} for s in (0, 1)]


@pytest.fixture
def wandb(monkeypatch):
    """Weights & Biases, as far as it is used: it writes down what it is told."""
    told = []

    def init(**settings):
        told.append(settings)
        return SimpleNamespace(log=lambda numbers, step: told.append((step, numbers)), finish=lambda: None)

    fake = SimpleNamespace(init=init, told=told, errors=SimpleNamespace(Error=RuntimeError))
    monkeypatch.setitem(sys.modules, "wandb", fake)
    for name in ("WANDB_PROJECT", "WANDB_NAME"):
        monkeypatch.delenv(name, raising=False)
    return fake


def begin(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    *_, sink = open_sinks(folder, Track("wandb", *names), {"updates": 7})
    return sink


def test_runs_of_one_name_are_two_and_a_resumed_one_is_itself(wandb, tmp_path):
    for folder in ("a/run", "b/run", "a/run"):
        begin(tmp_path / folder)
    ids = [settings["id"] for settings in wandb.told]
    assert ids[0] == ids[2] != ids[1]
    assert {settings["name"] for settings in wandb.told} == {"run"}
    assert all(settings["resume"] == "allow" for settings in wandb.told)


def test_it_is_called_what_one_says(wandb, tmp_path, monkeypatch):
    begin(tmp_path / "run")
    begin(tmp_path / "run", "mazes", "us", "accel", "first")
    monkeypatch.setenv("WANDB_PROJECT", "theirs")
    begin(tmp_path / "run")
    said = [[settings[k] for k in ("project", "entity", "group", "name")] for settings in wandb.told]
    assert said == [["tutelage", None, None, "run"], ["mazes", "us", "accel", "first"], ["theirs", None, None, "run"]]
    assert wandb.told[0]["config"] == {"updates": 7}


def test_numbers_of_each_seed_arrive(wandb, tmp_path):
    begin(tmp_path / "run").write(ROWS)
    assert wandb.told[-1] == (3, {"replay/solved/seed0": 0.5, "replay/solved/seed1": 0.5})


def test_a_config_that_knew_only_where_is_read():
    data = configs.to_json(jumper(track=Track("tensorboard")), "accel")
    assert data["track"] == {"to": "tensorboard", "project": "", "entity": "", "group": "", "name": ""}
    data["track"] = "tensorboard"
    config = configs.from_json(json.loads(json.dumps(data)), presets.DOMAINS, presets.METHODS, jumper().env)
    assert config.track == Track("tensorboard")


def test_names_are_for_weights_and_biases():
    with pytest.raises(ValueError, match="`group` goes with wandb alone"):
        tut.Track("tensorboard", group="x")


def shown_by_tensorboard(folder) -> list[tuple[str, int]]:
    """Name and student update of every point, as TensorBoard shows them: a session hides what was after its start."""
    from tensorboardX.proto import event_pb2

    shown: list[tuple[str, int]] = []
    for path in sorted(folder.glob("events*"), key=lambda path: path.stat().st_mtime_ns):
        data = path.read_bytes()
        while data:  # a length, its checksum, an event, its checksum
            size = int.from_bytes(data[:8], "little")
            event = event_pb2.Event.FromString(data[12 : 12 + size])
            data = data[12 + size + 4 :]
            if event.session_log.status == event_pb2.SessionLog.START:
                shown = [(name, step) for name, step in shown if step < event.step]
            shown += [(value.tag, event.step) for value in event.summary.value]
    return shown


def test_a_resumed_run_has_every_point_once(tmp_path):
    """It had logged some updates beyond its checkpoint, or before it had any, when it was killed."""
    pytest.importorskip("tensorboardX")
    for since, rows in ((0, range(1, 3)), (0, range(1, 6)), (3, range(4, 8)), (7, range(8, 9))):
        *_, sink = open_sinks(tmp_path, Track("tensorboard"), {}, since)
        for updates in rows:
            sink.write([{"updates": updates, "seed": 0, "replay/solved": updates / 10}])
        sink.close()
    assert shown_by_tensorboard(tmp_path / "tensorboard") == [("replay/solved/seed0", n) for n in range(1, 9)]
