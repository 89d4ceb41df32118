"""Learning, end to end: a short run of fixed seed, on levels it has not met."""

import jax
import numpy as np

import tutelage as tut
from toys import tiny_maze
from tutelage.env import TestLevel
from tutelage.envs.maze import MazeDesign, MazeDomain
from tutelage.runs.evaluate import evaluate
from tutelage.runs.run import initial_state

MARGIN = 0.4


def solved_rate(config, students) -> float:
    """On fresh random levels of the same size, solvable or not."""
    held_out = TestLevel("random", config.env.env(), MazeDesign(5, 5, "variable", 8).sample)
    results = evaluate(students, config.all_seeds, (held_out,), 200, evaluation_seed=123)
    return float(np.mean([r.solved_rate for r in results]))


def test_accel_beats_an_untrained_student_by_a_wide_margin(tmp_path):
    config = tiny_maze(
        env=MazeDomain(size=5, max_steps=24, generator="empty", blocks=0),
        method=tut.ACCEL(tut.BufferConfig(capacity=128, min_fill=0.5), edits=2),
        student=tut.StudentConfig(memory=False, hidden=32, head=16),
        ppo=tut.PPO(learning_rate=2e-3, entropy_coef=1e-3, discount=0.98),
        slots=16,
        steps=48,
        updates=150,
        log_every=25,
        checkpoint_every=150,
    )
    run = tut.train(config, tmp_path / "run")
    untrained = solved_rate(config, jax.tree.map(lambda x: x, initial_state(config).learner.student))
    trained = solved_rate(config, run.students())
    assert trained > untrained + MARGIN, (trained, untrained)
    rows = run.metrics()
    assert rows[-1]["replay/solved"] > rows[0]["replay/solved"] + 0.2
    assert rows[-1]["buffer/blocks"] > rows[0]["buffer/blocks"] + 0.5, "levels grow from empty rooms"
