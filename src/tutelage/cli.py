"""The command line. Thin: it parses, calls the library, prints."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic

import jax
import tyro
from PIL import Image
from rich.console import Console
from rich.text import Text

from tutelage import __version__
from tutelage.console import (
    ProgressLine,
    StatusLine,
    clock,
    levels_table,
    plain_table,
    results_table,
    terminal,
)
from tutelage.errors import UserError, explain
from tutelage.runs import bench as benches
from tutelage.runs import config as configs
from tutelage.runs import evaluate as evaluation
from tutelage.runs import presets
from tutelage.runs import worst_case as worst_cases
from tutelage.runs.config import Config, E, M
from tutelage.runs.evaluations import Subject
from tutelage.runs.flags import tell_xla
from tutelage.runs.run import Run
from tutelage.runs.signals import Interrupted
from tutelage.runs.storage import make_folder, write_atomically
from tutelage.runs.train import resume as resume_run
from tutelage.runs.train import train as train_run

OVERVIEW = """Unsupervised environment design in JAX: a teacher evolves levels at the frontier of what a student can do.

  tutelage demo                    see it work: a few minutes on a laptop's CPU, ends with a page to look at
  tutelage presets                 what can be trained; `tutelage presets NAME` prints one in full
  tutelage train ENV METHOD        train; `tutelage train ENV METHOD --help` lists every setting
  tutelage resume DIR              go on with a run that was stopped
  tutelage eval DIR                play held-out levels with what was trained
  tutelage levels DIR              the levels a run found, and where they came from
  tutelage report DIR…             runs side by side: statistics, tables and figures on one page
  tutelage bench ENV               how fast it is on this machine

Every command explains itself with --help."""

Out = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True)
class Train(Generic[E, M]):
    """Train students with one of the presets, changed as you like.

    The run directory gets the config, metrics, checkpoints and every level that entered the buffer. A run that was
    stopped, however it was stopped, goes on with `tutelage resume DIR` as if nothing had happened.
    """

    config: Annotated[Config[E, M], tyro.conf.arg(name="")]
    out: Out = None
    """The run directory, new or empty; runs/ENV-METHOD if not given."""


@dataclass(frozen=True)
class Resume:
    """Go on with a run from its newest whole checkpoint. It ends as if it had never been stopped."""

    dir: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]
    """A run directory."""


@dataclass(frozen=True)
class Eval:
    """Play held-out levels with the students of a run, and write one CSV row for each level and seed.

    With --cvar, play many random levels instead, and report on those that are worst for each student.
    """

    dir: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]
    """A run directory."""
    suite: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Which levels: a suite of the run's env; its first if not given."""
    levels: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Play the levels of a JSON file instead, such as `tutelage levels --json FILE` writes or you wrote yourself. With
    --cvar, a number: how many random levels, 10,000 if not given."""
    episodes: int = 100
    """Episodes on each level, for each seed; with --cvar as many again, since those that choose do not report."""
    checkpoint: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """The student update whose checkpoint is played; the newest if not given."""
    greedy: bool = False
    """Take the most probable action instead of sampling."""
    real: bool = False
    """Play in the environment that the env was modelled on; needs the extra `real`."""
    cvar: bool = False
    """The worst case: the solved rate on the 0.1, 1, 10 and 100 % of random solvable levels that are hardest."""
    generator: Annotated[str | None, tyro.conf.arg(metavar="ENV/METHOD")] = None
    """With --cvar, draw the levels as this preset does, such as maze/sfl; as the run itself does if not given."""


@dataclass(frozen=True)
class Levels:
    """Show the levels a run found: those of highest score in the buffer, or the ancestors of one level."""

    dir: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]
    """A run directory."""
    top: int = 20
    """How many levels of highest score."""
    lineage: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Show the ancestors of the level with this id instead."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Only this seed's levels; for a lineage the run's first seed if not given."""
    checkpoint: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """The student update whose buffer is shown; the newest checkpoint's if not given."""
    png: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Write a picture of each level shown into this folder."""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write the levels shown to this file, as JSON."""


@dataclass(frozen=True)
class Report:
    """Compare runs on one page: held-out levels with honest statistics, learning curves, levels and their ancestry.

    Runs of the same settings pool their seeds. What cannot be used is said, and the rest is reported.
    """

    dirs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR [DIR ...]")]
    """Run directories."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("report")
    """The folder that gets index.html, figures/ and tables/."""
    suite: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The held-out levels to compare on; the suite that most runs were evaluated on if not given."""
    film: Annotated[str | None, tyro.conf.arg(metavar="LEVEL")] = None
    """The held-out level to film students on; the hardest that the best method solves if not given."""


