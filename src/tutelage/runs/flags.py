"""How JAX is started: what is to be said to XLA before, and what to say if there is no such device."""

from __future__ import annotations

import os

import jax

from tutelage.env import Domain, HasFlags
from tutelage.errors import UserError


def start_jax(*domains: Domain) -> None:
    """Starts JAX for what is to be computed with these domains; a `UserError` if there is no such device."""
    for domain in domains:
        tell_xla(domain)
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # the latter where the plugin of a platform is not installed
        asked = os.environ.get("JAX_PLATFORMS", "")
        raise UserError(
            f"JAX finds no device, and JAX_PLATFORMS is {asked!r}: unset it, or install what it asks for, such as "
            "pip install 'tutelage[cuda12]'."
        ) from error


def tell_xla(domain: Domain) -> None:
    """Adds what a domain wants to XLA_FLAGS, unless that says something of it already.

    XLA reads it once, when JAX first computes something; after that, this has no effect.
    """
    if not isinstance(domain, HasFlags):
        return
    said = os.environ.get("XLA_FLAGS", "").split()
    known = {flag.partition("=")[0] for flag in said}
    more = [flag for flag in domain.xla_flags if flag.partition("=")[0] not in known]
    if more:
        os.environ["XLA_FLAGS"] = " ".join([*said, *more])
