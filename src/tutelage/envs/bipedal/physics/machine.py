"""What the physics leaves to the machine that it is computed on.

How a value is kept, a loop is ended or one contact of eight is found is another matter on a CPU, on a GPU and within a
kernel, and what is quick there decides how quick a step is. These few operations are the methods of a `Machine`, which
does them plainly, for everybody; `run.machines` has those that are quicker. The physics asks for them by `machine()`,
which is the one that `computed_on` names.

To translate the physics into another language, or to look at what it computes, trace it as it is: where no machine is
named, nothing is fenced, and loops and conditions are those of the formulas.

    jax.make_jaxpr(lambda *given: run.stages.step(*given, table))(world, efforts, ground)

What a translator can do better, it says in a machine of its own:

    with computed_on(MyMachine()): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.physics.tools import anywhere, spread, where

Kept = TypeVar("Kept", bound=PyTree)
State = TypeVar("State", bound=PyTree)
In = TypeVar("In", bound=PyTree)
Out = TypeVar("Out", bound=PyTree)
Once = Callable[[Int[Array, ""], State], State]
Known = Bool[Array, ""] | None


class InUse(NamedTuple):
    """Which contacts of the leading axis some walker has: those below `number`, and of each the two `points`.

    Of what is None nothing is known, and all is visited.
    """

    number: Int[Array, ""] | None
    points: Any  # of each contact whether some walker has its first and its second, as `split` would make them


class Machine:
    """Does everything plainly. A subclass does better what its machine can do better; what comes out is the same."""

    def fence(self, values):
        """The values themselves, each computed once before anything that uses it.

        A compiler may compute a value anew for each of its uses, and round it in another way: then two are no longer
        equal where they are compared. Whoever computes them in the order of the program needs no fences.
        """
        return values

    def known(self, mask: Bool[Array, "..."]) -> Known:
        """Whether the mask is set for any walker; None where it had better not be asked."""
        return None

    def entry(self, values: Array, k: Int[Array, ""] | int) -> Array:
        """Entry k of the leading axis."""
        return values[k]

    def entries(self, values: Array) -> tuple[Array, ...]:
        """All of them."""
        return tuple(self.entry(values, k) for k in range(values.shape[0]))

    def split(self, values: PyTree, n: int, used: InUse) -> PyTree:
        """The first n entries of the leading axis, in the form that `over` visits them in."""
        return tuple(jax.tree.map(lambda v, k=k: self.entry(v, k), values) for k in range(n))

    def join(self, parts: PyTree, n: int) -> PyTree:
        """What `split` made, on a leading axis again, filled up with zeros to a length of n."""
        fill = jax.tree.map(jnp.zeros_like, parts[0])
        return jax.tree.map(lambda *v: spread(v), *parts, *(fill,) * (n - len(parts)))

    def part(self, parts: PyTree, k: Int[Array, ""] | int) -> PyTree:
        """Entry k of what `split` made."""
        return parts[k]

    def with_part(self, parts: PyTree, k: Int[Array, ""] | int, part: PyTree) -> PyTree:
        """What `split` made, with another entry k."""
        return (*parts[:k], part, *parts[k + 1 :])

    def in_use(self, on: Sequence[Bool[Array, "n ..."]]) -> InUse:
        """The contacts up to the last one that any walker has, if that is known; `on` is of their two points."""
        return InUse(None, ((None, None),) * on[0].shape[0])

    def over(self, body: Callable, carry: PyTree, parts: PyTree, held: PyTree, used: InUse):
        """`carry, held[k] = body(carry, parts[k], held[k], points[k])` for each k of what `split` made, one by one.

        Those not in use are left out.
        """

        def onwards(k, state):
            if k == len(parts):
                return state
            return when(None if used.number is None else used.number > k, lambda state: through(k, state), state)

        def through(k, state):
            carry, held = state
            carry, new = body(carry, parts[k], held[k], used.points[k])
            return onwards(k + 1, (carry, (*held[:k], new, *held[k + 1 :])))

        return onwards(0, (carry, (None,) * len(parts) if held is None else tuple(held)))

    def repeated(
        self,
        body: Callable[[Kept, State], State],
        kept: Kept,
        state: State,
        times: int,
        active: Callable[[State], Bool[Array, "..."]] | None = None,
    ) -> State:
        """`state = body(kept, state)`, so many times, or as long as some walker is active; of the others nothing
        changes.
        """
        if active is None:
            return lax.fori_loop(0, times, lambda _, state: body(kept, state), state)
        return self.while_active(active, lambda _, state: body(kept, state), state, last=times)

    def while_active(
        self,
        active: Callable[[State], Bool[Array, "..."]],
        body: Once,
        state: State,
        *,
        first: int = 0,
        last: int,
        between: int = 1,
    ) -> State:
        """`body(k, state)` for k from `first` to `last`, as long as some walker is active. It changes nothing of the
        others. Whether one still is need be asked only once in `between` times.
        """

        def once(given: tuple[State, Int[Array, ""]]) -> tuple[State, Int[Array, ""]]:
            state, k = given
            return body(k, state), k + 1

        def unfinished(given: tuple[State, Int[Array, ""]]) -> Bool[Array, ""]:
            return anywhere(active(given[0])) & (given[1] < last)

        return lax.while_loop(unfinished, once, (state, jnp.int32(first)))[0]

    def where_active(self, active: Bool[Array, "..."], after: State, before: State) -> State:
        """In a loop that goes on as long as some walker is active: what changes for those who are."""
        return where(active, after, before)

    def for_few(
        self, wanted: Bool[Array, " n"], act: Callable[[In], Out], given: In, otherwise: Out, *, share: int
    ) -> Out:
        """`act(given)` for the walkers that want it, else `otherwise`. About one in `share` does."""
        return where(wanted, act(given), otherwise)

    def for_present(
        self,
        there: Bool[Array, "m ..."],
        act: Callable[[In, Bool[Array, "..."]], Array],
        given: In,
        otherwise: float,
        *,
        share: int,
    ) -> Array:
        """`act(given, there)` for the entries of a leading axis that are there, which `otherwise` stands for if they
        are not. About one in `share` is.
        """
        return act(given, there)


_machine: ContextVar[Machine] = ContextVar("machine", default=Machine())  # noqa: B039, it has no state


@contextmanager
def computed_on(machine: Machine) -> Iterator[None]:
    """What is traced while this lasts is for this machine."""
    token = _machine.set(machine)
    try:
        yield
    finally:
        _machine.reset(token)


def machine() -> Machine:
    """The one that is named, or the plain one."""
    return _machine.get()


def fence(values):
    """`Machine.fence` of the machine that is named."""
    return machine().fence(values)


def when(needed: Known, act: Callable, state: PyTree) -> PyTree:
    """`act(state)`, unless it is known not to be needed: then `state`, which it would not change."""
    return act(state) if needed is None else lax.cond(needed, act, lambda state: state, state)


def if_any(mask: Bool[Array, "..."], act: Callable, state: PyTree) -> PyTree:
    """`act(state)`, which changes nothing where the mask is set for no walker, so that it may be left out."""
    return when(machine().known(mask), act, state)
