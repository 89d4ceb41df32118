"""The worst case over random levels: which levels are chosen, that others report on them, and the command line."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tut
from boxes import Square, signs
from toys import tiny_maze
from tutelage import cli
from tutelage.envs.maze import MazeDomain
from tutelage.errors import UserError
from tutelage.runs import checkpoint, evaluate, worst_case
from tutelage.runs import config as configs
from tutelage.runs.run import initial_state
from tutelage.statistics import cvar

LEVELS, EPISODES = 200, 5


@pytest.fixture(scope="module")
def config():
    return signs(tut.DR(tut.BufferConfig(capacity=8)), seeds=3)


@pytest.fixture(scope="module")
def students(config):
    return initial_state(config).learner.student


def play(config, students, seeds=(0, 1, 2), **options):
    settings = dict(levels=LEVELS, episodes=EPISODES) | options
    return worst_case.worst_case(students, seeds, config.env.env(), config.env.design(), **settings)


def test_all_levels_can_be_solved_and_a_longer_list_begins_with_a_shorter_one():
    few, many = (worst_case.solvable_levels(jax.random.key(3), Square(), n) for n in (50, 1500))
    assert few.shape == (50, 2)
    assert many.shape == (1500, 2)
    assert (many[:, 0] > 0).all()
    assert np.array_equal(few, many[:50])
    assert len(np.unique(many, axis=0)) == 1500


def test_a_design_space_that_does_not_know_what_is_solvable_keeps_all():
    class Unsure(Square):
        def describe(self, level):
            return {"x": level[0]}

    levels = worst_case.solvable_levels(jax.random.key(3), Unsure(), 300)
    assert (levels[:, 0] <= 0).any()


def test_a_generator_of_unsolvable_levels_is_given_up(monkeypatch):
    class Hopeless(Square):
        def describe(self, level):
            return {"solvable": jnp.float32(0)}

    monkeypatch.setattr(worst_case, "TRIES", 2)
    with pytest.raises(UserError, match=r"Of 3,072 random levels only 0 can be solved; 800 are wanted"):
        worst_case.solvable_levels(jax.random.key(0), Hopeless(), 800)


def test_the_worst_by_one_batch_are_reported_by_another(config, students):
    """Reference: numbers by hand from the two batches."""
    key_levels, *keys = jax.random.split(jax.random.key(0), 3)
    pool = worst_case.solvable_levels(key_levels, config.env.design(), LEVELS)
    batches = [worst_case.play_all(students, (0, 1, 2), config.env.env(), pool, EPISODES, key=k) for k in keys]
    choice, report = (np.asarray(b.solved) for b in batches)
    assert choice.shape == (3, LEVELS)
    assert not np.array_equal(choice, report), "the batches are independent"
    results = play(config, students)
    assert [r.level for r in results[::3]] == ["worst 0.1 %", "worst 1 %", "worst 10 %", "worst 100 %"]
    assert [r.seed for r in results[:3]] == [0, 1, 2]
    for share, n in ((0.001, 1), (0.01, 2), (0.1, 20), (1.0, LEVELS)):
        for s in range(3):
            worst = np.argsort(choice[s], kind="stable")[:n]
            got = next(r for r in results if r.level == worst_case.name_of(share) and r.seed == s)
            assert got.solved_rate == pytest.approx(report[s, worst].mean())
            assert got.mean_length == 2.0


def test_choosing_by_one_batch_and_reporting_on_the_same_would_look_worse(config, students):
    """The student acts at random: all levels are equally hard, and only luck makes some look worse."""
    reported = {name: row["solved_rate"].mean for name, row in evaluate.by_level(play(config, students)).items()}
    key_levels, key, _ = jax.random.split(jax.random.key(0), 3)
    pool = worst_case.solvable_levels(key_levels, config.env.design(), LEVELS)
    choice = worst_case.play_all(students, (0, 1, 2), config.env.env(), pool, EPISODES, key=key)
    lucky = np.mean([cvar(np.asarray(solved), 0.1) for solved in choice.solved])
    assert lucky < reported["worst 10 %"] - 0.03
    assert abs(reported["worst 10 %"] - reported["worst 100 %"]) < 0.05


def test_a_seed_does_not_depend_on_its_companions(config, students):
    alone = play(config, jax.tree.map(lambda x: x[1:2], students), seeds=(1,))
    together = [r for r in play(config, students) if r.seed == 1]
    assert [r.solved_rate for r in alone] == [r.solved_rate for r in together]


def test_levels_come_in_batches_that_add_up(config, students, monkeypatch):
    monkeypatch.setattr(worst_case, "EPISODES_AT_ONCE", 64 * EPISODES)
    said = []
    results = play(config, students, on_progress=said.append)
    assert said[1:] == 2 * [f"{n} of 200 levels" for n in (64, 128, 192, 200)]
    assert len(results) == 12


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run before its first update."""
    path = tmp_path_factory.mktemp("cvar") / "run"
    (path / "checkpoints").mkdir(parents=True)
    student = tut.StudentConfig(memory=False, hidden=8, head=8)
    config = tiny_maze(tut.DR(tut.BufferConfig(capacity=8)), student=student, seeds=2)
    data = configs.to_json(config, "dr")
    (path / "config.json").write_text(json.dumps(data))
    checkpoint.save(path / "checkpoints", 0, initial_state(config), data)
    return path


