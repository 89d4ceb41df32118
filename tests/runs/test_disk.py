"""Whatever a disk does wrong, and whenever: the run goes on from what there is, and ends bit-identical."""

import contextlib
import errno
import os
import shutil

import pytest

import tutelage as tut
from runs.disks import FaultyDisk, PowerCut, Unreadable, Watched
from toys import jumper
from tutelage.runs import checkpoint, standing, storage

UPDATES = 2
WAYS = (errno.ENOSPC, "short", "lost", errno.EIO, "kept", errno.EACCES, errno.EDQUOT, errno.EROFS)


def config() -> tut.Config:
    return jumper(updates=UPDATES, log_every=1, checkpoint_every=1)


def contents(path) -> dict[str, object]:
    """All that must be the same whatever happened."""
    run = tut.Run(path, jumper().env)
    levels = run.levels()
    facts = {name: getattr(levels, name).tobytes() for name in ("seed", "id", "parent", "score")}
    rows = [{k: v for k, v in row.items() if k != "steps_per_second"} for row in run.metrics()]
    names = sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.suffix == ".safetensors")
    return {
        "last": checkpoint.path_of(path / "checkpoints", UPDATES).read_bytes(),
        "rows": rows,
        "names": names,
    } | facts


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run on a disk that works, and how many calls it took."""
    path = tmp_path_factory.mktemp("whole") / "run"
    before, storage.disk = storage.disk, FaultyDisk(0, "never")
    try:
        tut.train(config(), path)
        return contents(path), storage.disk.calls
    finally:
        storage.disk = before


def suffer(path, at: int, way: int | str, monkeypatch) -> bool:
    """A start, or a resumption, on a disk that fails once; whether that ended it."""
    with monkeypatch.context() as patch:
        patch.setattr(storage, "disk", FaultyDisk(at, way))
        try:
            tut.train(config(), path, resume=True)
        except (OSError, tut.UserError, PowerCut):
            return True
    return False


def goes_on(path, whole) -> None:
    """Neither refused nor different from a run to which nothing has happened; nothing half-written stays."""
    tut.train(config(), path, resume=True)
    assert contents(path) == whole
    assert not [p for p in path.rglob(".*.tmp") if p.parent.name != "evals"]
    assert standing.look(path, config().env).kind == "finished"


def every_failure(whole, ways_at_each_point: int):
    return [(at, WAYS[(at + n) % len(WAYS)]) for at in range(1, whole[1] + 1) for n in range(ways_at_each_point)]


def check(tmp_path, whole, monkeypatch, ways_at_each_point: int) -> None:
    ended = 0
    for at, way in every_failure(whole, ways_at_each_point):
        path = tmp_path / f"{at}-{way}"
        ended += suffer(path, at, way, monkeypatch)
        goes_on(path, whole[0])
        shutil.rmtree(path)
    assert ended > whole[1] // 2, "most failures end a run"


def test_every_call_that_can_fail_fails_once(tmp_path, whole, monkeypatch):
    assert whole[1] > 40
    check(tmp_path, whole, monkeypatch, 1)


@pytest.mark.slow
def test_every_call_that_can_fail_fails_in_every_way(tmp_path, whole, monkeypatch):
    check(tmp_path, whole, monkeypatch, len(WAYS))


def test_a_resumption_that_fails_can_be_resumed(tmp_path, whole, monkeypatch):
    """The second time at every fourth of its calls, with a damaged newest checkpoint and an unreadable row."""
    begun = tmp_path / "begun"
    tut.train(config(), begun)
    newest = checkpoint.path_of(begun / "checkpoints", UPDATES)
    newest.write_bytes(newest.read_bytes()[:-1])
    for n, at in enumerate(range(1, 45, 4)):
        path = tmp_path / str(at)
        shutil.copytree(begun, path)
        suffer(path, at, WAYS[n % len(WAYS)], monkeypatch)
        tut.train(config(), path, resume=True)
        assert contents(path) == whole[0]


def test_a_resumption_that_cannot_read_something_can_be_resumed(tmp_path, whole, monkeypatch):
    """An error at each reading once: it is said or passed over, and the next one ends as if nothing had been."""
    begun, at, ended = tmp_path / "begun", 0, False
    assert suffer(begun, whole[1] - 12, "lost", monkeypatch)
    while not ended:
        path, at = tmp_path / "run", at + 1
        shutil.copytree(begun, path)
        with monkeypatch.context() as patch:
            patch.setattr(storage, "disk", disk := Unreadable(at))
            with contextlib.suppress(tut.UserError, OSError):
                tut.train(config(), path, resume=True)
            ended = disk.calls < at
        tut.train(config(), path, resume=True)
        assert contents(path) == whole[0]
        shutil.rmtree(path)
    assert at > 10


def test_nothing_of_a_run_changes_but_through_the_seam(tmp_path, monkeypatch):
    """What the other tests let fail is all that there is, but for the lock, which holds nothing."""
    disk = Watched(tmp_path / "run")
    monkeypatch.setattr(storage, "disk", disk)
    tut.train(config(), tmp_path / "run")
    tut.resume(tmp_path / "run", domain=config().env, updates=UPDATES + 1)
    disk.folder = ""
    assert [(event, name) for event, name in disk.past if not name.endswith(".lock")] == []
    assert disk.seen > 20


def test_a_full_disk_leaves_no_run_directory_behind(tmp_path, monkeypatch):
    for at in range(1, 20):
        path = tmp_path / str(at)
        suffer(path, at, errno.ENOSPC, monkeypatch)
        assert not path.exists() or (path / "config.json").exists()


def test_a_failed_append_takes_back_what_it_wrote(tmp_path, monkeypatch):
    path = tmp_path / "rows"
    storage.append(path, b"one\n")

    class Full(storage.Disk):
        written = 0

        def write(self, file, data):
            if self.written:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.written = super().write(file, data[:2])
            return self.written

    monkeypatch.setattr(storage, "disk", Full())
    with pytest.raises(OSError, match="No space left"):
        storage.append(path, b"two\n")
    assert path.read_bytes() == b"one\n"


def test_a_line_that_a_kill_cut_short_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b'{"a": 1}\n{"a": ')
    storage.append(path, b'{"a": 2}\n')
    found = storage.read_rows(path)
    assert [row["a"] for row in found.rows] == [1, 2]
    assert found.lost == 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_no_file_can_be_called_is_refused(tmp_path, name):
    with pytest.raises(storage.Damaged, match="no file can have this name"):
        storage.read(tmp_path / name)
    with pytest.raises(OSError, match="no file can have this name"):
        storage.write_atomically(tmp_path / name, b"")


def test_a_folder_in_the_place_of_a_file_is_kept(tmp_path, whole):
    """One that stands where levels or checkpoints would be removed from."""
    run = tut.train(config(), tmp_path / "run")
    for name in ("levels/00000009.safetensors", "checkpoints/00000009.safetensors"):
        (run.path / name).mkdir()
        (run.path / name / "mine").write_text("precious")
    checkpoint.path_of(run.path / "checkpoints", UPDATES).unlink()
    tut.resume(run.path, domain=run.config.env)
    for folder in ("levels", "checkpoints"):
        assert (run.path / folder / "00000009.damaged" / "mine").read_text() == "precious"
    assert contents(run.path) == whole[0]


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mknod(path, 0o140644)
    with pytest.raises(storage.Damaged):
        storage.read(path)
    with pytest.raises(OSError):  # noqa: PT011 - the reason differs from kind to kind
        storage.append(path, b"x\n")
