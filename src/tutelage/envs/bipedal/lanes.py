"""Small tools for code that runs one environment a lane.

The physics is written for numbers whose last axis is that of the environments, the *lanes*: all of them where XLA
compiles it, a block of them in a kernel. What comes in a handful (the four leg bodies, the cells around a foot, the
rays) lies on *leading* axes, is spread over them by comparing with an index and taken off them by masked sums, so that
nothing needs a sort, a gather or a concatenation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial, reduce
from typing import Any, Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.window import in_one_kernel

Kept = TypeVar("Kept", bound=PyTree)
State = TypeVar("State", bound=PyTree)

_place: ContextVar[Literal["anywhere", "kernel", "window"]] = ContextVar("place", default="anywhere")


@contextmanager
def _traced(place: Literal["kernel", "window"]) -> Iterator[None]:
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def unfenced() -> AbstractContextManager[None]:
    """While this lasts, `fence` does nothing: for kernels, which are one piece anyway."""
    return _traced("kernel")


def in_kernel() -> bool:
    """Whether what is traced now goes into a kernel."""
    return _place.get() == "kernel"


def on_cpu() -> bool:
    """Whether XLA compiles for CPUs what is traced now."""
    return not in_kernel() and jax.default_backend() == "cpu"


def by_xla_on_gpu() -> bool:
    """Whether XLA compiles for GPUs what is traced now."""
    return not in_kernel() and jax.default_backend() == "gpu"


def fence(values):
    """The same values, computed before anything that uses them.

    XLA would rather compute a value anew for each of its uses than keep it. In a long chain of small steps, each using
    the last several times, that is far more work, to compile as to run.
    """
    if _place.get() != "anywhere":
        return values
    if not on_cpu():
        return lax.optimization_barrier(values)
    # On CPUs the barrier is gone before values are duplicated, but results of divisions never are.
    return jax.tree.map(_over_one, values)


def _over_one(value: Array) -> Array:
    """The value, divided by a one that is not seen to be one."""
    if value.dtype != jnp.float32:
        return _over_one(value.astype(jnp.float32)).astype(value.dtype)
    return value / jnp.where(value == value, 1.0, 2.0)


def index(n: int, lanes: int) -> Int[Array, "n ..."]:
    """0 … n − 1 on a new leading axis, before `lanes` axes of length one."""
    return lax.broadcasted_iota(jnp.int32, (n,) + (1,) * lanes, 0)


def spread(values: Sequence[Array]) -> Array:
    """The values on a new leading axis."""
    at = index(len(values), values[0].ndim)
    out = jnp.expand_dims(values[0], 0)
    for k, value in enumerate(values[1:], 1):
        out = jnp.where(at == k, jnp.expand_dims(value, 0), out)
    return out


def pick(values: Array, k: Int[Array, ""] | int) -> Array:
    """Entry k of the leading axis."""
    if by_xla_on_gpu():
        return values[k]
    if in_kernel() and values.dtype == jnp.bool_:
        return pick(values.astype(jnp.int32), k) > 0
    return take(values, index(values.shape[0], values.ndim - 1) == k)


def unspread(values: Array) -> tuple[Array, ...]:
    """The entries of the leading axis."""
    if in_kernel() and values.dtype == jnp.float32:
        # To add zeros to a float is work, as there is a negative zero; to a whole number it is none.
        whole = unspread(lax.bitcast_convert_type(values, jnp.int32))
        return tuple(lax.bitcast_convert_type(entry, jnp.float32) for entry in whole)
    return tuple(pick(values, k) for k in range(values.shape[0]))


def take(values: Array, mask: Bool[Array, "..."], axes: int = 1) -> Array:
    """The one entry of the first `axes` axes where `mask` is set; zero (false) where it is nowhere set."""
    over = tuple(range(axes))
    if values.dtype == jnp.bool_:
        return some(values & mask, axes)
    return jnp.sum(jnp.where(mask, values, 0), axis=over, dtype=values.dtype)


def some(mask: Bool[Array, "..."], axes: int = 1) -> Bool[Array, "..."]:
    """Whether the mask is set anywhere on the first `axes` axes."""
    return jnp.max(mask.astype(jnp.int32), axis=tuple(range(axes))) > 0


def some_lane(mask: Bool[Array, "..."]) -> Bool[Array, ""]:
    """Whether the mask is set anywhere."""
    return jnp.max(mask.astype(jnp.int32)) > 0


def known_lane(mask: Bool[Array, "..."]) -> Bool[Array, ""] | None:
    """In kernels, `some_lane`; None where XLA had better not ask, for `if_used`."""
    return some_lane(mask) if in_kernel() else None


def any_of(masks: Sequence[Bool[Array, "..."]]) -> Bool[Array, "..."]:
    """Where one of the masks is set."""
    return reduce(operator.or_, masks)


def choose(at: Int[Array, "..."], values: Sequence[Array | float]) -> Array:
    """`values[at]`, elementwise."""
    out = jnp.asarray(values[0])
    for k, value in enumerate(values[1:], 1):
        out = jnp.where(at == k, value, out)
    return out


def largest(values: Sequence[Array]) -> Array:
    """Elementwise, found so that little of it waits for the rest."""
    values = list(values)
    while len(values) > 1:
        half = len(values) // 2
        values = [*map(jnp.maximum, values[:half], values[half : 2 * half]), *values[2 * half :]]
    return values[0]


def first_best(values: Sequence[Array]) -> tuple[Array, Int[Array, "..."]]:
    """The largest value and the index at which it comes first."""
    best, at = values[0], jnp.zeros_like(values[0], jnp.int32)
    for k, value in enumerate(values[1:], 1):
        better = value > best
        best, at = jnp.where(better, value, best), jnp.where(better, k, at)
    return best, at


def _on_axis(values: PyTree) -> bool:
    """Whether entries of leading axes stay there: on CPUs, where loops compile faster, and in kernels of one lane.

    There an entry is one instruction away in another thread, and a loop over them is less code to fetch.
    """
    leaf = jax.tree.leaves(values)[0]
    return on_cpu() or (in_kernel() and leaf.ndim > 1 and leaf.shape[-1] == 1)


def split(values: PyTree, n: int, used: InUse) -> PyTree:
    """The first n entries of the leading axis, for `over`: on their axis if they stay there, else one by one.

    In kernels, where an entry takes some work to find, zeros stand for those not in use.
    """
    if on_cpu():
        return jax.tree.map(lambda v: v[:n], values)
    if _on_axis(values):
        return values

    def entry(k: int) -> PyTree:
        find = partial(jax.tree.map, partial(pick, k=k))
        if used.number is None:
            return find(values)
        none = jax.tree.map(lambda v: jnp.zeros(v.shape[1:], v.dtype), values)
        return lax.cond(used.number > k, find, lambda _: none, values)

    return tuple(entry(k) for k in range(n))


def join(parts: PyTree, n: int) -> PyTree:
    """What `split` made, on a leading axis again, filled up with zeros to a length of n."""
    if in_kernel() and _on_axis(parts):
        return parts
    if on_cpu():
        return jax.tree.map(lambda v: jnp.pad(v, [(0, n - len(v))] + [(0, 0)] * (v.ndim - 1)), parts)
    fill = jax.tree.map(jnp.zeros_like, parts[0])
    return jax.tree.map(lambda *v: spread(v), *parts, *(fill,) * (n - len(parts)))


def entry_of(parts: PyTree, k: Int[Array, ""] | int) -> PyTree:
    """Entry k of what `split` made."""
    if not _on_axis(parts):
        return parts[k]
    if in_kernel():
        return jax.tree.map(partial(pick, k=k), parts)
    return jax.tree.map(lambda v: lax.dynamic_index_in_dim(v, k, keepdims=False), parts)


def with_entry(parts: PyTree, k: Int[Array, ""] | int, entry: PyTree) -> PyTree:
    """The same with another entry k."""
    if not _on_axis(parts):
        return (*parts[:k], entry, *parts[k + 1 :])
    if in_kernel():
        return jax.tree.map(lambda v, x: jnp.where(index(len(v), v.ndim - 1) == k, x[None], v), parts, entry)
    return jax.tree.map(lambda v, x: lax.dynamic_update_index_in_dim(v, x, k, 0), parts, entry)


class InUse(NamedTuple):
    """Which contacts of the leading axis some lane has: those below `number`, and of each the two `points`.

    Of what is None nothing is known, and all is visited.
    """

    number: Int[Array, ""] | None
    points: Any  # of each contact whether some lane has its first and its second, as `split` would make them


def in_use(on: Sequence[Bool[Array, "n ..."]]) -> InUse:
    """The contacts up to the last one on in any lane. XLA knows nothing of points, on GPUs nothing at all."""
    n = on[0].shape[0]
    if not (on_cpu() or in_kernel()):
        return InUse(None, ((None, None),) * n)
    count = jnp.max(jnp.where(on[0] | on[1], index(n, on[0].ndim - 1) + 1, 0))
    if on_cpu():
        return InUse(count, None)
    if _on_axis(on):
        return InUse(count, tuple(on))
    return InUse(count, tuple(tuple(some_lane(pick(point, k)) for point in on) for k in range(n)))


def over(body: Callable, carry: PyTree, parts: PyTree, held: PyTree, used: InUse):
    """`carry, held[k] = body(carry, parts[k], held[k], points[k])` for each k of what `split` made, one by one.

    Those not in use are left out. A loop if they are on their axis; else unrolled.
    """
    if _on_axis(parts):
        return _over_axis(body, carry, parts, held, used)

    def onwards(k, state):
        if k == len(parts):
            return state
        return if_used(None if used.number is None else used.number > k, partial(through, k), state)

    def through(k, state):
        carry, held = state
        carry, new = body(carry, parts[k], held[k], used.points[k])
        return onwards(k + 1, (carry, (*held[:k], new, *held[k + 1 :])))

    return onwards(0, (carry, (None,) * len(parts) if held is None else tuple(held)))


def _over_axis(body: Callable, carry: PyTree, parts: PyTree, held: PyTree, used: InUse):
    def one(k, state):
        carry, held = state
        there = (None, None) if used.points is None else tuple(map(some_lane, entry_of(used.points, k)))
        carry, new = body(carry, entry_of(parts, k), None if held is None else entry_of(held, k), there)
        return carry, held if held is None else with_entry(held, k, new)

    return lax.fori_loop(0, used.number, one, (carry, held))


def if_used(used: Bool[Array, ""] | None, act: Callable, state: PyTree) -> PyTree:
    """`act(state)`, unless it is known to be of no use: then `state`, which it would not change."""
    return act(state) if used is None else lax.cond(used, act, lambda state: state, state)


def repeated(
    body: Callable[[Kept, State], State],
    kept: Kept,
    state: State,
    times: int,
    active: Callable[[State], Bool[Array, "..."]] | None = None,
) -> State:
    """`state = body(kept, state)`, so many times, or as long as some lane is active; nothing of the others changes.

    By XLA on GPUs this is one kernel, in which all lanes go on to the end.
    """
    if by_xla_on_gpu():
        return in_turn(lambda _, kept, state: body(kept, state), [kept], state, times)
    if active is None:
        return lax.fori_loop(0, times, lambda _, state: body(kept, state), state)
    return while_active(active, lambda _, state: body(kept, state), state, last=times)


def in_turn(
    body: Callable[[Int[Array, ""], Kept, State], State], kept: Sequence[Kept], state: State, times: int
) -> State:
    """`state = body(k, kept[k % len(kept)], state)` for k from 0 to `times`, by XLA on GPUs, as one kernel."""
    with _traced("window"):
        return in_one_kernel(body, kept, state, times)


def while_active(
    active: Callable[[State], Bool[Array, "..."]],
    body: Callable[[Int[Array, ""], State], State],
    state: State,
    *,
    first: int = 0,
    last: int,
    between: int = 1,
) -> State:
    """`body(k, state)` for k from `first` to `last`, as long as some lane is active. It changes nothing of the others.

    Whether one still is, is asked each time; by XLA on GPUs, where the host waits for the answer, only once in
    `between` times, and within `repeated` not at all.
    """
    if _place.get() == "window":
        for k in range(first, last):
            state = body(jnp.int32(k), state)
        return state
    between = between if by_xla_on_gpu() else 1
    assert (last - first) % between == 0, "it would go on beyond the last"

    def some_times(given: tuple[State, Int[Array, ""]]) -> tuple[State, Int[Array, ""]]:
        state, k = given
        if between == 1:
            return body(k, state), k + 1
        return lax.fori_loop(0, between, lambda i, state: body(k + i, state), state), k + between

    unfinished = lambda given: some_lane(active(given[0])) & (given[1] < last)  # noqa: E731
    return lax.while_loop(unfinished, some_times, (state, jnp.int32(first)))[0]


def where(mask: Bool[Array, "..."], yes, no):
    """`jnp.where` for pytrees of equal structure."""
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), yes, no)
