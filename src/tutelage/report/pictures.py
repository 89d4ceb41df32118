"""Pictures of levels: the best of the final buffer, and the ancestors of one of them."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from PIL import Image

from tutelage.env import DesignSpace, Level
from tutelage.errors import UserError
from tutelage.runs.browse import Found, ancestors, best
from tutelage.runs.run import Run

SMALLEST, LARGEST = 240, 640  # pixels of a picture's longer side


@dataclass(frozen=True)
class Exhibit:
    """A level to be shown, with its picture as a data URI."""

    found: Found
    picture: str
    width: int
    height: int


def best_of_each_seed(run: Run, at_least: int = 12) -> list[list[Found]]:
    """Each seed's levels of highest score in the final buffer: its best tenth. Scores of two seeds do not compare."""
    top = max(at_least, run.config.method.buffer.capacity // 10)
    return [best(run, top, seed) for seed in run.config.all_seeds]


def gallery(design: DesignSpace, found: Sequence[Sequence[Found]], n: int = 12) -> list[Exhibit]:
    """The `n` best different levels, all seeds' first ones before their second ones; shown by score."""
    ranked = sorted(((rank, f) for levels in found for rank, f in enumerate(levels)), key=lambda r: (r[0], -r[1].score))
    different: dict[bytes, Found] = {}
    for _, f in ranked:
        different.setdefault(_bytes(f.level), f)
    chosen = list(different.values())[:n]
    return [exhibit(design, f) for f in sorted(chosen, key=lambda f: -f.score)]


def ancestry(run: Run, found: Sequence[Sequence[Found]], n: int = 10) -> list[Exhibit]:
    """The line of descent of the level of highest generation among those found, the better one of equals.

    At most `n` of its levels, evenly spaced: the generator's level is the first, the chosen one the last. Empty if no
    level was edited, or if the archive does not hold the whole line.
    """
    last = max((f for levels in found for f in levels), key=lambda f: (f.generation, f.score), default=None)
    if last is None or last.generation == 0:
        return []
    try:
        line = ancestors(run, last.id, last.seed)
    except (UserError, KeyError):
        return []
    return [exhibit(run.config.env.design(), line[i]) for i in evenly(len(line), n)]


def exhibit(design: DesignSpace, found: Found) -> Exhibit:
    """A level with its picture."""
    image = fitted(Image.fromarray(design.render(found.level)))
    return Exhibit(found, png_uri(image), *image.size)


def evenly(length: int, n: int) -> list[int]:
    """At most `n` of the indices 0 … length − 1, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(n, length)).round().astype(int)).tolist()


def fitted(image: Image.Image) -> Image.Image:
    """Tiny pictures enlarged by a whole factor, huge ones shrunk."""
    longest = max(image.size)
    if longest > LARGEST:
        return image.resize(_scaled(image.size, LARGEST / longest), Image.Resampling.LANCZOS)
    return image.resize(_scaled(image.size, float(max(1, SMALLEST // longest))), Image.Resampling.NEAREST)


def png_uri(image: Image.Image) -> str:
    """The picture itself as an address."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return data_uri("image/png", file.getvalue())


def data_uri(kind: str, data: bytes) -> str:
    """Any file as an address."""
    return f"data:{kind};base64,{b64encode(data).decode()}"


def _scaled(size: tuple[int, int], factor: float) -> tuple[int, int]:
    width, height = (max(1, round(side * factor)) for side in size)
    return width, height


def _bytes(level: Level) -> bytes:
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(level))
