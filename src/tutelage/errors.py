"""What is meant for a person: errors that the user can put right, and how they are worded."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any, get_args

LONGEST = 80  # characters of a value that are shown


class UserError(Exception):
    """Something the user can put right. Its text is one clear sentence that says how."""


def explain(error: BaseException) -> str | None:
    """A sentence about a failure that no program can rule out, or None for a mistake of this program.

    A disk may be full and a file be forbidden; memory may not suffice; JAX may not find its device.
    """
    if isinstance(error, UserError):
        return str(error) if str(error).endswith((".", "!", "?")) else f"{error}."
    if isinstance(error, OSError) and error.errno is not None:
        return f"{named(error)}{reason(error)}."
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        return f"{shown(error.object)} holds what is no character: nothing can be called so."
    if isinstance(error, MemoryError) or _is_jax(error, "RESOURCE_EXHAUSTED"):
        return "Memory does not suffice: fewer --seeds, --slots or --steps need less."
    if isinstance(error, RuntimeError) and "Unable to initialize backend" in str(error):
        return f"JAX finds no such device: {one_line(str(error), 300)}"
    return None


def _is_jax(error: BaseException, status: str) -> bool:
    return type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError") and status in str(error)


def named(error: OSError) -> str:
    """The file an error is about, ready to be put before the reason."""
    names = [one_line(str(name), 200) for name in (error.filename, error.filename2) if name is not None]
    return f"{' → '.join(names)}: " if names else ""


def reason(error: BaseException) -> str:
    """Why something failed, in the system's words."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return one_line(text, 200)


def shown(value: object) -> str:
    """A value from outside as it stands in a sentence: at most so long, on one line."""
    try:
        return one_line(_short.repr(value), LONGEST)
    except (ValueError, RecursionError):  # such as an integer of very many digits
        return f"a very large {type(value).__name__}"


_short = reprlib.Repr()
_short.maxlevel, _short.maxlong, _short.maxstring, _short.maxother = 3, 40, 60, 60


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """What is known by nearly the same letters, the nearest alone."""
    return difflib.get_close_matches(word, list(known), 1)


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """A sentence about a word that is not known: the nearest that is, or all of them if none is near."""
    known = list(known)
    near = nearest(word, known)
    return f"Unknown {what}; " + (f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}.")


def listed(kind: Any) -> str:
    """The values of a `Literal`, as a sentence names them."""
    return ", ".join(map(str, get_args(kind)))


def check_choices(of: object, **kinds: Any) -> None:
    """Raises a `ValueError` where a field of something is none of the values of the `Literal` given for it."""
    for name, kind in kinds.items():
        if (value := getattr(of, name)) not in get_args(kind):
            raise ValueError(f"`{name}` must be one of {listed(kind)}, not {value!r}.")


def one_line(text: str, longest: int) -> str:
    """Without line breaks and characters that steer a terminal, and cut where it is too long."""
    text = "".join(c if c.isprintable() else " " for c in text[: longest + 1])
    return text if len(text) <= longest else text[:longest] + "…"
