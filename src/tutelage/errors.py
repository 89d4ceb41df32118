"""The one exception that is meant for a person."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right. Its text is one clear sentence that says how."""