@dataclass(frozen=True)
class Presets:
    """List the presets, or print one in full: a file that `tutelage train --config FILE` takes."""

    name: tyro.conf.Positional[str | None] = None
    """A preset, as ENV/METHOD."""


@dataclass(frozen=True)
class Bench:
    """Measure the env alone and whole student updates of a preset on this machine."""

    env: tyro.conf.Positional[str]
    """An env."""
    method: str = "accel"
    """The preset whose student updates are timed."""
    envs: tuple[int, ...] = (1024,)
    """Numbers of envs stepped side by side with random actions."""
    seeds: tuple[int, ...] = (1,)
    """Numbers of seeds trained in one program."""
    updates: int = 40
    """Student updates to time."""


@dataclass(frozen=True)
class Demo:
    """Train ACCEL on small mazes, evaluate the student on held-out ones, and write a page that shows it all."""

    out: Out = None
    """The run directory, new or empty; runs/demo if not given."""
    updates: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Student updates; the preset's if not given."""
    seed: int = 0
    """The seed."""


@dataclass
class App:
    """Where the commands print."""

    console: Console = field(default_factory=terminal)

    def train(self, args: list[str]) -> None:
        """`tutelage train`."""
        name, config, rest = _starting_point(args)
        kind: Any = Train[type(config.env), type(config.method)]  # pyright: ignore[reportInvalidTypeArguments]
        command = tyro.cli(kind, default=Train(config), args=rest, prog=f"tutelage train {name}".rstrip())
        path = command.out or _free_path(f"{config.env.name}-{presets.method_name(config.method)}")
        began = time.monotonic()
        tell_xla(command.config.env)
        self._say(f"{name or command.config.env.name} → {path}, on {benches.device_name()}")
        with self._progress(command.config) as line:
            train_run(command.config, path, on_progress=line, warn=self._warn)
        self._done(path, began)

    def resume(self, c: Resume) -> None:
        """`tutelage resume`."""
        run, began = Run(c.dir), time.monotonic()
        tell_xla(run.config.env)
        with self._progress(run.config) as line:
            resume_run(c.dir, on_progress=line, warn=self._warn)
        self._done(c.dir, began)

    def eval(self, c: Eval) -> None:
        """`tutelage eval`."""
        if c.episodes < 1:
            raise UserError(f"--episodes must be at least 1, not {c.episodes}.")
        run = Run(c.dir)
        tell_xla(run.config.env)
        if c.cvar:
            self._worst_case(c, run)
            return
        if c.generator is not None:
            raise UserError("--generator goes with --cvar only.")
        if c.levels is not None and (c.real or c.suite is not None):
            raise UserError("--levels goes with neither --suite nor --real: its levels are played in the env itself.")
        if c.levels is None:
            name, suite = run.suite(c.suite, real=c.real)
        else:
            name, suite = run.suite_from(c.levels)
        updates, state = run.snapshot(c.checkpoint)
        with StatusLine(self.console) as status:
            results = evaluation.evaluate(
                state.learner.student,
                run.config.all_seeds,
                suite,
                c.episodes,
                greedy=c.greedy,
                together=not c.real,  # the original plays on the host, where episodes take room
                on_level=status.update,
            )
        title = f"{name}: {_seeds(run)}, {c.episodes} episodes each, update {updates:,}"
        self.console.print(results_table(results, title))
        kind = "suite" if c.levels is None else "levels"
        self._keep(run, Subject(name, updates, kind, greedy=c.greedy, real=c.real), results)

    def _keep(self, run: Run, subject: Subject, results: Sequence[evaluation.Result]) -> None:
        path = run.path / "evals" / subject.file_name
        kept = evaluation.write_csv(path, results)
        told = f"written to {path}" if kept else f"not written: {path} is of more episodes"
        self._say(f"mean ± standard error over seeds; {told}")

    def _worst_case(self, c: Eval, run: Run) -> None:
        if c.real or c.suite is not None:
            raise UserError("--cvar goes with neither --suite nor --real: it plays random levels in the env itself.")
        count = worst_cases.LEVELS if c.levels is None else _whole_number(str(c.levels))
        updates, _ = run.snapshot(c.checkpoint)
        with StatusLine(self.console) as status:
            results = worst_cases.worst_case_of(
                run,
                updates=updates,
                generator=c.generator,
                levels=count,
                episodes=c.episodes,
                greedy=c.greedy,
                on_progress=status.update,
            )
        title = f"{count:,} random levels: {_seeds(run)}, {c.episodes} + {c.episodes} episodes each, update {updates:,}"
        self.console.print(results_table(results, title, average=False))
        self._keep(run, Subject(c.generator or "", updates, "worst", count, c.greedy), results)

    def levels(self, c: Levels) -> None:
        """`tutelage levels`."""
        from tutelage.runs.browse import ancestors, best

        run = Run(c.dir)
        shown = best(run, c.top, c.seed, c.checkpoint) if c.lineage is None else ancestors(run, c.lineage, c.seed)
        self.console.print(levels_table(str(c.dir), shown, self.console.width))
        self._say("gen: edits since the first ancestor; born: student update of admission; score: estimate of regret")
        design = run.config.env.design()
        if c.png is not None:
            make_folder(c.png)
            for n, level in enumerate(shown):
                picture = io.BytesIO()
                Image.fromarray(design.render(level.level)).save(picture, format="png")
                write_atomically(c.png / f"{n:03d}-seed{level.seed}-{level.id}.png", picture.getvalue())
            self._say(f"{len(shown)} pictures in {c.png}")
        if c.json is not None:
            data = [{**level.facts(), "level": design.to_json(level.level)} for level in shown]
            write_atomically(c.json, (json.dumps(data, indent=1) + "\n").encode())
            self._say(f"{len(shown)} levels in {c.json}")

    def report(self, c: Report) -> None:
        """`tutelage report`."""
        from tutelage.report.pages.report import report

        with StatusLine(self.console) as status:
            gathered = report(c.dirs, c.out, suite=c.suite, film=c.film, on_chapter=status.update)
        for note in gathered.notes:
            self._warn(note)
        self._say(f"Open {c.out / 'index.html'} in a browser; figures, tables and their data lie beside it.")

    def presets(self, c: Presets) -> None:
        """`tutelage presets`."""
        if c.name is not None:
            config = presets.preset(*_split(c.name))
            print(json.dumps(configs.to_json(config, presets.method_name(config.method)), indent=2))
            return
        table = plain_table("Presets", "name", "what it is", "updates")
        table.columns[1].justify = "left"
        for name, (what, config) in presets.PRESETS.items():
            table.add_row(name, what, f"{config.updates:,}")
        self.console.print(table)
        self._say("Train one with `tutelage train ENV METHOD`.")

    def bench(self, c: Bench) -> None:
        """`tutelage bench`."""
        config = presets.preset(c.env, c.method)
        tell_xla(config.env)
        self._say(f"{c.env}/{c.method}, {config.slots} slots × {config.steps} steps, on {benches.device_name()}")
        with StatusLine(self.console) as status:
            for envs in c.envs:
                status.update(f"env alone, {envs:,} envs")
                self._rows(benches.table([benches.env_speed(config.env, envs)], []))
            for seeds in c.seeds:
                status.update(f"student updates, {seeds} seeds")
                self._rows(benches.table([], [benches.update_speed(config, seeds, updates=c.updates)]))

    def demo(self, c: Demo) -> None:
        """`tutelage demo`."""
        from tutelage.report.pages.report import write_report

        config = replace(presets.preset("maze", "demo"), seed=c.seed)
        config = config if c.updates is None else replace(config, updates=c.updates)
        path, began = c.out or _free_path("demo"), time.monotonic()
        self._say(
            f"ACCEL on {config.env.size}×{config.env.size} mazes, from empty rooms; {config.updates:,} student updates."
        )
        with self._progress(config) as line:
            run = train_run(config, path, on_progress=line, warn=self._warn)
        self._say(f"Trained in {clock(time.monotonic() - began)}. Now levels it has never seen:")
        results = run.evaluate("small", episodes=100)
        evaluation.write_csv(path / "evals" / Subject("small", config.updates).file_name, results)
        self.console.print(results_table(results, "Held-out mazes, 100 episodes each"))
        page = path / "index.html"
        with self.console.status(Text("drawing the page")):
            write_report([run], path)
        self._say(f"Open {page} in a browser. The levels themselves: tutelage levels {path} --png {path}/pictures")

    def _progress(self, config: Config[Any, Any]) -> ProgressLine:
        design = config.env.design()
        level = jax.eval_shape(design.sample, jax.random.key(0))
        return ProgressLine(self.console, list(jax.eval_shape(design.describe, level))[:2])

    def _done(self, path: Path, began: float) -> None:
        self._say(f"Done in {clock(time.monotonic() - began)}. Evaluate with `tutelage eval {path}`.")

    def _rows(self, rows: Sequence[tuple[str, str]]) -> None:
        for label, text in rows:
            self.console.print(f"{label:32}{text}", soft_wrap=True)

    def _warn(self, text: str) -> None:
        self.console.print(text, style="yellow", soft_wrap=True)

    def _say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


