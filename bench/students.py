"""What remembers best on mazes? The LSTM, the GRU, S5 and a transformer beside one another.

    python bench/students.py speed [--students lstm,gru,s5,s5-4,transformer] [--seeds 1 5] [--parts]
    python bench/students.py learn OUT [--students lstm,gru,s5] [--updates 5000] [--seeds 5] [--episodes 50]

`speed` times whole student updates of `maze/accel` with each student and, with `--parts`, also a rollout and a pass of
back-propagation by themselves, for so many seeds in one program. `learn` trains each in a run directory `OUT/STUDENT`,
goes on where it was stopped, plays the paper's twelve test mazes, and prints the solved rates. `s5-4` is S5 of four
layers; all have 256 units.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

import tutelage as tut
from tutelage.runs.bench import best_of, device_name, update_speed
from tutelage.runs.evaluate import overall, write_csv
from tutelage.runs.evaluations import Subject
from tutelage.runs.sweep import changed, parse_setting
from tutelage.student import ppo as ppos
from tutelage.student.rollout import gae, rollout

STUDENTS = {
    "lstm": tut.StudentConfig(),
    "gru": tut.StudentConfig(cell="gru"),
    "s5": tut.StudentConfig(cell="s5"),
    "s5-4": tut.StudentConfig(cell="s5", layers=4),
    "transformer": tut.StudentConfig(cell="transformer"),
}
SUITE = "maze-12"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    speed, learn = stages.add_parser("speed"), stages.add_parser("learn")
    learn.add_argument("out", type=Path)
    for stage in (speed, learn):
        stage.add_argument("--students", type=lambda names: names.split(","), default=list(STUDENTS))
        stage.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="such as slots=4, to try it")
    speed.add_argument("--seeds", type=int, nargs="+", default=[1, 5])
    speed.add_argument("--updates", type=int, default=40)
    speed.add_argument("--parts", action="store_true")
    learn.add_argument("--updates", type=int, default=5000)
    learn.add_argument("--seeds", type=int, default=5)
    learn.add_argument("--episodes", type=int, default=50)
    return parser.parse_args()


def config_of(name: str, settings: list[str], **changes: int) -> tut.Config:
    """The preset with a student, and with settings by name."""
    given = {setting: values[0] for setting, values in map(parse_setting, settings)}
    return changed(tut.preset("maze", "accel", student=STUDENTS[name], **changes), given)


def speed(args: argparse.Namespace) -> None:
    """Prints a row of Markdown for each student and number of seeds."""
    print(f"On {device_name()}.\n\n| student | seeds | one student update | compiled in | rollout | back-propagation |")
    print("|---|---|---|---|---|---|")
    for name in args.students:
        config = config_of(name, args.set)
        for seeds in args.seeds:
            found = update_speed(config, seeds, updates=args.updates)
            parts = [f"{1e3 * seconds:.2f} ms" for seconds in part_seconds(config, seeds)] if args.parts else ["", ""]
            row = (name, seeds, f"{found.milliseconds:.1f} ms", f"{found.compile_seconds:.0f} s", *parts)
            print("| " + " | ".join(map(str, row)) + " |", flush=True)


def part_seconds(config: tut.Config, seeds: int) -> tuple[float, float]:
    """What a rollout on new levels takes, and one pass of back-propagation over it."""
    room, ppo = config.classroom(), config.ppo
    assert ppo is not None
    keys = random.split(random.key(0), seeds)
    students = jax.jit(jax.vmap(room.new_student))(keys)
    queue = jnp.arange(room.slots, dtype=jnp.int32)[:, None]

    def play(student, key):
        levels = jax.vmap(room.design.sample)(random.split(key, room.slots))
        return rollout(key, room.env, student, levels, queue, room.steps)[0]

    def gradient(student, r):
        batch = ppos.make_batch(r, *gae(r, discount=ppo.discount, gae_lambda=ppo.gae_lambda), ppo)
        return jax.grad(lambda s: ppos.loss(s, batch, ppo)[0])(student)

    play, gradient = jax.jit(jax.vmap(play)), jax.jit(jax.vmap(gradient))
    played = play(students, keys)
    return best_of(lambda: play(students, keys), 5), best_of(lambda: gradient(students, played), 5)


def learn(args: argparse.Namespace) -> None:
    """Trains and plays each student; prints a row of Markdown for each."""
    rows = []
    for name in args.students:
        path = args.out / name
        if (path / "config.json").exists():
            run = tut.resume(path, on_progress=show, warn=print)
        else:
            changes = {"seeds": args.seeds, "updates": args.updates, "eval_every": 0, "archive_every": 0}
            run = tut.train(config_of(name, args.set, **changes), path, on_progress=show)
        results = run.evaluate(SUITE, episodes=args.episodes)
        write_csv(path / "evals" / Subject(SUITE, args.updates).file_name, results)
        solved = overall(results)["solved_rate"].text(3)
        each = [np.mean([r.solved_rate for r in results if r.seed == seed]) for seed in run.config.all_seeds]
        rows.append(f"| {name} | {solved} | {', '.join(f'{x:.2f}' for x in each)} |")
        print(f"| student | solved rate on {SUITE} | each seed |\n|---|---|---|", *rows, sep="\n", flush=True)


def show(progress) -> None:
    """A line now and then."""
    if progress.updates % 250 == 0:
        print(f"{progress.updates:,} of {progress.total:,}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    arguments_given = arguments()
    {"speed": speed, "learn": learn}[arguments_given.stage](arguments_given)
