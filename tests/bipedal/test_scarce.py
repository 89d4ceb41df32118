import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.envs.bipedal.scarce import where_scarce


def halved(x):
    return {"half": x / 2}


def run(wanted, x):
    return where_scarce(wanted, halved, x, {"half": -x})["half"]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_each_member_gets_what_it_asked_for(share: float) -> None:
    """None, a few, many or all of them."""
    rng = np.random.default_rng(0)
    wanted, x = rng.random(100) < share, rng.random((100, 3)).astype(np.float32)
    have = jax.jit(jax.vmap(run))(jnp.asarray(wanted), jnp.asarray(x))
    np.testing.assert_allclose(have, np.where(wanted[:, None], x / 2, -x))


def test_alone_and_in_batches_of_batches() -> None:
    """No `vmap`, and one in another."""
    np.testing.assert_allclose(run(jnp.bool_(True), jnp.ones(2)), [0.5, 0.5])
    rng = np.random.default_rng(1)
    wanted, x = rng.random((3, 40)) < 0.3, rng.random((3, 40, 2)).astype(np.float32)
    have = jax.jit(jax.vmap(jax.vmap(run)))(jnp.asarray(wanted), jnp.asarray(x))
    np.testing.assert_allclose(have, np.where(wanted[..., None], x / 2, -x))


def test_few_are_worked_on_at_a_time() -> None:
    """The work is done on a sixteenth of the batch."""
    program = jax.make_jaxpr(jax.vmap(lambda w, x: where_scarce(w, jnp.tanh, x, x)))(jnp.zeros(64, bool), jnp.zeros(64))
    assert "f32[4] = tanh" in str(program)
    assert "f32[64] = tanh" not in str(program)
