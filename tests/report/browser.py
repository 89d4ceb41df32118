"""A headless Chromium to look at pages with, over its debugging pipe."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One tab. Commands are those of the DevTools protocol."""

    def __init__(self, profile: Path):
        inward, self._to = os.pipe()
        self._from, outward = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        command = ["bash", "-c", f'exec "$@" 3<&{inward} 4>&{outward}', "bash", CHROMIUM or "", *flags]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(inward, outward),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(inward)
        os.close(outward)
        self._ids, self._rest, self._session = itertools.count(1), b"", None
        self.events: list[dict[str, Any]] = []
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; what else is said meanwhile goes to `events`."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._from, 1 << 20)
            assert part, "the browser is gone"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(
        self, path: Path, fragment: str = "", *, width: int = 1280, dark: bool = False, script: bool = True
    ) -> None:
        """Loads a file as a screen of some width shows it. The fragment is what follows the # of its address."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.call("Page.navigate", url=f"{path.as_uri()}?{next(self._ids)}{fragment}")  # so that it is loaded anew
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._read())

    def ask(self, expression: str) -> Any:
        """What a JavaScript expression is worth, or its promise; works where the page's scripts are off too."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and refusals that the browser logged since the page was opened."""
        self.ask("0")
        logged = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        return logged + [str(e) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]

    def close(self) -> None:
        """Ends the browser."""
        self.call("Browser.close")
        self._process.wait(timeout=20)
        os.close(self._to)
        os.close(self._from)
