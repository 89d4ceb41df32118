"""`tutelage sweep`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import jax

from tutelage.commands.options import Folder, Number, Shown
from tutelage.console import SweepTable, Terminal, points_table
from tutelage.errors import UserError
from tutelage.runs import presets, searches
from tutelage.runs import sweep as sweeps
from tutelage.runs.engines import SweepEngine
from tutelage.runs.engines.local import Local
from tutelage.runs.engines.ray import Ray
from tutelage.runs.engines.slurm import Slurm
from tutelage.runs.points import Watch, best, left, run_of
from tutelage.runs.sweep import Sweep as Points

Values = Annotated[tuple[str, ...], Shown("NAME=VALUE,…")]


@dataclass(frozen=True)
class Sweep:
    """Train methods with each combination of some settings, a run for each, and say which is best.

    Every point is a run directory in the sweep's folder. A sweep that was stopped, however it was stopped, goes on when
    the same command is given again. The best point is the one of highest score on the env's validation levels.
    """

    what: Annotated[str, Shown("WHAT", by_place=True)]
    """An env; or one of the ACCEL paper's searches (paper-maze, paper-lava, paper-bipedal-ppo, paper-bipedal-plr,
    paper-bipedal-edits); or a JSON file; or a sweep's folder, to see how its points stand."""
    methods: Annotated[str | None, Shown("METHOD,…")] = None
    """The methods' presets, with an env."""
    grid: Values = ()
    """A setting's values, such as method.buffer.capacity=1000,4000; may be given several times."""
    set: Values = ()
    """A setting for all points, such as ppo.epochs=3; may be given several times."""
    seeds: Number = None
    """Seeds of each point, trained together in one program."""
    updates: Number = None
    """Student updates of each point."""
    engine: Literal["local", "ray", "slurm"] = "local"
    """What works off the points: processes of this machine, a Ray cluster, or SLURM."""
    out: Folder = None
    """The sweep's folder; runs/WHAT-sweep, or for the paper's searches and files runs/ and their name, if not given."""
    resume: bool = False
    """Go on with the sweep in this folder."""
    print_config: bool = False
    """Print the sweep as a file that this command takes, and do nothing."""
    local: Local = Local()
    """With --engine local: one process a point, side by side."""
    ray: Ray = Ray()
    """With --engine ray (extra `ray`): tasks on the cluster that RAY_ADDRESS names, or on one of this machine."""
    slurm: Slurm = Slurm()
    """With --engine slurm (extra `slurm`): an array job, which goes on by itself once it is submitted."""


def run(command: Sweep) -> None:
    """Begins a sweep or goes on with it; or shows one."""
    # This process computes nothing: devices are for those that it starts.
    jax.config.update("jax_platforms", "cpu")
    terminal, folder = Terminal(), Path(command.what)
    if (folder / sweeps.FILE).is_file():
        _check_alone(command)
        points = sweeps.load(folder / sweeps.FILE)
    else:
        points = _points(command)
        folder = command.out or Path("runs") / _name(command.what)
        points.check()
    if command.print_config:
        print(json.dumps(points.to_json(), indent=1))
    elif command.resume or not (Path(command.what) / sweeps.FILE).is_file():
        _work(command, points, folder, terminal)
    else:
        _show(Watch(folder), terminal)


def _work(command: Sweep, points: Points, folder: Path, terminal: Terminal) -> None:
    engine = _engine(command)
    engine.check(points)
    with sweeps.opened(folder, points):
        watch = Watch(folder)
        names = left(watch.look())
        terminal.say(f"{len(points)} points → {folder}, {len(names)} of them not finished")
        with SweepTable(terminal, watch) as table:
            engine.run(folder.absolute(), names, table)
    if command.engine == "slurm":
        terminal.say(f"Submitted. `tutelage sweep {folder}` shows how the points stand.")
        return
    _show(watch, terminal)
    failed = [p for p in watch.look() if p.state == "failed"]
    if failed:
        logs = f"see {folder}/*.log"
        raise UserError(f"{len(failed)} of {len(points)} points failed, {logs}; {failed[0].name}: {failed[0].why}")


def _engine(command: Sweep) -> SweepEngine:
    return {"local": command.local, "ray": command.ray, "slurm": command.slurm}[command.engine]


def _show(watch: Watch, terminal: Terminal) -> None:
    points = watch.look()
    terminal.print(points_table(watch, points))
    chosen = best(points)
    if chosen is None:
        terminal.say("No point is chosen: none has finished and played validation levels.")
    else:
        terminal.say(f"Best on validation levels: {run_of(watch.folder, chosen.name)}. Test levels had no part in it.")
        terminal.say(f"Compare them with `tutelage report {watch.folder}/*/`.")


def _points(command: Sweep) -> Points:
    """The sweep that was asked for, with the settings that were given besides."""
    given = dict(sweeps.parse_setting(text) for text in command.set)
    if many := [name for name, values in given.items() if len(values) > 1]:
        raise UserError(f"--set gives {many[0]} several values: that is what --grid is for.")
    settings = {name: values[0] for name, values in given.items()}
    settings |= {n: v for n, v in (("seeds", command.seeds), ("updates", command.updates)) if v is not None}
    grid = dict(sweeps.parse_setting(text) for text in command.grid)
    found = _named_by(command, grid)
    return Points({name: sweeps.changed(config, settings) for name, config in found.bases.items()}, found.grid)


def _named_by(command: Sweep, grid: dict[str, tuple]) -> Points:
    if command.what in presets.DOMAINS:
        if command.methods is None:
            raise UserError(f"Which methods? As in `tutelage sweep {command.what} --methods accel,robust-plr`.")
        return Points.of_presets(command.what, command.methods.split(","), grid=grid)
    if command.methods is not None:
        raise UserError(f"--methods goes with an env: {', '.join(presets.DOMAINS)}.")
    path = Path(command.what)
    found = sweeps.load(path) if path.is_file() else searches.search(command.what)
    return Points(found.bases, {**found.grid, **grid})


def _check_alone(command: Sweep) -> None:
    """A sweep that is there is what it is."""
    if command.methods or command.grid or command.set or command.seeds or command.updates or command.out:
        raise UserError(f"{command.what} is a sweep already: its settings are in {command.what}/{sweeps.FILE}.")


def _name(what: str) -> str:
    return f"{what}-sweep" if what in presets.DOMAINS else Path(what).stem
