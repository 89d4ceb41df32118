"""What a finished run lets you read."""

import json

import jax
import numpy as np
import pytest

import tutelage as tut
from toys import jumper, tiny_maze
from tutelage.curricula.scores import SCORES
from tutelage.errors import UserError
from tutelage.runs import config as configs
from tutelage.runs import presets
from tutelage.runs.browse import ancestors, best
from tutelage.runs.evaluate import Result, by_level, evaluate, overall, read_csv, record, write_csv
from tutelage.runs.run import initial_state
from tutelage.statistics import Summary


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    # Two seeds, a validation look, TensorBoard: everything a run may do, once.
    config = tiny_maze(seeds=2, updates=8, eval_every=4, eval_episodes=2, track=tut.Track("tensorboard"))
    return tut.train(config, tmp_path_factory.mktemp("runs") / "maze")


def test_metrics_have_a_row_for_each_seed_and_log_point(run):
    rows = run.metrics()
    assert [(r["updates"], r["seed"]) for r in rows] == [(u, s) for u in (2, 4, 6, 8) for s in (0, 1)]
    last = rows[-1]
    assert last["env_steps"] > last["cycles"] * 8 * 24 - 1
    for name in (
        "replay/solved",
        "edit/score",
        "ppo/entropy",
        "buffer/blocks",
        "buffer/path_length",
        "buffer/solvable",
    ):
        assert np.isfinite(last[name]), name
    assert 0 <= last["buffer/fill"] <= 1


def test_a_run_is_opened_by_its_path_however_that_is_given(run):
    assert tut.Run(str(run.path)) == tut.Run(run.path)
    with pytest.raises(UserError, match="nowhere is not a run"):
        tut.Run("nowhere")


def test_validation_levels_are_played_when_due(run):
    looked = {r["updates"]: "eval/solved" in r for r in run.metrics()}
    assert looked == {2: False, 4: True, 6: False, 8: True}


def test_tensorboard_gets_the_same(run):
    (events,) = (run.path / "tensorboard").glob("events*")
    data = events.read_bytes()
    for name in (b"replay/solved/seed1", b"buffer/blocks/seed0", b"levels/seed0", b"levels/seed1", b"PNG"):
        assert name in data


def test_every_buffered_level_is_in_the_archive_with_its_ancestors(run):
    levels = run.levels()
    known = {(int(s), int(i)) for s, i in zip(levels.seed, levels.id, strict=True)}
    buffer = run.state().buffer
    for s, seed in enumerate(run.config.all_seeds):
        for k in range(int(buffer.filled[s])):
            level_id = int(buffer.id[s, k])
            assert (seed, level_id) in known
            line = levels.lineage(seed, level_id)
            assert levels.parent[line[0]] == -1
            assert levels.id[line[-1]] == level_id
            assert np.array_equal(levels.at(line[-1]).level.walls, buffer.level.walls[s, k])
            assert [int(levels.generation[i]) for i in line] == list(range(len(line)))


def test_best_levels_come_in_order_of_score(run):
    found = best(run, 5)
    scores = [f.score for f in found]
    assert scores == sorted(scores, reverse=True)
    assert len(found) == 5
    assert {f.seed for f in best(run, 100, seed=1)} == {1}
    json.dumps([f.facts() for f in found])
    line = ancestors(run, found[0].id, found[0].seed)
    assert line[-1].id == found[0].id
    assert line[0].generation == 0


def test_what_is_not_there_is_said(run):
    with pytest.raises(UserError, match="no seed 7; it has 0, 1"):
        best(run, 5, seed=7)
    with pytest.raises(UserError, match="has no level 999999"):
        ancestors(run, 999_999)
    with pytest.raises(UserError, match=r"no checkpoint 5; there are"):
        run.state(5)
    with pytest.raises(UserError, match="Unknown suite 'moon' of maze; known: maze, maze-12"):
        run.suite("moon")


