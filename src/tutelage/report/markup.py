"""HTML that cannot be broken by what it shows: every text is escaped unless it is `Markup` already."""

from __future__ import annotations

from html import escape

_VOID = frozenset({"img", "meta", "source"})


class Markup(str):
    """A piece of finished HTML."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """`<tag attributes>children</tag>`. An attribute that is a Python keyword ends in `_`; `_` within is a hyphen."""
    opening = tag + "".join(f' {_attribute(k)}="{escape(v)}"' for k, v in attributes.items())
    return Markup(f"<{opening}>") if tag in _VOID else Markup(f"<{opening}>{join(*children)}</{tag}>")


def join(*children: str) -> Markup:
    """Pieces one after another, texts escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in children))


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
