"""Numbers and names as a reader wants them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

LONGEST = 120  # characters of a name that anybody else gave


def number(x: float) -> str:
    """Whole numbers whole, others with two decimals (three below 0.1); a dash where there is none."""
    if not math.isfinite(x):
        return "–"
    digits = 0 if x == round(x) or abs(x) >= 100 else 2 if abs(x) >= 0.1 else 3
    return f"{x:,.{digits}f}".replace("-", "−")


def percent(share: float) -> str:
    """63%; one decimal where a whole number would say none at all."""
    if not math.isfinite(share):
        return "–"
    return f"{100 * share:.{1 if 0 < share < 0.01 else 0}f}%"


def count(n: float) -> str:
    """4,096, and from a million on 4.1 million."""
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if n >= size:
            return f"{n / size:.1f} {word}"
    return f"{n:,.0f}"


def plural(n: int, word: str) -> str:
    """1 seed, 2 seeds."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def duration(seconds: float) -> str:
    """2 h 5 min, 3 min 20 s or 12 s."""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    if hours:
        return f"{hours} h {m} min"
    return f"{m} min {s} s" if m else f"{s} s"


def plain(name: str) -> str:
    """A name from a file, fit to be shown anywhere: what cannot be printed is replaced, and no name is endless."""
    shown = "".join(c if c.isprintable() else "�" for c in name)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def words(name: str) -> str:
    """A metric's name in words: path_length is path length."""
    return name.replace("_", " ")


def title(name: str) -> str:
    """A class's name in words: RobustPLR is Robust PLR."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def slug(name: str) -> str:
    """Fit to be a part of a file's name: Robust PLR is robust-plr."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST] or "unnamed"


def sentence_case(text: str) -> str:
    """With a capital first letter, the rest as it is."""
    return text[:1].upper() + text[1:]
