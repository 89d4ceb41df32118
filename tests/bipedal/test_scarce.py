import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.envs.bipedal.scarce import where_scarce


def halved(x):
    return {"half": x / 2}


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("lanes", [1, 7, 100])
def test_each_lane_gets_what_it_asked_for(lanes: int, share: float) -> None:
    """None, a few, many or all of them."""
    rng = np.random.default_rng(0)
    wanted, x = rng.random(lanes) < share, rng.random((3, lanes)).astype(np.float32)
    have = where_scarce(jnp.asarray(wanted), halved, jnp.asarray(x), {"half": -x}, share=16)["half"]
    np.testing.assert_allclose(have, np.where(wanted, x / 2, -x))


def test_few_are_worked_on_at_a_time() -> None:
    """The work is done on a sixteenth of the lanes."""
    program = jax.make_jaxpr(lambda w, x: where_scarce(w, jnp.tanh, x, x, share=16))(jnp.zeros(64, bool), jnp.zeros(64))
    assert "f32[4] = tanh" in str(program)
    assert "f32[64] = tanh" not in str(program)
