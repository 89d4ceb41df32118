"""The paper's experiments as one queue of runs, worked off in pieces of whatever time there is.

    python bench/campaign.py list                                 # what there is, what is done, what is left
    python bench/campaign.py work WORK --seconds 1500 --side-by-side 3 [--only maze-dr,maze-accel]
    python bench/campaign.py pack WORK OUT                        # what is worth keeping, in few small files
    python bench/campaign.py unpack FILE…                         # into results/runs/ and results/students/
    python bench/campaign.py table [RUN…]                         # solved rates of the runs in results/runs/

`work` takes the first runs of the queue that results/ does not have whole, or those of `--only` in that order, trains
so many of them side by side, each in a process and a run directory `WORK/RUN` of its own, and starts the next when one
ends. Called again it goes on where it stopped. Runs of which results/ has a checkpoint go on from that. On a GPU it
starts NVIDIA's MPS if it finds it, which lets processes share the GPU; the first run has precedence, and those beside
it take what it leaves. A process on the CPU plays the held-out levels with each checkpoint that is kept.

`pack` writes `OUT/RUN.tar` (config, metrics, history, evaluations, students) for each run. Of unfinished ones, it holds
the newest checkpoint too if that is small, as a walker's is; else `OUT/RUN.state.N` are pieces of it. `unpack` makes a
folder of the first students, as `tutelage export RUN --hub DIR --half` writes it, of as many as take few bytes. It also
puts the pieces together again, into `WORK` of its option `--work`, so that another machine can go on.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
RUNS, STUDENTS = RESULTS / "runs", RESULTS / "students"
PIECE = 12 * 2**20  # bytes
LOOK_EVERY = 15  # seconds
SMALL = 4 * 2**20  # bytes of a checkpoint that is kept in results/ until its run is whole
LARGEST = 2.5e6  # bytes of a run's students in results/students/, of which there may be 40 MB in all


@dataclass(frozen=True)
class Job:
    """A run of the queue."""

    name: str
    preset: str
    minutes: float  # of an H200 by itself, as measured or estimated
    updates: int = 20_000
    seeds: int = 5
    seed: int = 0
    suite: str = "maze"
    looks: int = 5_000  # student updates between checkpoints that are kept and evaluated
    episodes: int = 100  # on each held-out level, for each seed
    changes: dict[str, Any] = field(default_factory=dict)
    home: Path = RUNS  # the folder its run is kept in

    @property
    def kept(self) -> Path:
        """What results/ has of it."""
        return self.home / self.name


MAZES = [
    Job("maze-dr", "maze/dr", 13),
    Job("maze-robust-plr", "maze/robust-plr", 18),
    Job("maze-accel-seeds-5-9", "maze/accel", 16, seed=5),
    Job("maze-accel-dr", "maze/accel-dr", 17),
    Job("maze-accel-reference-f32", "maze/accel-reference-f32", 18),
    Job("maze-accel-reference", "maze/accel-reference", 16),
    Job("maze-robust-plr-reference", "maze/robust-plr-reference", 18),
    Job("maze-dr-reference", "maze/dr-reference", 13),
    Job("maze-accel-reference-f32-seeds-5-9", "maze/accel-reference-f32", 18, seed=5),
    Job("maze-accel-reference-seeds-5-9", "maze/accel-reference", 16, seed=5),
    Job("maze-accel-dr-replay-rate-0.9", "maze/accel-dr", 9, 10_000, changes={"method.buffer.replay_rate": 0.9}),
    Job("maze-learned-editor", "maze/learned-editor", 10, 10_000),
    Job("maze-no-editor", "maze/no-editor", 9, 10_000),
    Job("maze-minimax", "maze/minimax", 24, 30_000),
    Job("maze-paired", "maze/paired", 55, 30_000),
]
DRIVERS = [  # of complexity: what selects levels
    *(
        Job(f"maze-accel-score-{score}", "maze/accel", 9, 10_000, changes={"method.score": score})
        for score in ("random", "pvl-sum", "learnability", "maxmc", "mna")
    ),
    Job("maze-accel-score-memory", "maze/accel", 9, 10_000, changes={"method.score_memory": 0.7}),
]
CELLS = [  # what remembers best
    Job(f"maze-accel-{cell}", "maze/accel", 5, 5_000, changes={"student.cell": cell})
    for cell in ("lstm", "gru", "s5", "transformer")
]
LATER = [  # what came after ACCEL, for the ranking of methods at 5,000 updates (`maze_methods.py rank`)
    *(
        Job(f"maze-{name}", f"maze/{name}", minutes, 5_000)
        for name, minutes in (
            *(("traced", 6), ("cenie", 6), ("accel-diverse", 7), ("accel-extinction", 5)),
            *(("paired-stable", 9), ("paired-population", 18)),
        )
    ),
    Job("maze-ncc-look-every-10", "maze/ncc", 22, 5_000, changes={"method.look_every": 10}),
]
LARGE_BATCH = {  # how SFL's students learn: of 256 slots in a rollout, four minibatches
    "ppo.learning_rate": 2.5e-4,
    "ppo.epochs": 4,
    "ppo.minibatches": 4,
    "ppo.clip": 0.04,
    "ppo.bootstrap": True,
    "ppo.time_limit": "end",
    "ppo.normalise": "minibatch",
    "student.activation": "relu",
}
FEW_SCOUTS = {"scout_every": 50, "scout_batches": 1, "scout_levels": 2048, "scout_episodes": 4, "buffer.capacity": 256}


def recipe(name: str, method: str, updates: int, slots: int, **changes: Any) -> Job:
    """A way to `maze/best`: at most a quarter of the 369 M env steps a seed that the paper's ACCEL has.

    Recipes are compared on validation levels alone, and those ahead are trained to the end.
    """
    settings = {path.replace("__", "."): value for path, value in changes.items()}
    job = Job(f"maze-recipe-{name}", f"maze/{method}", 4, updates, 3, suite="validation", looks=updates)
    return replace(job, changes=LARGE_BATCH | {"slots": slots, "ppo.decay": updates} | settings)


RECIPES = [
    recipe("dr", "dr", 1400, 256),
    recipe("plr-parallel", "plr-parallel", 1400, 128),
    recipe("plr-parallel-learnability", "plr-parallel", 1400, 128, method__score="learnability"),
    recipe("plr-parallel-s5", "plr-parallel", 1400, 128, student__cell="s5"),
    recipe("plr-parallel-0.995", "plr-parallel", 1400, 128, ppo__discount=0.995),
    recipe("plr-parallel-clip-0.2", "plr-parallel", 1400, 128, ppo__clip=0.2),
    recipe("accel-parallel", "accel-parallel", 1400, 84, ppo__discount=0.995),
    recipe("robust-plr", "robust-plr", 1120, 256, method__buffer__replay_rate=0.8),
    recipe("accel-learnability", "accel-dr", 620, 256, method__score="learnability"),
    recipe("sfl-few-scouts", "sfl", 860, 256, **{f"method.{name}": value for name, value in FEW_SCOUTS.items()}),
]
SUSPECTS = ("hero", "penalty", "hero-penalty", "crop")  # of keeping students from learning lava
LAVA = [
    Job(f"lava-{name}", f"lava/{name}", 10, 1_000, suite="lava", looks=250)
    for name in (
        *("dr", "dr-uniform", "robust-plr", "robust-plr-uniform", "accel", "accel-random", "paired", "minimax"),
        *(f"{method}-{suspect}" for suspect in SUSPECTS for method in ("dr", "robust-plr", "accel")),
    )
]
WALKERS = [  # the paper has 30,000 updates, and released what 20,000 make
    Job("bipedal-accel", "bipedal/accel", 220, 30_000, 10, suite="bipedal", episodes=50, home=RESULTS),
    *(
        Job(f"bipedal-{name}", f"bipedal/{name}", minutes, 20_000, suite="bipedal", episodes=50)
        for name, minutes in (("robust-plr", 150), ("dr", 100), ("alp-gmm", 100), ("paired", 150), ("minimax", 100))
    ),
]
QUEUE = [*MAZES, *CELLS, *RECIPES, *LAVA, *WALKERS, *DRIVERS, *LATER]
TRIAL = Job("trial", "maze/demo", 0, updates=200, seeds=2, looks=100)  # minutes on a CPU: `work WORK --only trial`


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    stages.add_parser("list")
    work = stages.add_parser("work")
    work.add_argument("work", type=Path)
    work.add_argument("--seconds", type=float, default=float("inf"))
    work.add_argument("--side-by-side", type=int, default=3)
    work.add_argument("--only", type=names, default=[job.name for job in QUEUE])
    for stage in ("train", "play"):  # what `work` starts for each run
        part = stages.add_parser(stage)
        part.add_argument("work", type=Path)
        part.add_argument("job", choices=[job.name for job in (*QUEUE, TRIAL)])
    pack = stages.add_parser("pack")
    pack.add_argument("work", type=Path)
    pack.add_argument("out", type=Path)
    unpack = stages.add_parser("unpack")
    unpack.add_argument("files", type=Path, nargs="+")
    unpack.add_argument("--work", type=Path, default=ROOT / "runs" / "campaign")
    stages.add_parser("table").add_argument("runs", nargs="*")
    return parser.parse_args()


def names(text: str) -> list[str]:
    """Runs of the queue, with commas between them."""
    known = {job.name for job in (*QUEUE, TRIAL)}
    if unknown := [name for name in text.split(",") if name not in known]:
        raise argparse.ArgumentTypeError(f"no run is called {unknown[0]!r}: `list` shows all")
    return text.split(",")


def named(name: str) -> Job:
    """The run of the queue that is called so."""
    return next(job for job in (*QUEUE, TRIAL) if job.name == name)


def reached(job: Job) -> int:
    """The student updates up to which results/ has evaluations of a run."""
    from tutelage.runs.evaluations import Subject

    looks = [Subject.of(path.name) for path in (job.kept / "evals").glob("*.csv")]
    return max((look.updates for look in looks if look and look.kind == "suite"), default=0)


def show_queue(args: argparse.Namespace) -> int:
    """Prints every run, how far it is, and how many minutes of a GPU by itself are left."""
    left = 0.0
    for job in QUEUE:
        done = reached(job)
        rest = job.minutes * (1 - done / job.updates)
        left += rest
        state = "done" if done >= job.updates else f"{done:6,} of {job.updates:,}, {rest:.0f} min left"
        print(f"{job.name:38}{job.preset:30}{job.seeds} seeds  {state}")
    print(f"{left:.0f} minutes of one GPU are left if runs follow one another; three side by side take 0.6 of that.")
    return 0


# Working


def work(args: argparse.Namespace) -> int:
    """Trains what is left of the queue, and says now and then how far everything is."""
    from tutelage.runs.engines.local import shared_gpus

    until = time.monotonic() + args.seconds
    waiting = [job for job in map(named, args.only) if reached(job) < job.updates]
    args.work.mkdir(parents=True, exist_ok=True)
    for job in waiting:
        if any(job.kept.glob("checkpoints/*.safetensors")) and not (args.work / job.name).exists():
            shutil.copytree(job.kept, args.work / job.name)
    with shared_gpus() as shared:
        return _work(args, waiting, until, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **shared})


def _work(args: argparse.Namespace, waiting: list[Job], until: float, shared: dict[str, str]) -> int:
    training: dict[str, subprocess.Popen] = {}
    playing: dict[str, subprocess.Popen] = {}
    failed: set[str] = set()
    try:
        while time.monotonic() < until:
            for name in [n for n, p in training.items() if p.poll() is not None]:
                failed |= {name} if training.pop(name).returncode else set()
            while waiting and len(training) < args.side_by_side:
                job = waiting.pop(0)
                first = {"CUDA_MPS_CLIENT_PRIORITY": "1" if training else "0"}  # 1: below the others
                training[job.name] = _start("train", args.work, job, shared | first)
                playing[job.name] = _start("play", args.work, job, {"JAX_PLATFORMS": "cpu"})
            if not training and all(p.poll() is not None for p in playing.values()):
                break
            print("; ".join(_standing(args.work, name) for name in playing), flush=True)
            time.sleep(LOOK_EVERY)
    finally:
        for process in [*training.values(), *playing.values()]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # a checkpoint is whole, however its writer ends
    if failed:
        print(f"Failed, see the logs in {args.work}: {', '.join(sorted(failed))}.", file=sys.stderr)
    return 1 if failed else 0


def _start(stage: str, folder: Path, job: Job, more: dict[str, str]) -> subprocess.Popen:
    log = (folder / f"{job.name}.{stage}.log").open("a")
    command = [sys.executable, "-u", __file__, stage, str(folder), job.name]
    environment = os.environ | more
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def _standing(folder: Path, name: str) -> str:
    def last(stage: str) -> str:
        log = folder / f"{name}.{stage}.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return lines[-1][:80] if lines else "…"

    return f"{name} {last('train')} ({last('play')})"


def train(args: argparse.Namespace) -> int:
    """Trains one run, or goes on with it."""
    from tutelage.runs.presets import preset
    from tutelage.runs.train import resume
    from tutelage.runs.train import train as begin
    from tutelage.runs.trainer import Progress

    job = named(args.job)
    path = args.work / job.name
    began, at = time.monotonic(), 0

    def show(progress: Progress) -> None:
        nonlocal began, at
        if progress.updates // 100 > at // 100:
            speed = (progress.updates - at) / (time.monotonic() - began)
            began, at = time.monotonic(), progress.updates
            print(f"{progress.updates} {speed:.1f}/s", flush=True)

    if (path / "config.json").exists():
        resume(path, on_progress=show, warn=print)
    else:
        config = preset(*job.preset.split("/"), **_cadences(job), seeds=job.seeds, seed=job.seed, updates=job.updates)
        begin(changed(config, job.changes), path, on_progress=show)
    print("trained", flush=True)
    return 0


def _cadences(job: Job) -> dict[str, int]:
    """Rows, looks and checkpoints rare enough to cost nothing; none of them changes what is learnt."""
    part = job.looks // 5
    return {
        "log_every": max(part // 5, 1),
        "eval_every": part,
        "checkpoint_every": max(part // 4, 1),
        "archive_every": job.looks,
    }


def changed(config: Any, changes: dict[str, Any]) -> Any:
    """A config with some fields set, named by their paths."""
    for path, value in changes.items():
        name, _, rest = path.partition(".")
        inner = changed(getattr(config, name), {rest: value}) if rest else value
        config = replace(config, **{name: inner})
    return config


def play(args: argparse.Namespace) -> int:
    """Plays the held-out levels with each kept checkpoint as it appears, and keeps its students."""
    from tutelage.runs.evaluate import write_csv
    from tutelage.runs.run import Run

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-max(len(cores) // 3, 1) :])  # a GPU waits for the core that tells it what is next
    job = named(args.job)
    path = args.work / job.name
    begun = reached(job)
    for updates in range(job.looks, job.updates + 1, job.looks):
        table = path / "evals" / f"{job.suite}-{updates:08d}.csv"
        if updates <= begun or table.exists():
            continue
        while not (path / "checkpoints" / f"{updates:08d}.safetensors").exists():
            time.sleep(2)
        run = Run(path)
        keep_students(run, updates)
        print(f"plays at {updates}", flush=True)
        write_csv(table, run.evaluate(job.suite, episodes=job.episodes, updates=updates))
        print(f"played at {updates}", flush=True)
    return 0


def keep_students(run: Any, updates: int) -> None:
    """The students of a checkpoint by themselves, one file a seed."""
    import jax
    import numpy as np

    from tutelage.runs.leaves import named_leaves
    from tutelage.runs.storage import write_arrays

    folder = run.path / "students" / f"{updates:08d}"
    folder.mkdir(parents=True, exist_ok=True)
    students = named_leaves(run.students(updates))
    for n, seed in enumerate(run.config.all_seeds):
        arrays = {name: np.asarray(leaf)[n] for name, leaf in jax.device_get(students).items()}
        write_arrays(folder / f"seed-{seed}.safetensors", arrays, {"updates": updates, "seed": seed})


# Bringing home


def pack(args: argparse.Namespace) -> int:
    """Writes what is worth keeping of every run."""
    args.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(config.parent for config in args.work.glob("*/config.json")):
        job = named(path.name)
        unfinished = not (path / "checkpoints" / f"{job.updates:08d}.safetensors").exists()
        states = newest(path) if unfinished else []
        small = [file for file in states if file.stat().st_size <= SMALL]
        with tarfile.open(args.out / f"{job.name}.tar", "w") as tar:
            for part in (*_worth_keeping(path), *small):
                tar.add(part, f"{job.name}/{part.relative_to(path)}")
        for file in states if not small else []:
            _cut(file, args.out, job.name)
    for made in sorted(args.out.iterdir()):
        print(f"{made.name:40}{made.stat().st_size / 2**20:8.1f} MiB")
    return 0


def _worth_keeping(path: Path) -> Iterator[Path]:
    yield from (path / name for name in ("config.json", "metrics.jsonl", "history.jsonl"))
    yield from sorted((path / "evals").glob("*.csv"))
    kept = sorted((path / "students").glob("*"))
    yield from sorted(kept[-1].glob("*")) if kept else ()


def newest(path: Path) -> list[Path]:
    """The newest checkpoint of a run, if it has one."""
    return sorted((path / "checkpoints").glob("0*.safetensors"))[-1:]


def _cut(file: Path, out: Path, name: str) -> None:
    data = file.read_bytes()
    for n, start in enumerate(range(0, len(data), PIECE)):
        (out / f"{name}.state.{file.stem}.{n}").write_bytes(data[start : start + PIECE])


def unpack(args: argparse.Namespace) -> int:
    """Puts packed runs where they belong."""
    for file in sorted(f for f in args.files if f.suffix == ".tar"):
        args.work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(file) as tar:
            tar.extractall(args.work, filter="data")
        job = named(file.stem)
        source, home = args.work / job.name, job.kept
        shutil.rmtree(home / "checkpoints", ignore_errors=True)
        shutil.copytree(source, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("students"))
        if kept := sorted((source / "students").glob("*/*.safetensors")):
            export_students(home, kept, STUDENTS / job.name)
        print(f"{home}: {reached(job):,} of {job.updates:,} updates")
    pieces = sorted((f for f in args.files if ".state." in f.name), key=lambda f: (f.stem, int(f.suffix[1:])))
    for stem in dict.fromkeys(f.stem for f in pieces):
        name, _, updates = stem.partition(".state.")
        folder = args.work / name / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        whole = b"".join(f.read_bytes() for f in pieces if f.stem == stem)
        (folder / f"{updates}.safetensors").write_bytes(whole)
    return 0


def export_students(run: Path, files: list[Path], to: Path) -> None:
    """A folder of the first students that a run kept, a file a seed, with their evaluations and a model card."""
    import numpy as np

    from tutelage.interop import hub
    from tutelage.runs.leaves import fill
    from tutelage.runs.run import Run, state_template
    from tutelage.runs.storage import read_arrays

    config = Run(run).config
    read = {header["seed"]: (arrays, header["updates"]) for arrays, header in map(read_arrays, files)}
    [updates] = {updates for _, updates in read.values()}
    one = sum(array.nbytes for array in read[config.seed][0].values()) / 2
    if one > LARGEST:
        print(f"{to} is not written: a student takes {one / 1e6:.1f} MB.")
        return
    config = replace(config, seeds=min(config.seeds, int(LARGEST / one)))
    seeds = [read[seed][0] for seed in config.all_seeds]
    stacked = {name: np.stack([arrays[name] for arrays in seeds]) for name in seeds[0]}
    students = fill(state_template(config).learner.student, stacked)
    hub.write(to, config, updates, students, hub.evaluations(run, config, updates), half=True)


def table(args: argparse.Namespace) -> int:
    """Prints the mean solved rate over levels, and its standard error over seeds, of every look at a run."""
    import numpy as np

    for path in sorted(RUNS.iterdir()):
        if args.runs and path.name not in args.runs:
            continue
        for look in sorted((path / "evals").glob("*.csv")):
            with look.open(newline="") as file:
                rows = list(csv.DictReader(file))
            seeds = sorted({row["seed"] for row in rows})
            means = [np.mean([float(r["solved_rate"]) for r in rows if r["seed"] == seed]) for seed in seeds]
            error = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else float("nan")
            print(
                f"{path.name:38}{look.stem:24}{np.mean(means):.3f} ± {error:.3f}  {json.dumps(list(map(float, means)))}"
            )
    return 0


def main() -> None:
    args = arguments()
    stages = {
        "list": show_queue,
        "work": work,
        "train": train,
        "play": play,
        "pack": pack,
        "unpack": unpack,
        "table": table,
    }
    sys.exit(stages[args.stage](args))


if __name__ == "__main__":
    main()
