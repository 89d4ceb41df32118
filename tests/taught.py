"""What the tests of methods with a learned teacher share: small settings, and the promises all of them keep."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tut
from toys import tiny_maze
from tutelage import cli
from tutelage.envs.maze import MazeDomain
from tutelage.runs import checkpoint
from tutelage.runs.run import initial_state
from tutelage.runs.train import advance

BUFFER = tut.BufferConfig(capacity=24, min_fill=0.3, replay_rate=0.7)
TEACHER = tut.Teacher(tut.StudentConfig(memory=False, hidden=0, head=8), tut.PPO(learning_rate=1e-3, epochs=1), z=3)
STUDENT = tut.StudentConfig(memory=False, hidden=16, head=8)

# To learn with: mazes of 5×5 with ten walls, of which a teacher can make hopeless ones.
WALLED = MazeDomain(size=5, max_steps=24, generator="fixed", blocks=10)
EAGER = tut.Teacher(tut.StudentConfig(memory=False, hidden=0, head=32), tut.PPO(learning_rate=3e-3, discount=1.0), z=8)

TINY = "--env.size 5 --env.max-steps 20 --env.blocks 6 --student.no-memory --student.hidden 16 --student.head 8"
SHORT = "--slots 8 --steps 24 --ppo.epochs 1 --updates 2 --log-every 1 --checkpoint-every 2 --eval-every 0"
BUFFERED = "--method.buffer.capacity 16 --method.buffer.min-fill 0.3"


def tiny(method, **changes) -> tut.Config:
    """A few updates on tiny mazes, quick to compile."""
    return tiny_maze(method, **(dict(student=STUDENT, ppo=tut.PPO(epochs=1), updates=4) | changes))


def eager(method, **changes) -> tut.Config:
    """A student that learns within a hundred updates."""
    settings = dict(
        env=WALLED,
        student=tut.StudentConfig(memory=False, hidden=32, head=16),
        ppo=tut.PPO(learning_rate=1e-3, entropy_coef=1e-3, discount=0.98),
        slots=32,
        steps=48,
    )
    return tiny_maze(method, **(settings | changes))


def one_seed(config):
    """The state of a run's first seed."""
    return jax.tree.map(lambda x: x[0], initial_state(config))


def same(a, b) -> bool:
    """Whether two pytrees hold the same numbers."""
    return all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True))


def after_updates(config, updates):
    """All seeds of a config after so many student updates."""
    room, states = config.classroom(), initial_state(config)
    step = jax.jit(lambda s, target: advance(room, config.method, s, target))
    while int(states.updates.min()) < updates:
        states = step(states.with_log(None), jnp.int32(updates))
    return states


def trained(config, updates):
    """The first seed after so many student updates, and the same but for the teacher, which is as it was at first."""
    state = after_updates(config, updates).with_log(None)
    state = jax.tree.map(lambda x: x[0], state)
    teacher = one_seed(config).own.teacher
    return state, replace(state, own=replace(state.own, teacher=teacher))


def check_seeds(method) -> None:
    """A seed is alone what it is among others, whatever agents it has."""
    two, alone = after_updates(tiny(method, seeds=2), 3), after_updates(tiny(method, seed=1), 3)
    of_two, alone = (jax.tree.map(lambda x, i=i: x[i], s) for s, i in ((two, 1), (alone, 0)))
    for name in ("cycles", "rollouts", "updates"):
        assert int(getattr(of_two, name)) == int(getattr(alone, name))
    for part in ("learner", "own", "buffer"):
        for a, b in zip(*map(jax.tree.leaves, (getattr(of_two, part), getattr(alone, part))), strict=True):
            assert np.allclose(a, b, atol=1e-5), part
    assert not same(*(jax.tree.map(lambda x, i=i: x[i], two.own.teacher) for i in (0, 1)))


def check_resume(method, path) -> tut.Run:
    """A run that lost its last checkpoint ends bit-identical to what it was, other agents included."""
    run = tut.train(tiny(method, seeds=2), path)
    newest = checkpoint.path_of(path / "checkpoints", 4)
    good, rows = newest.read_bytes(), run.metrics()
    newest.write_bytes(good[:1000])
    again = tut.resume(path, warn=lambda text: None)
    assert newest.read_bytes() == good
    speedless = [
        [{k: v for k, v in row.items() if k != "steps_per_second"} for row in r] for r in (rows, again.metrics())
    ]
    assert speedless[0] == speedless[1]
    assert all(np.isfinite(row[name]) for row in rows[-1:] for name in method.notes)
    check_lineage(again)
    return again


def check_lineage(run) -> None:
    """Every level that the buffer holds is in the archive, with all its ancestors."""
    levels, buffer = run.levels(), run.state().buffer
    for s, seed in enumerate(run.config.all_seeds):
        assert int(buffer.filled[s]) > 0
        for k in range(int(buffer.filled[s])):
            line = levels.lineage(seed, int(buffer.id[s, k]))
            assert levels.parent[line[0]] == -1
            assert [int(levels.generation[i]) for i in line] == list(range(len(line)))
            assert np.array_equal(levels.level(line[-1]).walls, buffer.levels.walls[s, k])


def check_cli(name: str, role: str, path) -> None:
    """The command line trains it, with a small network for the teacher."""
    network = [f"--method.{role}.network.no-memory", f"--method.{role}.network.hidden", "0", f"--method.{role}.z", "3"]
    settings = " ".join([TINY, SHORT, BUFFERED]).split()
    assert cli.main(["train", "maze", name, *settings, *network, "--out", str(path)]) == 0
    run = tut.Run(path)
    assert run.checkpoints[-1] == 2
    assert set(run.config.method.notes) <= set(run.metrics()[-1])
    assert cli.main(["levels", str(path), "--top", "3"]) == 0
