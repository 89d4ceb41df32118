"""The translator: where arrays lie, and what has no translation."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tutelage.errors import UserError
from tutelage.page.translate.memory import Places, written
from tutelage.page.translate.module import Module
from tutelage.page.translate.program import Constants, Program
from tutelage.page.translate.values import scalar


def test_what_has_no_translation_is_named() -> None:
    with pytest.raises(UserError, match="primitive 'cholesky' has no translation"):
        Module().add("f", lax.linalg.cholesky, {"x": jax.ShapeDtypeStruct((3, 3), jnp.float32)}, ("y",))


def test_a_result_may_be_written_where_its_argument_is_read() -> None:
    """Then the argument is kept elsewhere first, and only then."""
    swapped = lambda state: (state[1], state[0])  # noqa: E731
    shapes = (jax.ShapeDtypeStruct((100,), jnp.float32),) * 2
    kept, read = Module(), Module()
    kept.add("f", swapped, {"state": shapes}, ("state",))
    read.add("f", swapped, {"before": shapes}, ("after",))
    assert "m0" in kept.text()
    assert "m0" not in read.text()


def test_arrays_that_are_not_needed_at_once_share_a_place() -> None:
    """What a loop reads is needed until its end."""
    p, places = Program(Constants()), Places()
    zero = scalar("float32", "0", (100,))

    def filled(value):
        made = p.array("float32", (100,))
        p.copy(made, value)
        return made

    first = filled(zero)
    second = filled(first)
    with p.block("for(;;)"):
        third = filled(second)
        fourth = filled(third)
    text = written(p.lines, places)
    place = {v.array: text.split(f"const {v.array}=(float*)m")[1][0] for v in (first, second, third, fourth)}
    assert place[first.array] in (place[third.array], place[fourth.array]), "the first is not read any more"
    assert place[second.array] not in (place[third.array], place[fourth.array]), "the loop reads the second again"
    assert places.sizes == [400] * 3
