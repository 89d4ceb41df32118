"""What is to be said to XLA before JAX starts."""

from __future__ import annotations

import os

from tutelage.env import Domain, HasFlags


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
