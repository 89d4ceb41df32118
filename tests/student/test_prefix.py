"""Running figures, beside plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.student.prefix import running


def join(a, b):
    """Matrix product: associative, and the order matters."""
    return jnp.einsum("...ij,...jk->...ik", a, b)


@pytest.mark.parametrize("length", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_it_joins_all_values_in_their_order(length: int, reverse: bool) -> None:
    values = jax.random.normal(jax.random.key(length), (length, 3, 2, 2))
    order = range(length - 1, -1, -1) if reverse else range(length)
    expected, so_far = np.zeros(values.shape, np.float32), np.broadcast_to(np.eye(2), (3, 2, 2))
    for t in order:
        so_far = np.einsum("...ij,...jk->...ik", so_far, np.asarray(values[t]))
        expected[t] = so_far
    np.testing.assert_allclose(running(join, values, reverse=reverse), expected, rtol=1e-4, atol=1e-5)


def test_it_takes_trees_whose_leaves_differ_in_shape() -> None:
    def combine(a, b):
        (count_a, best_a), (count_b, best_b) = a, b
        return count_a + count_b, jnp.maximum(best_a, best_b)

    values = (jnp.ones(6, jnp.int32), jax.random.normal(jax.random.key(0), (6, 4)))
    count, best = running(combine, values)
    np.testing.assert_array_equal(count, np.arange(1, 7))
    np.testing.assert_array_equal(best, np.maximum.accumulate(np.asarray(values[1])))
