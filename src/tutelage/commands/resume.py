"""`tutelage resume`."""

from __future__ import annotations

from dataclasses import dataclass

from tutelage.commands import domains
from tutelage.commands.domains import DomainName
from tutelage.commands.options import Number, RunPath
from tutelage.commands.training import Watch
from tutelage.runs import train
from tutelage.runs.run import Run


@dataclass(frozen=True)
class Resume:
    """Go on with a run from its newest whole checkpoint. It ends as if it had never been stopped."""

    run: RunPath
    """A run directory."""
    updates: Number = None
    """Student updates to train for in all, from here on; as the run's config says if not given."""
    devices: Number = None
    """Devices of this host that the seeds are spread over, evenly; as many as before if not given."""
    domain: DomainName = None
    """The env of your own that the run was made with."""


def run(command: Resume) -> None:
    """Trains on."""
    domain = domains.load(command.domain)
    with Watch(Run(command.run, domain).config, command.run) as watch:
        options = {"updates": command.updates, "devices": command.devices}
        train.resume(command.run, domain=domain, on_progress=watch, warn=watch.terminal.warn, **options)
