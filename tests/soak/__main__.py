"""The long trial: harmed runs, random command lines and kills, until so many runs were harmed or the time is up."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import compiling  # noqa: F401 - before JAX is imported
from soak import harm, kills, lines, originals
from soak.calls import Call, memory
from soak.kills import Nursery
from soak.originals import Original

LINE_EVERY = 4  # harmed runs
SHOWN_EVERY = 50  # harmed runs
ENVS = {"maze": 8, "lava": 1, "bipedal": 1}  # how often each
TOLD = 2  # examples of one fault that are printed


@dataclass
class Tally:
    """What was tried, and what came of it."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[float, str] = (0.0, "")

    def add(self, done: Call) -> None:
        """A command that was called."""
        words = " ".join(done.args)[:200]
        self.counts[f"exit code {done.code}"] += 1
        self.slowest = max(self.slowest, (round(done.seconds, 1), words))
        self.largest = max(self.largest, (round(done.megabytes), words))

    def complain(self, where: str, fault: str) -> None:
        """Something that must not be; its like is printed but a few times."""
        self.faults[fault[:80]] += 1
        if self.faults[fault[:80]] <= TOLD:
            print(f"{where}\n    {fault[:1500]}", flush=True)

    def show(self, began: float) -> None:
        """A line for a program."""
        facts = dict(self.counts) | {"faults": self.faults.total(), "slowest": self.slowest, "largest_mb": self.largest}
        clock = {"minutes": round((time.monotonic() - began) / 60, 1), "cpu_s": round(time.process_time())}
        print(json.dumps(facts | clock | {"resident_mb": round(memory())}), flush=True)

    def keep(self, file: Path, following: int) -> None:
        """Writes what was counted, and the number of the case that comes next."""
        facts = {"following": following, "counts": self.counts, "faults": self.faults}
        beside = file.with_name(f".{file.name}.new")
        beside.write_text(json.dumps(facts | {"slowest": self.slowest, "largest": self.largest}))
        beside.replace(file)

    @staticmethod
    def kept(file: Path) -> tuple[Tally, int]:
        """What was counted before, and the case that comes next."""
        if not file.exists():
            return Tally(), 0
        facts = json.loads(file.read_text())
        following, parts = facts.pop("following"), {name: Counter(facts.pop(name)) for name in ("counts", "faults")}
        return Tally(**parts, **{name: tuple(found) for name, found in facts.items()}), following


@dataclass
class Trial:
    """A seed, a folder to work in, and the runs that are harmed."""

    seed: str
    home: Path
    nursery: Nursery | None = None
    envs: Mapping[str, int] = field(default_factory=lambda: ENVS)
    commands: Sequence[str] = harm.COMMANDS
    most: int | None = None  # commands that are called on one run
    tally: Tally = field(default_factory=Tally)
    made: dict[str, Original] = field(default_factory=dict)
    whole: dict[str, dict[str, object]] = field(default_factory=dict)

    def original(self, env: str) -> Original:
        """An env's small run, trained when it is first asked for."""
        if env not in self.made:
            self.made[env] = originals.make(env, self.home / "originals")
            with self.folder() as folder, harm.quickly(Random(env)):
                assert not (faults := harm.rehearse(self.made[env], folder, self.commands)), faults
        return self.made[env]

    def random(self, what: str, n: int) -> tuple[Random, str]:
        """The randomness of one case, which depends on nothing else, and its env."""
        rng = Random(f"{self.seed} {what} {n}")
        return rng, rng.choices([*self.envs], [*self.envs.values()])[0]

    def harm(self, n: int) -> None:
        """One harmed run."""
        rng, env = self.random("run", n)
        original = self.original(env)
        with self.folder() as folder, harm.quickly(rng):
            case = harm.suffer(rng, original, folder, self.commands, self.most)
        self.tally.counts[f"runs {env}"] += 1
        for done in case.calls:
            self.tally.add(done)
        for fault in case.faults:
            self.tally.complain(f"run {n}, {env}, {case.run.name!r}, {', '.join(case.harm)}", fault)

    def say(self, n: int) -> None:
        """One command line."""
        rng, env = self.random("line", n)
        original = self.original(env)
        with self.folder() as folder, harm.quickly(rng):
            os.chdir(folder)
            done = lines.say(rng, lines.places(folder, original))
        self.tally.counts["lines"] += 1
        self.tally.add(done)
        if done.fault:
            self.tally.complain(f"line {n}, {[a[:80] for a in done.args]}", done.fault)

    def kill(self, n: int) -> None:
        """One training, killed again and again; of each env in turn."""
        assert self.nursery is not None
        rng, env = self.random("kills", n)[0], [*self.envs][n % len(self.envs)]
        if env not in self.whole:
            whole = self.home / f"{env}-whole"
            config = kills.write_config(env, self.home)
            code = self.nursery.end(self.nursery.begin("train", "--config", config, "--out", whole))
            assert code == 0, code
            self.whole[env] = kills.contents(whole)
        with self.folder() as folder:
            count, faults = kills.killed(rng, self.nursery, self.home / f"{env}.json", folder / "run", self.whole[env])
        self.tally.counts[f"kills {env}"] += count
        for fault in faults:
            self.tally.complain(f"kills {n}, {env}", fault)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder, removed again whatever comes to be in it."""
        path = self.home / "case"
        path.mkdir()
        try:
            yield path
        finally:
            os.chdir(self.home)
            harm.clear(path)


def attempt(trial: Trial, what: Callable[[int], None], n: int) -> None:
    """A mistake of the trial's own is told too, and ends nothing."""
    try:
        what(n)
    except Exception:
        trial.tally.complain(f"{what.__name__} {n}", traceback.format_exc())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--runs", type=int, default=5000, help="harmed runs")
    parser.add_argument("--minutes", type=float, default=60.0, help="no new case is begun after so long")
    parser.add_argument("--seed", default="0", help="whatever chooses the cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--env", choices=[*ENVS], help="of one env alone")
    parser.add_argument("--commands", type=int, help="call so many commands on each run; all, if not given")
    parser.add_argument("--kills", type=int, default=300, help="harmed runs between trainings that are killed; 0: none")
    parser.add_argument("--only-kills", type=int, default=0, help="kill so many trainings, and try nothing else")
    parser.add_argument("--keep", type=Path, help="a file of counts, with which a trial that was ended goes on")
    options = parser.parse_args()
    began = time.monotonic()
    tally, first = Tally(), options.first
    if options.keep is not None:
        options.keep = options.keep.absolute()
        tally, first = Tally.kept(options.keep)
    with kills.nursery() as nursery, tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        envs = {options.env: 1} if options.env else ENVS
        trial = Trial(options.seed, Path(home), nursery, envs, most=options.commands, tally=tally)
        whats: list[tuple[int, Callable[[int], None]]] = [(1, trial.harm), (LINE_EVERY, trial.say)]
        whats = [(1, trial.kill)] if options.only_kills else [*whats, (options.kills, trial.kill)]
        for n in range(first, options.only_kills or options.first + options.runs):
            if time.monotonic() - began > 60 * options.minutes:
                break
            for every, what in whats:
                if every and n % every == every - 1:
                    attempt(trial, what, n // every)
            if options.keep is not None:
                tally.keep(options.keep, n + 1)
            if n % SHOWN_EVERY == SHOWN_EVERY - 1 or options.only_kills:
                trial.tally.show(began)
        trial.tally.show(began)
    for fault, count in trial.tally.faults.most_common():
        print(f"{count:6} × {fault}")
    return min(trial.tally.faults.total(), 1)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        raise SystemExit(main())
