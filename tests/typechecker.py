"""The checker of types and shapes in tests: where a float is asked for, an int will do."""

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check(fn: Callable) -> Callable:
    """For jaxtyping, which asks twice at each call: before it about the arguments, after it about them and the result.

    The second time only the result is looked at: the arguments are those of the first.
    """
    result = fn.__annotations__.get("return", Any)
    if result is not Any:
        fn.__annotations__ = {"return": result}
    return _checked(fn)
