"""Rows of metrics: whatever befalls the file, what can be read of it stays, and what cannot is said and kept beside."""

import json
import shutil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tutelage as tut
from soak import mutations
from soak.promises import rows_in
from toys import jumper
from tutelage.runs import metrics

SEEDS, UPDATES, CHECKPOINT = (0, 1), (1, 2, 3, 4), 3
LINES = [json.dumps({"updates": u, "seed": s, "ppo/entropy": u + s / 3}).encode() for u in UPDATES for s in SEEDS]
WHOLE = b"".join(line + b"\n" for line in LINES)
WAYS = ("flip", "cut", "cut_end", "empty", "nuls", "put_in", "put_over", "only", "json_value")


def truncated(data: bytes) -> tuple[bytes, list[str], bytes | None]:
    """What stays of a file's rows up to the checkpoint, what is said, and the copy beside."""
    with TemporaryDirectory() as folder:
        path, said = Path(folder) / "metrics.jsonl", []
        path.write_bytes(data)
        there = metrics.truncate(path, CHECKPOINT, said.append)
        metrics.check_whole(there, SEEDS, CHECKPOINT, said.append)
        beside = path.with_suffix(".damaged")
        return path.read_bytes(), said, beside.read_bytes() if beside.exists() else None


def done_again(line: bytes) -> bool:
    """Whether it is the beginning of a row after the checkpoint, or too short to have anything in it."""
    start = b'{"updates": 4,'
    return line.startswith(start) or start.startswith(line)


@settings(max_examples=60, deadline=None)
@given(way=st.sampled_from(WAYS), seed=st.integers(0, 2**32))
@example(way="cut_end", seed=0)
def test_whatever_befalls_the_file_nothing_is_lost_in_silence(way, seed):
    harmed = getattr(mutations, way)(Random(seed), WHOLE)
    after, said, beside = truncated(harmed)
    there = [row for row in rows_in(harmed) if row["updates"] <= CHECKPOINT]
    assert [json.dumps(row) for row in rows_in(after)] == [json.dumps(row) for row in there]
    lines = [line for line in harmed.split(b"\n") if line.strip()]
    unreadable = [line for line in lines if not rows_in(line)]
    again = [line for line in unreadable if line is lines[-1] and done_again(line)]
    if len(unreadable) > len(again):
        assert beside == harmed
        assert "cannot be read and" in said[0]
    elif len(there) < 6 and rows_in(harmed)[-1:] != rows_in(WHOLE)[-1:]:
        assert said, "the end of the file is gone"


@pytest.mark.parametrize("count", range(1, 100, 3))
def test_a_file_that_ends_early_is_done_again_or_said(count):
    """However little of it is missing: rows after the checkpoint come again, others do not."""
    after, said, _ = truncated(WHOLE[:-count])
    if count <= len(LINES[-1]) + len(LINES[-2]) + 2:
        assert (after, said) == (b"".join(line + b"\n" for line in LINES[:6]), [])
    else:
        assert said
        assert after == b"".join(line + b"\n" for line in LINES[:6] if line + b"\n" in WHOLE[:-count])


def test_a_run_whose_metrics_are_gone_says_so(tmp_path):
    """But not where it goes on from a checkpoint before its first row, or begins from another run's."""
    config = jumper(updates=5)
    tut.train(config, tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "whole")
    (tmp_path / "run" / "metrics.jsonl").unlink()
    said: dict[str, list[str]] = {"run": [], "whole": []}
    for name, words in said.items():
        tut.resume(tmp_path / name, domain=config.env, updates=6, warn=words.append)
    assert said["whole"] == []
    assert said["run"] == [
        "metrics.jsonl has no row of student update 5 of any seed: what was logged up to there is lost."
    ]
    start = tmp_path / "whole" / "checkpoints" / "00000005.safetensors"
    tut.train(jumper(updates=7, start=str(start)), tmp_path / "other", warn=said["whole"].append)
    assert said["whole"] == []
