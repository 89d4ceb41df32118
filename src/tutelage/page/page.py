"""A page to play in: students of any runs, the levels they met, and the engines that run them, in one file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import jax

import tutelage
from tutelage.errors import UserError
from tutelage.page.document import document
from tutelage.page.rooms import Cargo, room_of
from tutelage.page.students import guests
from tutelage.runs.run import Run
from tutelage.runs.storage import make_folder, write_atomically


def write_page(runs: Sequence[Run], out: Path, *, most: int | None = None) -> int:
    """Writes the page and says how many bytes it has. Each domain gets a room; at most so many students come into each.

    If no number is said, it is ten, or fewer where their weights would come to more than 5 MB.

    A run whose env has no room, or whose student no engine, is a `UserError`.
    """
    content = page_of(runs, most=most).encode()
    make_folder(out.parent)
    write_atomically(out, content)
    return len(content)


def page_of(runs: Sequence[Run], *, most: int | None = None) -> str:
    """The page as text."""
    if not runs:
        raise UserError("There is no run to make a page of.")
    if most is not None and most < 1:
        raise UserError(f"--students must be at least 1, not {most}.")
    cargo, by_domain = Cargo(), defaultdict(list)
    for guest in guests(runs):
        by_domain[guest.run.config.env.name].append(guest)
    rooms = [room_of(group, most, cargo) for group in by_domain.values()]
    made = {"tutelage": tutelage.__version__, "jax": jax.__version__}
    contents = {"format": 1, "made": made, "engines": cargo.manifests, "rooms": rooms}
    return document("Tutelage: play the teacher", contents, cargo.blocks)