def call(capsys, *args):
    code = cli.main([str(a) for a in args])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_prints_a_table_and_writes_a_csv(capsys, run):
    code, out, _ = call(capsys, "eval", run, "--cvar", "--levels", 40, "--episodes", 2)
    assert code == 0
    for share in ("0.1", "1", "10", "100"):
        assert f"worst {share} %" in out
    assert "±" in out
    assert "40 random levels: 2 seeds" in out
    results = evaluate.read_csv(run / "evals" / "cvar-00000000-40-levels.csv")
    assert [(r.level, r.seed) for r in results[:2]] == [("worst 0.1 %", 0), ("worst 0.1 %", 1)]
    assert len(results) == 8


def test_the_file_is_no_evaluation_on_a_suite(run):
    from tutelage.report.facts.runs import evaluations_of

    notes = []
    assert not [e for e in evaluations_of(tut.Run(run), notes) if "cvar" in e.suite]
    assert not notes


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--cvar", "--levels", "many"], "--levels is the number of random levels, at least 1, not 'many'"),
        (["--cvar", "--levels", 0], "at least 1, not '0'"),
        (["--cvar", "--suite", "small"], "--cvar does not go with --suite"),
        (["--cvar", "--episodes", 0], "--episodes must be at least 1"),
        (["--cvar", "--checkpoint", 7], "no checkpoint 7"),
        (["--cvar", "--generator", "maze/magic"], "Unknown method 'magic'"),
        (["--cvar", "--generator", "maze/sfl"], "The levels of maze/sfl do not fit the env of this run"),
        (["--generator", "maze/sfl"], "--generator goes with --cvar only"),
    ],
)
def test_what_does_not_go_together_is_refused(capsys, run, args, says):
    code, _, err = call(capsys, "eval", run, *args)
    assert code == 2
    assert says in err


def test_a_run_may_be_judged_on_the_levels_of_another_generator(run, monkeypatch):
    empty = MazeDomain(size=5, max_steps=20, generator="empty", blocks=0)
    monkeypatch.setattr(worst_case.presets, "preset", lambda env, method: tiny_maze(env=empty))
    played, play_all = [], worst_case.play_all

    def watched(students, seeds, env, pool, *rest, **options):
        played.append(pool)
        return play_all(students, seeds, env, pool, *rest, **options)

    monkeypatch.setattr(worst_case, "play_all", watched)
    for generator in (None, "maze/accel"):
        assert len(worst_case.worst_case_of(tut.Run(run), generator=generator, levels=40, episodes=2)) == 8
    assert played[0].walls.any()
    assert not played[2].walls.any()
