"""What a package index shows of the README, and the project's addresses.

The README's links are relative, so that they work in any copy of the repository. On a package index they need the
address of one: `REPOSITORY=https://… python -m build`, or `make release REPOSITORY=https://…`. Without, as when
installing from a copy, the README stays as it is and no address is given.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class CustomMetadataHook(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by Hatchling before anything is built."""
        root = Path(self.root)
        version = re.search(r'__version__ = "(.+)"', (root / "src" / "tutelage" / "__init__.py").read_text())
        assert version is not None
        text = (root / "README.md").read_text()
        address = os.environ.get("REPOSITORY", "").rstrip("/")
        metadata["urls"] = addresses(address, f"v{version[1]}") if address else {}
        text = absolute(text, address, f"v{version[1]}") if address else text
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def addresses(repository: str, tag: str) -> dict[str, str]:
    """The links beside the description."""
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/start.md",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def absolute(text: str, repository: str, tag: str) -> str:
    """Markdown whose links and pictures lead to a tag of the repository."""

    def lead(link: re.Match[str]) -> str:
        picture, label, target = link["picture"], link["label"], link["target"]
        if re.match(r"[a-z]+:|#", target):
            return link[0]
        return f"{picture}[{label}]({repository}/{'raw' if picture else 'blob'}/{tag}/{target})"

    return re.sub(r"(?P<picture>!?)\[(?P<label>[^]]*)\]\((?P<target>[^)]+)\)", lead, text)
