"""`tutelage export`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tutelage.commands.options import File, Folder, Number, RunPath, Shown
from tutelage.console import Terminal
from tutelage.errors import UserError
from tutelage.interop.hub import LICENCE
from tutelage.interop.hub import export as export_folder
from tutelage.interop.onnx import export as export_onnx
from tutelage.runs.run import Run, load_student


@dataclass(frozen=True)
class Export:
    """Take students out of a run: as a folder that others can load, or as a file for programs without JAX."""

    run: RunPath
    """A run directory, or a folder of students."""
    hub: Folder = None
    """Write a new folder in Hugging Face's layout: weights, config, evaluations and a model card. `tutelage eval DIR`
    plays what it holds."""
    onnx: File = None
    """Write one step of one student as ONNX; needs the extra `onnx`."""
    seed: Number = None
    """Which seed; if not given, all of them into a folder, the first into an ONNX file."""
    checkpoint: Number = None
    """The student update whose checkpoint is taken; the newest if not given."""
    half: bool = False
    """Round the weights of a folder to 16 bits, which halves its size."""
    licence: Annotated[str, Shown("NAME")] = LICENCE
    """The licence that a folder's model card names, by its name on Hugging Face."""


def run(command: Export) -> None:
    """Writes what was asked for."""
    if command.hub is None and command.onnx is None:
        raise UserError("`tutelage export` wants --hub DIR or --onnx FILE.")
    run, terminal = Run(command.run), Terminal()
    if command.hub is not None:
        options = {"updates": command.checkpoint, "seed": command.seed, "half": command.half}
        export_folder(run, command.hub, licence=command.licence, **options)
        terminal.say(f"Students in {command.hub}. Play them with `tutelage eval {command.hub}`.")
    if command.onnx is not None:
        student = load_student(command.run, command.seed, updates=command.checkpoint)
        any_number = export_onnx(student, run.config, command.onnx)
        terminal.say(f"{command.onnx}: {'any number of students' if any_number else 'one student'} at a time.")
