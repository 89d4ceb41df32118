"""The pictures of the documentation that a program draws: `python docs/pictures.py` writes them all anew.

Learning curves come from results/methods.csv, levels from the design spaces and suites themselves.
"""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from PIL import Image

import tutelage as tut
from tutelage.envs.maze.suite import PAPER

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "results" / "methods.csv"
IMAGES = ROOT / "docs" / "images"
GAP = 8  # pixels

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]  # student updates; mean solved rate over seeds, its standard error


def digest() -> str:
    """The table that the curves stand for; every curve's file carries it."""
    return hashlib.sha256(TABLE.read_bytes()).hexdigest()[:16]


def curves() -> dict[str, Curve]:
    """Each method's solved rate on the paper's twelve test levels."""
    rates: dict[str, dict[int, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["level"] in PAPER:
                rates[row["method"]][int(row["updates"])][int(row["seed"])].append(float(row["solved_rate"]))
    return {method: _curve(of) for method, of in rates.items()}


def _curve(of: dict[int, dict[int, list[float]]]) -> Curve:
    updates = sorted(of)
    seeds = [np.array([np.mean(levels) for levels in of[u].values()]) for u in updates]
    errors = [s.std(ddof=1) / np.sqrt(len(s)) for s in seeds]
    return np.array(updates), np.array([s.mean() for s in seeds]), np.array(errors)


def draw_curves() -> None:
    """A figure a method: its curve over those of all others."""
    every = curves()
    for method, (updates, mean, error) in every.items():
        with mpl.rc_context({"svg.hashsalt": "tutelage", "svg.fonttype": "none", "font.family": "sans-serif"}):
            figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
            for other, (x, y, _) in every.items():
                if other != method:
                    axes.plot(x, y, color="#bbbbbb", linewidth=0.8)
            axes.fill_between(updates, mean - error, mean + error, color="#d9480f", alpha=0.2, linewidth=0)
            axes.plot(updates, mean, color="#d9480f", linewidth=2, label=method)
            axes.set(xlabel="student updates", ylabel="solved rate", ylim=(0, 1), xlim=(0, None))
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, loc="upper left")
            path = IMAGES / "curves" / f"{method}.svg"
            figure.savefig(path, metadata={"Date": None, "Description": f"data: {digest()}"})
            plt.close(figure)
        path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def draw_levels() -> None:
    """New levels, a level and its children, and the test levels of every env."""
    key = jax.random.key(1)
    for env, method, across in (("maze", "accel-dr", 6), ("lava", "dr", 6), ("bipedal", "dr", 2)):
        domain = tut.preset(env, method).env
        design = domain.design()
        new = [design.sample(k) for k in jax.random.split(key, across)]
        _save(f"{env}-new", [design.render(level) for level in new], across)
        _save(f"{env}-edits", _generations(design, across), across)
        suite = next(iter(domain.suites().values()))
        _save(f"{env}-suite", [design.render(level.draw(key)) for level in suite if "XL" not in level.name], across)


def _generations(design: Any, count: int) -> list[np.ndarray]:
    level, pictures = design.sample(jax.random.key(3)), []
    for n in range(count):
        pictures.append(design.render(level))
        level = design.edit(jax.random.key(n), level, 5)
    return pictures


def _save(name: str, pictures: list[np.ndarray], across: int) -> None:
    """Pictures in rows, each fitted into a cell as large as the first, on white."""
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // across)
    sheet = Image.new("RGB", (across * (width + GAP) - GAP, rows * (height + GAP) - GAP), "white")
    for n, picture in enumerate(pictures):
        cell = Image.fromarray(picture)
        cell.thumbnail((width, height), Image.Resampling.LANCZOS)
        sheet.paste(cell, (n % across * (width + GAP), n // across * (height + GAP)))
    sheet.thumbnail((1200, 1200), Image.Resampling.LANCZOS)
    sheet.quantize(256, Image.Quantize.FASTOCTREE).save(IMAGES / "levels" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    for folder in ("curves", "levels"):
        (IMAGES / folder).mkdir(parents=True, exist_ok=True)
    draw_curves()
    draw_levels()
