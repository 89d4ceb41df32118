"""One file of HTML that holds a page and all it needs: style, scripts, engines, weights, levels. Nothing is loaded.

What is read with the page is never taken for markup or for a script: JSON is escaped, bytes are base64, and the page's
own policy lets no script run but the one whose hash it names.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from typing import Any

from tutelage.page.scripts import joined, text

STYLES = ("base.css", "room/room.css", "grid/grid.css", "walker/walker.css", "evolve/evolve.css")
PAGE, HELPER = "main.js", "play/worker.js"
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='3' fill='%23343a48'/%3E%3Cpath d='M3 3h7v7h3v3H3z' fill='%23f8f6f0'/%3E"
    "%3Crect x='10' y='10' width='3' height='3' fill='%232ea05c'/%3E%3C/svg%3E"
)


def document(title: str, contents: Mapping[str, Any], blocks: Mapping[str, bytes]) -> str:
    """The page: its table of contents becomes JSON, each block of bytes gzip in base64, decoded when asked for."""
    style, script = "".join(map(text, STYLES)), joined(PAGE)
    head = (
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="{escape(ICON)}">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n"
    )
    data = [_data("contents", "application/json", _json(contents)), _data("helper", "text/plain", joined(HELPER))]
    data += [_data(f"block-{name}", "application/octet-stream", _packed(block)) for name, block in blocks.items()]
    body = text("body.html") + "".join(data) + f"<script>{script}</script>\n"
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}</body>\n</html>\n'


def _policy(style: str, script: str) -> str:
    """What the page may do: run its own script and style, compile its engines, start its own helpers; nothing else."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest(script)}' 'wasm-unsafe-eval'",
        "style-src": f"'sha256-{digest(style)}'",
        "worker-src": "blob:",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "helper",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def digest(source: str) -> str:
    """By what a page's policy names a script or a style that it lets run."""
    return b64encode(sha256(source.encode()).digest()).decode()


def _data(name: str, kind: str, content: str) -> str:
    """A block that the browser keeps and does not run; nothing in it ends it early."""
    assert "</script" not in content.lower(), name
    assert "<!--" not in content, name
    return f'<script type="{kind}" id="{escape(name)}">{content}</script>\n'


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _packed(block: bytes) -> str:
    return b64encode(gzip.compress(block, 9, mtime=0)).decode()
