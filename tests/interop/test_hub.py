"""Students that leave a run for a folder are the run's own, and play as they do there."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

import tutelage as tut
from report.made import UPDATES, write_results, write_run
from toys import tiny_maze
from tutelage import cli
from tutelage.errors import UserError
from tutelage.interop import hub
from tutelage.runs import students as folders
from tutelage.runs.evaluate import read_csv

RATES = {"SBend": 0.2, "Choice": 0.5}  # of seed 0; seed 1 solves 0.1 more


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = write_run(tiny_maze(seeds=2), tmp_path_factory.mktemp("hub") / "run")
    write_results(run, "small", RATES)
    return run


@pytest.fixture(scope="module")
def folder(run):
    to = run.path.parent / "folder"
    hub.export(run, to)
    return to


def leaves(tree):
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def test_students_come_back_as_they_were(run, folder):
    back = tut.Run(folder)
    assert back.config == run.config
    assert back.students_at()[0] == UPDATES
    second = [leaves(tut.load_student(path, seed=1)) for path in (run.path, folder)]
    for a, b, *ones in zip(leaves(run.students()), leaves(back.students()), *second, strict=True):
        np.testing.assert_array_equal(a, b)
        for one in ones:
            np.testing.assert_array_equal(a[1], one)


def test_eval_plays_a_folder_and_finds_what_it_finds_in_the_run(run, folder, tmp_path, capsys):
    found = []
    for path in (run.path, folder):
        assert cli.main(["eval", str(path), "--suite", "validation", "--episodes", "2"]) == 0
        found.append(read_csv(path / "evals" / f"validation-{UPDATES:08d}.csv"))
    assert found[0] == found[1]
    assert f"update {UPDATES}" in capsys.readouterr().out
    assert cli.main(["eval", str(folder), "--checkpoint", "1"]) == 2
    assert f"has the students of update {UPDATES} alone, not of 1" in capsys.readouterr().err


def test_one_seed_alone(run, tmp_path):
    hub.export(run, tmp_path / "one", seed=1)
    alone = tut.Run(tmp_path / "one")
    assert list(alone.config.all_seeds) == [1]
    for a, b in zip(leaves(run.students()), leaves(alone.students()), strict=True):
        np.testing.assert_array_equal(a[1:], b)
    assert {r.seed for r in read_csv(tmp_path / "one" / "evals" / f"small-{UPDATES:08d}.csv")} == {1}
    with pytest.raises(UserError, match="no seed 0: seeds are 1 to 1"):
        tut.load_student(tmp_path / "one", seed=0)


def test_half_the_bits_are_half_the_bytes_and_nearly_the_same_weights(run, folder, tmp_path):
    hub.export(run, tmp_path / "half", half=True)
    whole, half = (load_file(path / folders.FILE) for path in (folder, tmp_path / "half"))
    assert sum(x.nbytes for x in half.values()) == sum(x.nbytes for x in whole.values()) / 2
    for a, b in zip(leaves(run.students()), leaves(tut.Run(tmp_path / "half").students()), strict=True):
        assert b.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=2.0**-11, atol=2.0**-24)


def test_weights_that_16_bits_cannot_hold_keep_their_32(run, tmp_path):
    students = eqx.tree_at(lambda s: s.actor.output.bias, run.students(), run.students().actor.output.bias + 1e6)
    folders.write(tmp_path, run.config, 1, students, half=True)
    np.testing.assert_array_equal(tut.Run(tmp_path).students().actor.output.bias, students.actor.output.bias)


def test_the_card_tells_what_they_are_and_what_they_reach(run, folder):
    text = (folder / "README.md").read_text()
    _, metadata, body = text.split("---\n", 2)
    assert "license: apache-2.0\nlibrary_name: tutelage\n" in metadata
    assert "- accel\n- maze\n" in metadata
    assert '{type: solved_rate, name: "solved rate", value: 0.4}' in metadata
    assert f"The students of seeds 0 to 1 after {UPDATES} student updates on the env `maze`" in body
    assert "tutelage train maze " in body
    assert "| SBend | 0.25 ± 0.05 |" in body
    assert "| **mean** | 0.40 ± 0.05 |" in body
    assert body.rstrip().endswith("apache-2.0")


def test_the_card_says_when_there_is_nothing_to_tell(run):
    one = replace(run.config, seeds=1, updates=900)
    text = hub.card(one, 5, {}, half=True, licence="cc-by-4.0")
    assert "model-index" not in text
    assert "were not evaluated" in text
    assert "was to make 900 student updates" in text
    assert "rounded to 16 bits" in text
    assert "license: cc-by-4.0" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--hub", "FULL"], "is not an empty folder"),
        (["--hub", "new", "--seed", "7"], "no seed 7: seeds are 0 to 1"),
        (["--hub", "new", "--checkpoint", "7"], "has no checkpoint 7"),
        (["--hub", "new", "--licence", "my own"], "named as on Hugging Face"),
        ([], "wants --hub DIR or --onnx FILE"),
    ],
)
def test_what_cannot_be_exported_is_said(run, folder, words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [str(folder) if word == "FULL" else word for word in words]
    assert cli.main(["export", str(run.path), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_run_that_could_go_on(folder, capsys):
    def files():
        return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.name != ".lock")

    before = files()
    for command in (["resume", folder], ["train", "maze", "demo", "--out", folder], ["levels", folder]):
        assert cli.main([str(word) for word in command]) == 2
    assert "it holds the students alone" in capsys.readouterr().err
    assert files() == before


def test_what_is_wrong_with_a_folder_is_said(folder, tmp_path):
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    (tmp_path / folders.FILE).write_bytes((folder / folders.FILE).read_bytes()[:-9])
    with pytest.raises(UserError, match=r"model\.safetensors is truncated"):
        tut.Run(tmp_path).students()
    data = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(data | {"steps": data["steps"] + 1}))
    (tmp_path / folders.FILE).write_bytes((folder / folders.FILE).read_bytes())
    with pytest.raises(UserError, match=r"is of another run than config\.json: steps is 24 there and 25 here"):
        tut.Run(tmp_path).students()
