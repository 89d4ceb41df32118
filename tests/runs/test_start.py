"""Runs that begin from a checkpoint of another run."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import tutelage as tut
from toys import jumper
from tutelage.errors import UserError
from tutelage.runs import checkpoint, trainer
from tutelage.runs.leaves import named_leaves
from tutelage.runs.start import begin
from tutelage.runs.storage import read_arrays

CONFIG = jumper(updates=10)


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    return tut.train(CONFIG, tmp_path_factory.mktemp("parent") / "run")


def file_of(run, updates=5):
    return checkpoint.path_of(run.path / "checkpoints", updates)


def arrays(run, updates):
    return read_arrays(file_of(run, updates))[0]


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def leaves(tree):
    return {name: np.asarray(leaf) for name, leaf in named_leaves(tree).items()}


def test_by_the_same_settings_it_ends_as_the_other_run_does(parent, tmp_path):
    run = tut.train(CONFIG, tmp_path / "run", start=file_of(parent))
    assert run.checkpoints == [5, 10]
    assert same(arrays(run, 10), arrays(parent, 10))
    assert run.config == replace(CONFIG, start=str(file_of(parent)))
    first, later = run.metrics()[0], next(row for row in parent.metrics() if row["updates"] > 5)
    assert {k: v for k, v in first.items() if k != "steps_per_second"} == {
        k: v for k, v in later.items() if k != "steps_per_second"
    }


def test_levels_have_their_ancestors_from_before(parent, tmp_path):
    run = tut.train(replace(CONFIG, seed=7), tmp_path / "run", start=file_of(parent))
    here, there = run.levels(5), parent.levels(5)
    assert here.id.tolist() == there.id.tolist()
    assert set(here.seed.tolist()) == {7}
    for number in run.levels().id.tolist():
        run.levels().lineage(7, number)


def test_by_other_settings_it_begins_at_the_same_state(parent):
    """As a population does that changes what the learning depends on."""
    config = replace(CONFIG, ppo=replace(CONFIG.ppo, learning_rate=1e-4), start=str(file_of(parent)))
    beginning = begin(config)
    assert beginning.updates == 5
    assert same(leaves(beginning.state), leaves(parent.state(5)))


def test_students_alone_are_taken_over(parent):
    config = replace(CONFIG, start=str(file_of(parent)), start_with="students")
    beginning = begin(config)
    state, before = beginning.state, parent.state(5)
    assert beginning.updates == 0
    assert beginning.levels is None
    assert same(leaves(state.learner.student), leaves(before.learner.student))
    assert int(state.buffer.filled.sum()) == 0
    assert not same(leaves(state.learner.optimiser), leaves(before.learner.optimiser))


def test_students_may_go_to_another_method(parent):
    config = replace(CONFIG, method=tut.DR(CONFIG.method.buffer), start=str(file_of(parent)), start_with="students")
    assert same(leaves(begin(config).state.learner.student), leaves(parent.state(5).learner.student))


def test_other_seeds_draw_numbers_of_their_own(parent):
    """And the seeds that are there go on with theirs."""
    own, other = (begin(replace(CONFIG, seed=seed, start=str(file_of(parent)))).state for seed in (0, 3))
    key = jax.random.key_data(parent.state(5).key)
    assert np.array_equal(jax.random.key_data(own.key), key)
    assert not np.array_equal(jax.random.key_data(other.key), key)
    assert same(leaves(own.learner), leaves(other.learner))


def test_what_it_cannot_begin_from_is_refused(parent, tmp_path):
    file, damaged = file_of(parent), tmp_path / "00000005.safetensors"
    damaged.write_bytes(file.read_bytes()[:1000])
    network, slots = replace(CONFIG.student, hidden=8), replace(CONFIG.method.buffer, capacity=8)
    cases = [
        (CONFIG, tmp_path / "nowhere", "nowhere is not there"),
        (CONFIG, damaged, "is truncated or not a checkpoint"),
        (CONFIG, parent.path / "config.json", "not a checkpoint"),
        (replace(CONFIG, updates=5), file, "has done 5 student updates: --updates must be more"),
        (replace(CONFIG, seeds=2), file, "holds seed 0: take of these, or as many others"),
        (replace(CONFIG, student=network), file, "belongs to another configuration"),
        (replace(CONFIG, method=replace(CONFIG.method, buffer=slots)), file, "belongs to another configuration"),
    ]
    for config, start, says in cases:
        with pytest.raises(UserError, match=says):
            begin(replace(config, start=str(start)))
    with pytest.raises(UserError, match="nowhere is not there"):
        tut.train(CONFIG, tmp_path / "run", start=tmp_path / "nowhere")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("after", ["levels", "checkpoint"])
def test_however_early_it_is_killed_it_begins_where_it_should(parent, tmp_path, monkeypatch, after):
    """`train` with `resume` accepts it, and so does `resume`."""
    save = checkpoint.save

    def plug(*args):
        if after == "checkpoint":
            save(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainer.checkpoint, "save", plug)
        with pytest.raises(KeyboardInterrupt):
            tut.train(CONFIG, tmp_path / "run", start=file_of(parent))
    assert list((tmp_path / "run" / "levels").iterdir())
    run = tut.train(CONFIG, tmp_path / "run", start=file_of(parent), resume=True)
    assert same(arrays(run, 10), arrays(parent, 10))
    assert run.levels().id.tolist() == parent.levels().id.tolist()
    with pytest.raises(UserError, match="start is"):
        tut.train(CONFIG, tmp_path / "run", resume=True)


def test_without_the_record_of_levels_that_is_said(parent, tmp_path):
    alone, said = tmp_path / "a" / "checkpoints" / file_of(parent).name, []
    alone.parent.mkdir(parents=True)
    alone.write_bytes(file_of(parent).read_bytes())
    assert begin(replace(CONFIG, start=str(alone)), said.append).levels is None
    assert said[0].startswith("The ancestors of levels from before the start will not be known")
