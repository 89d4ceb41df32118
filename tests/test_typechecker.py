"""Types and shapes are checked in tests: arguments before a call, results after it."""

import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float, TypeCheckError, jaxtyped

from tutelage.statistics import cvar
from typechecker import check


@jaxtyped(typechecker=check)
def doubled(x: Float[Array, " n"], *, wrongly: bool = False) -> Float[Array, " n"]:
    return jnp.concatenate([x, x]) if wrongly else 2 * x


def test_arguments_and_results_are_checked():
    assert doubled(jnp.ones(2)).tolist() == [2, 2]
    with pytest.raises(TypeCheckError):
        doubled(jnp.ones((2, 2)))
    with pytest.raises(TypeCheckError):
        doubled(jnp.ones(2, int))
    with pytest.raises(TypeCheckError):
        doubled(jnp.ones(2), wrongly=True)


def test_so_are_those_of_the_library():
    with pytest.raises(TypeCheckError):
        cvar("levels", 0.5)  # pyright: ignore[reportArgumentType]
