"""What every method of the table promises: seeds share nothing, a run resumes exactly, its levels know their origin."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import taught
import tutelage as tut
from boxes import signs
from curricula import (
    test_accel_parallel,
    test_alp_gmm,
    test_cenie,
    test_methods,
    test_ncc,
    test_plr_parallel,
    test_poet,
    test_remidi,
    test_sfl,
    test_traced,
)
from tutelage import cli
from tutelage.runs import checkpoint
from tutelage.runs.presets import METHODS

UPDATES = 6
SHORT = dict(updates=UPDATES, log_every=3, checkpoint_every=3)

# On the square, where levels are cheap. The methods are those of other tests, so that a program is compiled once.
ON_SQUARE = {name: test_methods.METHODS[name] for name in ("dr", "plr", "robust-plr", "accel", "no-editor")} | {
    "plr-parallel": test_plr_parallel.METHOD,
    "accel-parallel": test_accel_parallel.METHOD,
    "sfl": test_sfl.METHOD,
    "ncc": test_ncc.METHOD,
    "alp-gmm": test_alp_gmm.METHOD,
    "traced": test_traced.METHOD,
    "remidi": replace(test_remidi.METHOD, cycles_each=3),
    "cenie": replace(test_cenie.METHOD, window=16),
    "poet": test_poet.METHOD,
}

# On mazes, from the command line.
TINY = "--env.size 5 --env.max-steps 20 --env.blocks 6 --student.no-memory --student.hidden 16 --student.head 8"
BRIEF = f"--slots 8 --steps 24 --ppo.epochs 1 --updates {UPDATES} --log-every 3 --checkpoint-every 3 --eval-every 0"
BUFFERED = "--method.buffer.capacity 16 --method.buffer.min-fill 0.3"
LEARNED = {
    "paired": "teacher",
    "minimax": "teacher",
    "repaired": "teacher",
    "learned-editor": "editor",
}
EDITING = {"accel", "accel-parallel", "learned-editor", "poet", "traced", "cenie"}


def by_command_line(name: str, path) -> tut.Run:
    """Seeds 1 and 2, with a small network for the teacher."""
    role = f"--method.{LEARNED[name]}"
    network = [f"{role}.network.no-memory", f"{role}.network.hidden", "0", f"{role}.z", "3", f"{role}.ppo.epochs", "1"]
    always = ["--method.teacher-learns", "always"] if name == "repaired" else []
    settings = " ".join([TINY, BRIEF, BUFFERED]).split()
    args = ["train", "maze", name, *settings, *network, *always, "--seed", "1", "--seeds", "2", "--out", str(path)]
    assert cli.main(args) == 0
    assert cli.main(["levels", str(path), "--top", "3"]) == 0
    return tut.Run(path)


@pytest.fixture(scope="module", params=METHODS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def runs(name, tmp_path_factory) -> tuple[tut.Run, tut.Run]:
    """Of seeds 1 and 2, and of seeds 0 and 1: by one program."""
    path = tmp_path_factory.mktemp(name)
    if name in LEARNED:
        later = by_command_line(name, path / "later")
    else:
        learner = test_poet.LEARNER if name == "poet" else {}
        later = tut.train(signs(ON_SQUARE[name], seed=1, seeds=2, **SHORT, **learner), path / "later")
    return later, tut.train(replace(later.config, seed=0), path / "earlier")


def but_hashes(buffer) -> dict:
    """A level that differs by rounding has another fingerprint."""
    return {name: x for name, x in vars(buffer).items() if name != "fingerprint"}


def test_seeds_share_nothing(runs):
    """A seed is the same whatever is beside it, up to rounding, and whatever agents the method has."""
    later, earlier = (run.state() for run in runs)
    for name in ("cycles", "rollouts", "updates"):
        assert int(getattr(later, name)[0]) == int(getattr(earlier, name)[1])
    parts = (jax.tree.leaves((s.learner, s.own, but_hashes(s.buffer))) for s in (later, earlier))
    for a, b in zip(*parts, strict=True):
        assert np.allclose(a[0], b[1], atol=1e-4)
    first, second = (jax.tree.map(lambda x, i=i: x[i], (earlier.learner, earlier.own)) for i in (0, 1))
    assert not taught.same(first, second)


def test_a_run_resumes_exactly(runs):
    """One that lost its last checkpoint ends with the same bytes, rows and levels."""
    run = runs[1]
    newest = checkpoint.path_of(run.path / "checkpoints", UPDATES)
    good, rows, levels = newest.read_bytes(), run.metrics(), run.levels()
    newest.write_bytes(good[:1000])
    again = tut.resume(run.path, domain=run.config.env, warn=lambda text: None)
    assert newest.read_bytes() == good
    for before, after in zip(rows, again.metrics(), strict=True):
        assert before | {"steps_per_second": 0} == after | {"steps_per_second": 0}
    for field in ("seed", "id", "parent", "generation", "birth", "score"):
        assert np.array_equal(getattr(levels, field), getattr(again.levels(), field))


def test_what_it_notes_is_in_the_metrics(runs):
    for run in runs:
        for note in run.config.method.notes:
            noted = [row[note] for row in run.metrics() if row[note] is not None]
            assert np.isfinite(noted).all()
            assert noted


def test_every_level_of_the_buffer_is_in_the_archive_with_its_ancestors(name, runs):
    run = runs[1]
    levels, buffer = run.levels(), run.state().buffer
    assert (levels.generation > 0).any() == (name in EDITING)
    for s, seed in enumerate(run.config.all_seeds):
        assert int(buffer.filled[s]) > 0
        for k in range(int(buffer.filled[s])):
            line = levels.lineage(seed, int(buffer.id[s, k]))
            assert levels.parent[line[0]] == -1
            assert [int(levels.generation[i]) for i in line] == list(range(len(line)))
            assert taught.same(levels.at(line[-1]).level, jax.tree.map(lambda x, s=s, k=k: x[s, k], buffer.level))
