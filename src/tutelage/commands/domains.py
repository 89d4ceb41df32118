"""Envs of one's own, which a run directory does not hold and the command line is told of: `--domain MODULE:NAME`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from tutelage.commands.options import Shown
from tutelage.env import Domain
from tutelage.errors import UserError, reason, unknown
from tutelage.runs.flags import start_jax
from tutelage.runs.run import Run

DomainName = Annotated[str | None, Shown("MODULE:NAME")]


def load(name: str | None) -> Domain | None:
    """What a module holds under a name: a domain, or what makes one when called; None for None.

    The module is imported, and so its code is run; it is also looked for where the command was typed.
    """
    if name is None:
        return None
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise UserError(f"--domain wants a module and a name in it, as in mygame:DOMAIN, not {name!r}.")
    found = _attribute(_module(module, name), attribute, name)
    domain = found() if isinstance(found, type) or (callable(found) and not isinstance(found, Domain)) else found
    if not isinstance(domain, Domain):
        raise UserError(f"--domain {name}: this is a {type(domain).__name__}, not a `tutelage.Domain`.")
    return domain


def open_run(path: Path, domain: str | None) -> Run:
    """A run, with JAX started for its env."""
    run = Run(path, load(domain))
    start_jax(run.config.env)
    return run


def _module(module: str, name: str) -> Any:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(module)
    except Exception as error:  # whatever the module does
        what = type(error).__name__
        raise UserError(f"--domain {name}: {module} cannot be imported ({what}: {reason(error)}).") from error


def _attribute(module: Any, attribute: str, name: str) -> Any:
    if not hasattr(module, attribute):
        known = [known for known in dir(module) if not known.startswith("_")]
        raise UserError(f"--domain {name}: {unknown(f'name in {module.__name__}', attribute, known)}")
    return getattr(module, attribute)
