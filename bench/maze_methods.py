"""Which method is ahead on mazes after the same number of student updates?

    python bench/maze_methods.py train OUT [--methods sfl,accel,dr] [--updates 5000] [--every 1000] [--seconds 1500]
    python bench/maze_methods.py rank OUT/methods.csv [MORE.csv]

`train` trains every method's preset side by side on this machine, each in a process and a run directory `OUT/METHOD` of
its own, plays the suite `maze` with what had been learnt every so many updates, and gathers it all in
`OUT/methods.csv`. Called again it goes on where it was stopped. With `--seconds`, methods that are not through by then
stop where they are. On a GPU, programs take turns unless NVIDIA's MPS runs, which lets them share it.

`rank` prints, for each number of updates that all methods have reached, the solved rates and the order of the methods;
in brackets, the places a method would take in 95 % of bootstraps over seeds.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

HERE = Path(__file__)
EPISODES = 50  # on each level, for each seed
LOOK_EVERY = 20  # seconds
BOOTSTRAPS = 10_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    for name in ("train", "one"):  # `one` is what `train` starts for each method
        train = stages.add_parser(name)
        train.add_argument("out", type=Path)
        train.add_argument("--methods", type=lambda names: names.split(","), default=None)
        train.add_argument("--updates", type=int, default=5000)
        train.add_argument("--every", type=int, default=1000)
        train.add_argument("--seeds", type=int, default=5)
        train.add_argument("--episodes", type=int, default=EPISODES)
        train.add_argument("--seconds", type=float, default=float("inf"))
    stages.add_parser("rank").add_argument("tables", type=Path, nargs="+")
    return parser.parse_args()


def train(args: argparse.Namespace) -> int:
    """Starts a process for each method, says now and then how far they are, and gathers what they write."""
    methods = args.methods or _all_methods()
    args.out.mkdir(parents=True, exist_ok=True)
    options = [f"--{name}={getattr(args, name)}" for name in ("updates", "every", "seeds", "episodes", "seconds")]
    shared = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUNBUFFERED": "1"}
    processes = {}
    for method in methods:
        log = (args.out / f"{method}.log").open("a")
        command = [sys.executable, str(HERE), "one", str(args.out), f"--methods={method}", *options]
        processes[method] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=shared)
    began, shown = time.monotonic(), ""
    while any(p.poll() is None for p in processes.values()):
        time.sleep(min(LOOK_EVERY, 1 + time.monotonic() - began))
        state = ", ".join(f"{m} {_last_line(args.out / f'{m}.log')}" for m in methods)
        if state != shown:
            print(f"{time.monotonic() - began:.0f} s: {state}", flush=True)
        shown = state
        gather(args.out, methods)
    gather(args.out, methods)
    failed = [method for method, p in processes.items() if p.returncode]
    if failed:
        print(f"Failed, see the logs in {args.out}: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else 0


def _all_methods() -> list[str]:
    from tutelage.runs.presets import PRESETS

    names = [name.split("/")[1] for name in PRESETS if name.startswith("maze/")]
    return [name for name in names if name != "demo"]


def _last_line(log: Path) -> str:
    lines = log.read_text().splitlines()
    return lines[-1] if lines else "…"


def gather(out: Path, methods: list[str]) -> None:
    """All evaluations of all methods as one table."""
    rows = []
    for method in methods:
        for path in sorted((out / method / "evals").glob("maze-*.csv")):
            with path.open(newline="") as file:
                updates = int(path.stem.split("-")[1])
                rows += [{"method": method, "updates": updates, **row} for row in csv.DictReader(file)]
    if rows:
        draft = out / "methods.csv.part"
        with draft.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        draft.replace(out / "methods.csv")


class TimeIsUp(Exception):
    """A run was stopped before its end."""


def one(args: argparse.Namespace) -> int:
    """Trains one method, or goes on with it, and plays the suite with every checkpoint that is kept."""
    from tutelage.runs.evaluate import write_csv
    from tutelage.runs.presets import preset
    from tutelage.runs.run import Run
    from tutelage.runs.train import resume
    from tutelage.runs.train import train as start
    from tutelage.runs.trainer import Progress

    [method], until = args.methods, time.monotonic() + args.seconds
    path = args.out / method

    def show(progress: Progress) -> None:
        print(progress.updates, flush=True)
        play()
        if time.monotonic() > until:
            raise TimeIsUp

    def play() -> None:
        run = Run(path)
        for updates in run.checkpoints:
            table = path / "evals" / f"maze-{updates:08d}.csv"
            if updates and updates % args.every == 0 and not table.exists():
                print(f"plays at {updates}", flush=True)
                write_csv(table, run.evaluate("maze", episodes=args.episodes, updates=updates))

    print("compiles", flush=True)
    try:
        if path.exists():
            resume(path, on_progress=show)
        else:
            wanted = {"seeds": args.seeds, "updates": args.updates, "archive_every": args.every, "eval_every": 0}
            start(preset("maze", method, **wanted), path, on_progress=show)
    except TimeIsUp:
        pass
    play()
    print("done", flush=True)
    return 0


def rank(args: argparse.Namespace) -> int:
    """Prints the tables."""
    from tutelage.envs.maze.suite import PAPER

    scores = solved_rates(args.tables)
    reached = sorted(set.intersection(*(set(of) for of in scores.values())))
    for updates in reached:
        paper = {m: _mean_of(of[updates], PAPER) for m, of in scores.items()}
        everything = {m: _mean_of(of[updates], of[updates]) for m, of in scores.items()}
        low, high = places(paper)
        print(
            f"\n{updates:,} student updates\n\n| method | place | the paper's levels | all levels |\n|---|---|---|---|"
        )
        for place, m in enumerate(sorted(paper, key=lambda m: -paper[m].mean()), 1):
            span = f" ({low[m]}–{high[m]})" if low[m] < high[m] else ""
            print(f"| `{m}` | {place}{span} | {_with_error(paper[m])} | {_with_error(everything[m])} |")
    return 0


Rates = dict[str, dict[int, dict[str, dict[int, float]]]]


def solved_rates(tables: list[Path]) -> Rates:
    """By method, updates, level and seed; where two tables have the same, the later one counts."""
    rates: Rates = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for path in tables:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                of = rates[row["method"]][int(row["updates"])]
                of[row["level"]][int(row["seed"])] = float(row["solved_rate"])
    return rates


def _mean_of(rates: dict[str, dict[int, float]], levels: Iterable[str]) -> np.ndarray:
    """The mean over levels, by seed."""
    seeds = sorted(next(iter(rates.values())))
    return np.mean([[rates[level][seed] for seed in seeds] for level in levels], axis=0)


def places(means: dict[str, np.ndarray]) -> tuple[dict[str, int], dict[str, int]]:
    """The first and the last place that each method takes in 95 % of bootstraps over its seeds."""
    random = np.random.default_rng(0)
    drawn = [of[random.integers(0, len(of), (BOOTSTRAPS, len(of)))].mean(axis=1) for of in means.values()]
    place = 1 + np.argsort(np.argsort(-np.array(drawn), axis=0), axis=0)
    low, high = np.percentile(place, (2.5, 97.5), axis=1, method="nearest")
    return dict(zip(means, low.astype(int), strict=True)), dict(zip(means, high.astype(int), strict=True))


def _with_error(values: np.ndarray) -> str:
    return f"{values.mean():.2f} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}"


def main() -> None:
    args = arguments()
    sys.exit({"train": train, "one": one, "rank": rank}[args.stage](args))


if __name__ == "__main__":
    main()