def _starting_point(args: list[str]) -> tuple[str, Config[Any, Any], list[str]]:
    """The configuration that `train`'s settings change: a preset, or a file."""
    if args[:1] == ["--config"] and len(args) > 1:
        path = Path(args[1])
        return f"--config {path}", configs.load(path, presets.DOMAINS, presets.METHODS), args[2:]
    if len(args) < 2 or args[0].startswith("-") or args[1].startswith("-"):
        if {"-h", "--help"} & set(args):
            print(_TRAIN_HELP)
            raise SystemExit(0)
        raise UserError("`tutelage train` wants an env and a method, as in `tutelage train maze accel`.")
    return f"{args[0]} {args[1]}", presets.preset(args[0], args[1]), args[2:]


_TRAIN_HELP = f"""usage: tutelage train ENV METHOD [SETTINGS]
       tutelage train --config FILE [SETTINGS]

{Train.__doc__}
Envs and methods: {", ".join(presets.PRESETS)}.
`tutelage train ENV METHOD --help` lists every setting with its value in that preset.
A FILE is what `tutelage presets ENV/METHOD` prints, or a run's config.json."""


def _whole_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"With --cvar, --levels is the number of random levels, at least 1, not {text!r}.")
    return int(text)


def _seeds(run: Run) -> str:
    return f"{run.config.seeds} seed{'s' * (run.config.seeds > 1)}"


