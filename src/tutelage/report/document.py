"""An HTML file that needs nothing but itself: no network, and no script unless one was put in."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib import resources

from tutelage.report.markup import Markup, element

# What a page may load: its own pictures and style, and a script only if it is the very one that was put in.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(title: str, *body: Markup, script: str = "") -> str:
    """A page that needs nothing but itself; what its script adds is a convenience."""
    policy = POLICY + (f"; script-src 'sha256-{_digest(script)}'" if script else "")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", title),
        element("style", Markup(resource("page.css"))),
    )
    scripts = [element("script", Markup(script))] if script else []
    return "<!doctype html>\n" + element("html", head, element("body", *body, *scripts), lang="en") + "\n"


def resource(name: str) -> str:
    """A text file of this package."""
    return resources.files("tutelage.report").joinpath(name).read_text("utf-8")


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