def test_evaluation_is_repeatable_and_each_seed_plays_as_if_alone(run):
    suite = run.suite("small")[1][:2]
    students = run.students()
    first = evaluate(students, [0, 1], suite, 5)
    assert first == evaluate(students, [0, 1], suite, 5)

    alone = evaluate(jax.tree.map(lambda x: x[1:], students), [1], suite, 5)
    assert [r for r in first if r.seed == 1] == pytest.approx(alone)
    assert {r.level for r in first} == {level.name for level in suite}
    assert all(r.mean_length <= level.env.max_steps for r, level in zip(first[::2], suite, strict=True))


def test_a_recorded_episode_ends_where_it_ended(run):

    student = jax.tree.map(lambda x: x[0], run.students())
    test = run.suite("small")[1][0]
    states, outcome = record(student, test.env, test.draw(jax.random.key(0)), key=jax.random.key(1))
    assert states.time.tolist() == list(range(int(outcome.length) + 1))
    frames = run.config.env.film(test.draw(jax.random.key(0)), states)
    assert len(frames) == len(states.time)


def test_results_survive_their_file(tmp_path):
    results = [
        Result("a", 0, 10, 0.5, 0.25, 12.0),
        Result("b", 0, 10, 1.0, 0.5, 3.0),
        Result("a", 1, 10, 0.7, 0.1, 9.0),
    ]
    write_csv(tmp_path / "r.csv", results)
    assert read_csv(tmp_path / "r.csv") == results
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == "level,seed,episodes,solved_rate,mean_return,mean_length"


def test_standard_errors_are_those_of_n_minus_one():
    assert Summary.of([0.2, 0.4, 0.9]) == pytest.approx((0.5, np.std([0.2, 0.4, 0.9], ddof=1) / np.sqrt(3)))
    assert np.isnan(Summary.of([0.2]).error)
    results = [
        Result(level, seed, 1, v, 0, 0)
        for (level, seed), v in {("a", 0): 0, ("a", 1): 1, ("b", 0): 1, ("b", 1): 1}.items()
    ]
    assert by_level(results)["a"]["solved_rate"].mean == 0.5
    assert overall(results)["solved_rate"] == pytest.approx((0.75, 0.25))


def test_a_run_without_levels_or_checkpoints_says_so(tmp_path):
    from tutelage.runs import config as configs

    (tmp_path / "config.json").write_text(json.dumps(configs.to_json(tiny_maze(), "accel")))
    with pytest.raises(UserError, match="no checkpoint yet"):
        tut.Run(tmp_path).state()
    with pytest.raises(UserError, match="holds no levels yet"):
        tut.Run(tmp_path).levels()


def test_a_rollout_too_short_to_score_a_level_is_refused():
    with pytest.raises(UserError, match="shorter than an episode may last"):
        jumper(steps=10).classroom()


def test_training_compiles_its_program_once(tmp_path):
    from tutelage.runs.start import Beginning
    from tutelage.runs.trainer import Trainer, programs

    config = jumper(updates=12)
    for folder in ("checkpoints", "levels"):
        (tmp_path / folder).mkdir()
    _, advance, survey = programs(config)
    before = advance._cache_size(), survey._cache_size()
    Trainer(config, tmp_path, lambda p: None).train(Beginning(initial_state(config)), [])
    assert advance._cache_size() - before[0] <= 1
    assert survey._cache_size() - before[1] <= 1


def test_a_config_with_a_score_of_ones_own_is_read_once_that_is_entered(monkeypatch):
    config = tiny_maze(tut.DR(tut.BufferConfig(capacity=24), score="mine"))
    data = configs.to_json(config, "dr")
    with pytest.raises(UserError, match=r"method\.score cannot be 'mine'"):
        configs.from_json(data, presets.DOMAINS, presets.METHODS)
    monkeypatch.setitem(SCORES, "mine", SCORES["pvl"])
    assert configs.from_json(data, presets.DOMAINS, presets.METHODS) == config