def _split(name: str) -> tuple[str, str]:
    env, _, method = name.partition("/")
    return env, method


def _free_path(name: str) -> Path:
    """runs/name, or the first of runs/name-2, runs/name-3, … that is not there yet."""
    path, n = Path("runs") / name, 1
    while path.exists():
        n += 1
        path = Path("runs") / f"{name}-{n}"
    return path


COMMANDS: dict[str, tuple[Any, Callable[[App, Any], None]]] = {
    "train": (None, App.train),
    "resume": (Resume, App.resume),
    "eval": (Eval, App.eval),
    "levels": (Levels, App.levels),
    "report": (Report, App.report),
    "presets": (Presets, App.presets),
    "bench": (Bench, App.bench),
    "demo": (Demo, App.demo),
}


def _dispatch(args: list[str]) -> None:
    if not args or args[0] in ("-h", "--help"):
        print(OVERVIEW)
        return
    if args[0] == "--version":
        print(f"tutelage {__version__}")
        return
    if args[0] not in COMMANDS:
        raise UserError(f"Unknown command {args[0]!r}; known: {', '.join(COMMANDS)}.")
    shape, run = COMMANDS[args[0]]
    run(App(), args[1:] if shape is None else tyro.cli(shape, args=args[1:], prog=f"tutelage {args[0]}"))


def _keep_compiled_programs() -> None:
    """Programs compiled once are found again by the next process, which makes a resumed run start at once."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(home / "tutelage"))


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line. 0: done; 2: something must be put right; 128 + n: ended by signal n."""
    _keep_compiled_programs()
    _print_anything()
    try:
        _dispatch(list(sys.argv[1:] if args is None else args))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        return 128 + stop.number
    except KeyboardInterrupt:
        print("Stopped. `tutelage resume DIR` goes on from the last checkpoint.", file=sys.stderr)
        return 130
    except (UserError, OSError, MemoryError, RuntimeError) as error:
        if (sentence := explain(error)) is None:
            raise
        print(f"tutelage: {sentence}", file=sys.stderr)
        return 2
    return 0


def _print_anything() -> None:
    """Names of files may hold bytes that are no text, and not every terminal has every character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
