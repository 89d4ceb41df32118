"""A process that begins runs when it is told to, at the same moment as another, and says what came of it."""

import json
import sys
import time
from pathlib import Path

from tutelage.errors import UserError
from tutelage.runs import claim, storage


class Hasty(storage.Disk):
    """Waits for no disk: what a power cut leaves is tried elsewhere."""

    def sync(self, file: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


def begin(path: Path, config: bytes, holds: bool) -> None:
    try:
        with claim.claimed(path, config):
            if holds:  # the run as long as the other tries
                say("won")
                sys.stdin.readline()
        if not holds:
            say("won")
            sys.stdin.readline()
    except UserError as error:
        say(str(error))
        sys.stdin.readline()


def say(what: str) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    config, patient = sys.argv[1].encode(), sys.argv[2] == "patient"
    storage.disk = storage.Disk() if patient else Hasty()
    assert "jax" not in sys.modules
    for line in sys.stdin:
        path, delay, holds = json.loads(line)
        end = time.perf_counter() + delay
        while time.perf_counter() < end:
            pass
        begin(Path(path), config, holds)


if __name__ == "__main__":
    main()
