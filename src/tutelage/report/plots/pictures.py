"""Pictures of levels and of episodes, as addresses that hold the picture itself."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from PIL import Image, features

from tutelage.env import DesignSpace, Domain, bits_of
from tutelage.report.facts.levels import evenly
from tutelage.report.facts.runs import Missing
from tutelage.report.facts.students import Episode
from tutelage.runs.browse import Found

SMALLEST, LARGEST = 240, 640  # pixels of a picture's longer side
MAX_FRAMES = 240
MAX_BYTES = 1_100_000  # before base64, which adds a third


@dataclass(frozen=True)
class Exhibit:
    """A level to be shown, with its picture as a data URI."""

    found: Found
    picture: str
    width: int
    height: int


@dataclass(frozen=True)
class Animation:
    """An episode as data URIs: moving, and its last picture for those who want nothing to move."""

    episode: Episode
    moving: str
    still: str
    width: int
    height: int


def gallery(design: DesignSpace, found: Sequence[Sequence[Found]], n: int = 12) -> list[Exhibit]:
    """The `n` best different levels, all seeds' first ones before their second ones; shown by score."""
    ranked = sorted(((rank, f) for levels in found for rank, f in enumerate(levels)), key=lambda r: (r[0], -r[1].score))
    different: dict[bytes, Found] = {}
    for _, f in ranked:
        different.setdefault(bits_of(f.level), f)
    chosen = list(different.values())[:n]
    return [exhibit(design, f) for f in sorted(chosen, key=lambda f: -f.score)]


def exhibit(design: DesignSpace, found: Found) -> Exhibit:
    """A level with its picture."""
    try:
        image = fitted(Image.fromarray(design.render(found.level)))
    except NotImplementedError as error:
        raise Missing("This env does not draw its levels.") from error
    return Exhibit(found, png_uri(image), *image.size)


def animate(domain: Domain, episode: Episode) -> Animation:
    """The episode, some steps left out where it is long."""
    kept, film = np.asarray(evenly(episode.steps + 1, MAX_FRAMES)), getattr(domain, "film", None)
    try:
        pictures = film(episode.level, jax.tree.map(lambda x: x[kept], episode.states)) if film else []
    except NotImplementedError:
        pictures = []
    if not pictures:
        raise Missing("This env does not draw its episodes.")
    frames = [fitted(Image.fromarray(picture)) for picture in pictures]
    return Animation(episode, encode(frames), png_uri(frames[-1]), *frames[-1].size)


def encode(frames: Sequence[Image.Image]) -> str:
    """An endless animation of at most some 12 seconds that rests on its last picture, as a data URI."""
    each = int(np.clip(12_000 / len(frames), 50, 160))
    times = [each] * (len(frames) - 1) + [1000]
    if not features.check("webp"):
        return data_uri("image/gif", _save(frames, times, "GIF"))
    data = _save(frames, times, "WEBP", lossless=True, quality=60)
    for scale in (1.0, 0.6, 0.35):
        if len(data) <= MAX_BYTES:
            break
        smaller = [f.resize((round(f.width * scale), round(f.height * scale))) for f in frames]
        data = _save(smaller, times, "WEBP", quality=70)
    return data_uri("image/webp", data)


def _save(frames: Sequence[Image.Image], times: list[int], kind: str, **options: int) -> bytes:
    file = io.BytesIO()
    frames[0].save(file, kind, save_all=True, append_images=frames[1:], duration=times, loop=0, **options)
    return file.getvalue()


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
