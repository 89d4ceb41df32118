"""The machines that walkers are computed on, and what each does otherwise than plainly (see `physics.machine`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.physics.machine import InUse, Machine, State, computed_on
from tutelage.envs.bipedal.physics.tools import anywhere, index, take, where
from tutelage.envs.bipedal.run.fold import in_one_kernel


class _Gathering(Machine):
    """What only some walkers need is computed for those alone."""

    def for_few(self, wanted, act, given, otherwise, *, share):
        """The walkers who want it are gathered, one in `share` at a time, until all have been served."""
        at_once = -(-wanted.shape[0] // share)

        def serve(state):
            waiting, out = state
            place = jnp.cumsum(waiting) - 1  # in the queue
            chosen = self.first_waiting(waiting, place, at_once)
            done = act(jax.tree.map(lambda x: x[..., chosen], given))
            served = waiting & (place < at_once)
            place = jnp.clip(place, 0, at_once - 1)
            out = where(served, jax.tree.map(lambda x: x[..., place], done), out)
            return waiting & ~served, out

        return lax.while_loop(lambda state: anywhere(state[0]), serve, (wanted, otherwise))[1]

    def first_waiting(self, waiting: Bool[Array, " n"], place: Int[Array, " n"], number: int) -> Int[Array, " number"]:
        """Those at the front of the queue; where it is shorter, any will do."""
        nowhere = number + jnp.arange(len(waiting))
        at = jnp.where(waiting & (place < number), place, nowhere)
        return jnp.zeros(number, jnp.int32).at[at].set(jnp.arange(len(waiting)), mode="drop", unique_indices=True)


class _OnAxis(Machine):
    """Contacts stay on their axis, and a loop goes over them."""

    def split(self, values, n, used):
        return values

    def join(self, parts, n):
        return parts

    def part(self, parts, k):
        return jax.tree.map(partial(self.entry, k=k), parts)

    def with_part(self, parts, k, part):
        return jax.tree.map(lambda v, x: lax.dynamic_update_index_in_dim(v, x, k, 0), parts, part)

    def in_use(self, on):
        return InUse(_number_in_use(on), None)

    def over(self, body, carry, parts, held, used):
        def one(k, state):
            carry, held = state
            there = (None, None) if used.points is None else tuple(map(anywhere, self.part(used.points, k)))
            carry, new = body(carry, self.part(parts, k), None if held is None else self.part(held, k), there)
            return carry, held if held is None else self.with_part(held, k, new)

        return lax.fori_loop(0, used.number, one, (carry, held))


def _number_in_use(on: Sequence[Bool[Array, "n ..."]]) -> Int[Array, ""]:
    """How many contacts there are up to the last one that any walker has."""
    return jnp.max(jnp.where(on[0] | on[1], index(on[0].shape[0], on[0].ndim - 1) + 1, 0))


class OnCPU(_Gathering, _OnAxis):
    """Compiled by XLA for CPUs, where a loop compiles faster than what it would unroll to."""

    def fence(self, values):
        """XLA would rather compute a value anew for each of its uses than keep it. In a long chain of small steps, each
        using the last several times, that is far more work, to compile as to run. Its barrier is gone before values are
        duplicated, but results of divisions never are.
        """
        return jax.tree.map(_over_one, values)

    def entry(self, values, k):
        return take(values, index(values.shape[0], values.ndim - 1) == k)

    def split(self, values, n, used):
        return jax.tree.map(lambda v: v[:n], values)

    def join(self, parts, n):
        return jax.tree.map(lambda v: jnp.pad(v, [(0, n - len(v))] + [(0, 0)] * (v.ndim - 1)), parts)

    def part(self, parts, k):
        return jax.tree.map(lambda v: lax.dynamic_index_in_dim(v, k, keepdims=False), parts)

    def first_waiting(self, waiting, place, number):
        """By comparing: XLA would write them one by one."""
        return jnp.minimum(jnp.sum(place < jnp.arange(number)[:, None], axis=1), len(waiting) - 1)


class ByItself(_OnAxis):
    """One walker, in a language that computes values in the order of the program, each once: no fences are needed, and
    what it does not need is not done.
    """

    def known(self, mask):
        return anywhere(mask)

    def entry(self, values, k):
        return values[k] if isinstance(k, int) else lax.dynamic_index_in_dim(values, k, keepdims=False)

    def where_active(self, active, after, before):
        """The loop ends when the walker is no longer active."""
        return after

    def for_few(self, wanted, act, given, otherwise, *, share):
        return lax.cond(anywhere(wanted), lambda given, _: act(given), lambda _, otherwise: otherwise, given, otherwise)

    def for_present(self, there, act, given, otherwise, *, share):
        none = jnp.full(there.shape, otherwise)
        return lax.cond(anywhere(there), lambda given: act(given, there), lambda _: none, given)


def _over_one(value: Array) -> Array:
    """The value, divided by a one that is not seen to be one."""
    if value.dtype != jnp.float32:
        return _over_one(value.astype(jnp.float32)).astype(value.dtype)
    return value / jnp.where(value == value, 1.0, 2.0)


class OnGPU(_Gathering):
    """Compiled by XLA for GPUs, where a round of a loop is some kernels, and the host waits to know whether it ends."""

    def fence(self, values):
        """In a chain of small steps, XLA would compute a value anew for each of its uses."""
        return lax.optimization_barrier(values)

    def repeated(self, body, kept, state, times, active=None):
        """As one kernel, in which all walkers go on to the end."""
        with computed_on(WithinOneKernel()):
            return in_one_kernel(body, kept, state, times)

    def while_active(self, active, body, state, *, first=0, last, between=1):
        if last - first <= 2:
            return _unrolled(body, state, first, last)
        assert (last - first) % between == 0, "it would go on beyond the last"

        def some_times(k: Int[Array, ""], state: State) -> State:
            if between == 1:
                return body(k, state)
            return lax.fori_loop(0, between, lambda i, state: body(k + i, state), state)

        def once(given: tuple[State, Int[Array, ""]]) -> tuple[State, Int[Array, ""]]:
            state, k = given
            return some_times(k, state), k + between

        unfinished = lambda given: anywhere(active(given[0])) & (given[1] < last)  # noqa: E731
        return lax.while_loop(unfinished, once, (state, jnp.int32(first)))[0]

    def for_present(self, there, act, given, otherwise, *, share):
        wide = jax.tree.map(lambda v: jnp.broadcast_to(v, there.shape).reshape(-1), given)
        missing = jnp.full(there.size, otherwise)

        def of_those(given: PyTree) -> Array:
            return act(given, jnp.ones(jax.tree.leaves(given)[0].shape, bool))

        return self.for_few(there.reshape(-1), of_those, wide, missing, share=share).reshape(there.shape)


class WithinOneKernel(OnGPU):
    """Inside a loop that XLA runs as one kernel, element by element."""

    def fence(self, values):
        return values

    def while_active(self, active, body, state, *, first=0, last, between=1):
        return _unrolled(body, state, first, last)


def _unrolled(body: Callable[[Int[Array, ""], State], State], state: State, first: int, last: int) -> State:
    for k in range(first, last):
        state = body(jnp.int32(k), state)
    return state


class _InKernel(Machine):
    """Inside a kernel of our own, which is one piece, so that nothing is computed twice: what no walker of a program
    needs is left out.
    """

    def known(self, mask):
        return anywhere(mask)

    def entry(self, values, k):
        if values.dtype == jnp.bool_:
            return self.entry(values.astype(jnp.int32), k) > 0
        return take(values, index(values.shape[0], values.ndim - 1) == k)

    def entries(self, values):
        if values.dtype != jnp.float32:
            return super().entries(values)
        # To add zeros to a float is work, as there is a negative zero; to a whole number it is none.
        whole = super().entries(lax.bitcast_convert_type(values, jnp.int32))
        return tuple(lax.bitcast_convert_type(entry, jnp.float32) for entry in whole)


class OneWalker(_OnAxis, _InKernel):
    """In a kernel with one walker a program: an entry of an axis is one instruction away in another thread, and a loop
    over them is less code to fetch.
    """

    def with_part(self, parts, k, part):
        return jax.tree.map(lambda v, x: jnp.where(index(len(v), v.ndim - 1) == k, x[None], v), parts, part)

    def in_use(self, on):
        return InUse(_number_in_use(on), tuple(on))

    def where_active(self, active, after, before):
        """The loop ends when the walker is no longer active."""
        return after


class SeveralWalkers(_InKernel):
    """In a kernel with several walkers a program: contacts are values of their own, found only if they are there."""

    def split(self, values, n, used):
        none = jax.tree.map(lambda v: jnp.zeros(v.shape[1:], v.dtype), values)
        number = used.number
        assert number is not None, "kernels know how many contacts there are"

        def part(k: int) -> PyTree:
            return lax.cond(number > k, partial(jax.tree.map, partial(self.entry, k=k)), lambda _: none, values)

        return tuple(part(k) for k in range(n))

    def in_use(self, on):
        points = tuple(tuple(anywhere(self.entry(point, k)) for point in on) for k in range(on[0].shape[0]))
        return InUse(_number_in_use(on), points)


def in_kernel(walkers: int) -> Machine:
    """The machine that a kernel's program is with so many walkers."""
    return OneWalker() if walkers == 1 else SeveralWalkers()
