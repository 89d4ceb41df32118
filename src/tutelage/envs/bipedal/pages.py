"""Values of many environments on a few large arrays, to be handed from one kernel to the next.

The GPU's compiler looks for the best way to each access to memory with an effort that grows with the square of a
kernel's length. So a kernel writes whole pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.compiled import Function, call, kernel, launch, written
from tutelage.envs.bipedal.lanes import spread, unfenced

Shape = tuple[int, ...]
Page = Array  # [entries, …, environments], floats
Look = tuple[Callable, Array]


@dataclass(frozen=True)
class Form:
    """Which values there are of an environment, and where they lie: those of equal shape share a page."""

    tree: Any
    leaves: tuple[jax.ShapeDtypeStruct, ...]

    @classmethod
    def of(cls, values: PyTree) -> Form:
        """That of values with the environments on their last axis."""
        leaves, tree = jax.tree.flatten(values)
        return cls(tree, tuple(jax.ShapeDtypeStruct(v.shape[:-1], v.dtype) for v in leaves))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Of the pages, without environments: entries come first, filled up to a power of two."""
        return tuple((_power_of_two(len(self._entries(shape))), *shape) for shape in self._groups)

    def values_of(self, lanes: int) -> PyTree:
        """The values of so many environments, by shape and type."""
        leaves = [jax.ShapeDtypeStruct((*leaf.shape, lanes), leaf.dtype) for leaf in self.leaves]
        return jax.tree.unflatten(self.tree, leaves)

    @property
    def _groups(self) -> tuple[Shape, ...]:
        return tuple(sorted({leaf.shape for leaf in self.leaves}, key=len))

    def _entries(self, shape: Shape) -> list[int]:
        return [k for k, leaf in enumerate(self.leaves) if leaf.shape == shape]

    def write(self, values: PyTree, stack: Callable[[list[Array]], Array]) -> tuple[Page, ...]:
        """The values on pages. Whole numbers, all of them small, become floats."""
        floats = [v.astype(jnp.float32) for v in jax.tree.leaves(values)]
        pages = []
        for shape, full in zip(self._groups, self.shapes, strict=True):
            entries = [floats[k] for k in self._entries(shape)]
            pages.append(stack([*entries, *(jnp.zeros_like(entries[0]),) * (full[0] - len(entries))]))
        return tuple(pages)

    def read(self, pages: Sequence[Any], entry: Callable[[Any, int], Array]) -> PyTree:
        """The values again."""
        values: list[Any] = [None] * len(self.leaves)
        for shape, page in zip(self._groups, pages, strict=True):
            for place, k in enumerate(self._entries(shape)):
                value = entry(page, place)
                values[k] = value > 0.5 if self.leaves[k].dtype == jnp.bool_ else value.astype(self.leaves[k].dtype)
        return jax.tree.unflatten(self.tree, values)


@dataclass(frozen=True)
class Pages:
    """Values of all environments on pages."""

    form: Form
    pages: tuple[Page, ...]

    @classmethod
    def of(cls, values: PyTree) -> Pages:
        """The pages of values with the environments on their last axis."""
        form = Form.of(values)
        return cls(form, form.write(values, jnp.stack))

    def values(self) -> PyTree:
        """What is on them, outside of kernels."""
        return self.form.read(self.pages, lambda page, k: page[k])


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


SPAN = 128  # environments among which those that are wanted move up


class Line(NamedTuple):
    """Those that are wanted of each span of environments, first in it, and how many they are."""

    order: Int[Array, "n"]
    wanted: Int[Array, "spans"]

    @classmethod
    def of(cls, wanted: Bool[Array, " n"], lanes: int, *, few: bool = False) -> Line:
        """For programs with so many lanes: if they have but one, all stay where they are.

        Within spans, they are still near each other where they lie. If they are few, all environments are one span.
        """
        if lanes == 1:
            return cls(jnp.arange(len(wanted)), wanted.astype(jnp.int32))
        spans = jnp.pad(wanted, (0, -len(wanted) % SPAN)).reshape(-1, SPAN)
        # All are compared with all: a sort takes much longer to compile.
        place = jnp.sum(spans[:, None, :] & (jnp.arange(SPAN) < jnp.arange(SPAN)[:, None]), axis=2)
        number = jnp.sum(spans, axis=1, dtype=jnp.int32)
        span = jnp.arange(len(spans))
        begin = jnp.sum(jnp.where(span < span[:, None], number, 0), axis=1) if few else SPAN * span
        at = jnp.arange(spans.size)
        place = jnp.where(spans, begin[:, None] + place, spans.size + at.reshape(spans.shape)).reshape(-1)
        order = jnp.zeros(spans.size, jnp.int32).at[place].set(at, mode="drop", unique_indices=True)
        return cls(order, jnp.sum(number)[None] if few else number)

    def lanes(self, refs: Sequence[Any], first: Int[Array, ""], lanes: int) -> tuple[Array, Callable[[], Array]]:
        """Within a program: how many there are from place `first` on, and how to find them.

        Lanes beyond the last that is wanted do the work of the program's first once more.
        """
        order, wanted = refs
        span = len(self.order) // len(self.wanted)
        left = wanted[first // span] - first % span
        return left, lambda: order[first + jnp.where(jnp.arange(lanes) < left, jnp.arange(lanes), 0)]


@dataclass(frozen=True)
class Stage:
    """What a kernel is made of, besides what it does."""

    lanes: int  # the environments that a program works on
    registers: int | None = None  # that a thread may have
    interpret: bool = False

    def run(self, act: Callable[..., PyTree], given: Sequence[Pages], look: Look | None = None, **how: Any) -> Pages:
        """What `job` says, done."""
        return self.job(act, given, look, **how).run()

    def job(
        self,
        act: Callable[..., PyTree],
        given: Sequence[Pages],
        look: Look | None = None,
        *,
        wanted: Bool[Array, " n"] | None = None,
        few: bool = False,
        anew: bool = True,
    ) -> Job:
        """`act` of what is on the pages as one kernel; of the environments that are `wanted`, perhaps `few`, if said.

        `look` is a function and an array for it to look into. `act` is given it as well, as a function of what is left
        after the array and the numbers of the environments. The outcome is on pages of its own, on which nothing is
        known of the others, or if it is not to be `anew`, on those that were given last, where they stay as they were.
        """
        n, lanes = given[0].pages[0].shape[-1], self.lanes
        read_by, array = look or (None, None)
        line = None if wanted is None else Line.of(wanted, lanes, few=few)
        pages = [page for g in given for page in g.pages]
        arrays = [*([] if array is None else [array]), *(line or ()), *pages]

        def work(values: Sequence[PyTree], array: Any, lane: Int[Array, " lanes"]) -> PyTree:
            with unfenced():
                return act(*values, *(() if read_by is None else (partial(read_by, array, lane),)))

        lanes_of = jax.ShapeDtypeStruct((lanes,), jnp.int32)
        form = Form.of(jax.eval_shape(work, [g.form.values_of(lanes) for g in given], array, lanes_of))
        assert anew or form == given[-1].form, f"{act} makes other than it was given"

        def program(number: Int[Array, ""], *refs: Any) -> None:
            rest = list(refs)
            looked = None if array is None else rest.pop(0)
            lined = [rest.pop(0) for _ in line or ()]
            read, made_on = rest[: len(pages)], rest[len(pages) :]

            def write(lane: Int[Array, " lanes"]) -> None:
                for ref, tile in zip(
                    made_on, form.write(work(_read(given, read, lane), looked, lane), spread), strict=True
                ):
                    ref[all_of(ref.shape[:-1], lane)] = tile

            first = number * lanes
            if line is None:
                # Lanes beyond the last environment do that one's work once more.
                write(jnp.minimum(first + jnp.arange(lanes), n - 1))
            else:
                left, find = line.lanes(lined, first, lanes)
                pl.when(left > 0)(lambda: write(find()))

        out = tuple(jax.ShapeDtypeStruct((*s, n), jnp.float32) for s in form.shapes)
        aliases = {} if anew else {len(arrays) - len(out) + k: k for k in range(len(out))}
        programs = pl.cdiv(n if line is None else len(line.order), lanes)
        return Job(self, _name(act), program, arrays, form, out, programs, aliases)


class Job(NamedTuple):
    """A kernel that is to be launched."""

    stage: Stage
    name: str
    program: Callable[..., None]  # of its number, and the arrays, all of which it may look into anywhere
    arrays: Sequence[Array]
    form: Form
    out: tuple[jax.ShapeDtypeStruct, ...]
    programs: int
    aliases: dict[int, int]

    def run(self) -> Pages:
        """The pages it writes."""
        if self.stage.interpret:
            return Pages(self.form, tuple(self._call()(*self.arrays)))
        out = launch(self._text(), self.name, self.arrays, self.out, self.programs, self.aliases)
        return Pages(self.form, tuple(out))

    def beside(self, other: Job) -> tuple[Pages, Pages]:
        """The pages that both write, in one launch: while this one's last programs run, the other's begin."""
        if self.stage.interpret:
            return self.run(), other.run()
        assert not self.aliases, "outputs are counted anew"
        assert not other.aliases, "outputs are counted anew"
        name = f"{self.name}_{other.name}"
        mine, others = Function.of(self._text(), self.name), Function.of(other._text(self.programs), other.name)
        a, b = len(self.arrays), len(other.arrays)
        kinds = [*mine.types[:a], *others.types[:b], *mine.types[a:], *others.types[b:]]
        place = [f"%a{k}" for k in range(len(kinds))]
        made = a + b + len(self.out)
        body = EITHER.format(
            programs=self.programs,
            this=call(self.name, [*place[:a], *place[a + b : made]], mine.types),
            other=call(other.name, [*place[a : a + b], *place[made:]], others.types),
        )
        limits = {self.stage.registers, other.stage.registers}
        assert len(limits) == 1, "a kernel's programs have equal numbers of registers"
        text = kernel(name, [mine.text, others.text], kinds, body, limits.pop())
        programs = self.programs + other.programs
        out = launch(text, name, [*self.arrays, *other.arrays], [*self.out, *other.out], programs)
        return Pages(self.form, tuple(out[: len(self.out)])), Pages(other.form, tuple(out[len(self.out) :]))

    def _text(self, after: int = 0) -> str:
        """The kernel in Triton's language, as it is after so many programs of another."""
        shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in self.arrays]
        return written(self._call(after), shapes, self.stage.registers)

    def _call(self, after: int = 0) -> Callable[..., Sequence[Array]]:
        whole = partial(pl.BlockSpec, memory_space=pl.ANY)
        return pl.pallas_call(
            lambda *refs: self.program(pl.program_id(0) - after, *refs),
            grid=(after + self.programs,),
            in_specs=[whole() for _ in self.arrays],
            out_specs=[whole() for _ in self.out],
            out_shape=list(self.out),
            input_output_aliases=self.aliases,
            compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
            interpret=self.stage.interpret,
            name=self.name,
        )


EITHER = """
    %program = tt.get_program_id x : i32
    %programs = arith.constant {programs} : i32
    %is_first = arith.cmpi slt, %program, %programs : i32
    scf.if %is_first {{
      {this}
    }} else {{
      {other}
    }}"""


def _name(act: Callable) -> str:
    return getattr(act, "__name__", "stage")


def _read(given: Sequence[Pages], refs: Sequence[Any], lane: Int[Array, " lanes"]) -> list[PyTree]:
    """What is on pages that lie one after the other, within a kernel."""
    rest = iter(refs)
    return [g.form.read([next(rest) for _ in g.pages], partial(entry, lane)) for g in given]


def entry(lane: Int[Array, "..."], page: Any, k: int) -> Array:
    """Entry k of a page within a kernel, for some environments or (of which it is quickest) one."""
    lane = jnp.max(lane) if lane.size == 1 else lane
    shape = (*page.shape[1:-1], *(lane.shape or (1,)))
    if shape == (1,):
        return page[k, lane] + jnp.zeros(1)
    at = [lax.broadcasted_iota(jnp.int32, shape, axis) for axis in range(len(shape) - 1)]
    return page[(jnp.full(shape, k), *at, jnp.broadcast_to(lane, shape))]


@lru_cache
def kernels_run_here() -> bool:
    """Whether there is a GPU for which kernels can be compiled: newer versions of JAX know some of them only."""
    return jax.default_backend() == "gpu" and kernels_can_be_lowered()


def kernels_can_be_lowered() -> bool:
    """Whether JAX would make kernels for the GPU that it is on; also asked while tracing."""
    one = jax.ShapeDtypeStruct((1,), jnp.float32)

    def add_one(given: Any, made: Any) -> None:
        made[...] = given[...] + 1

    try:
        written(pl.pallas_call(add_one, out_shape=one, compiler_params=triton.CompilerParams()), [one])
    except (NotImplementedError, RuntimeError, ValueError):
        return False
    return True


def all_of(axes: Shape, lane: Int[Array, " lanes"]) -> tuple[Array, ...]:
    """Where all entries of leading axes are, for each environment."""
    shape = (*axes, *lane.shape)
    return (*(lax.broadcasted_iota(jnp.int32, shape, k) for k in range(len(axes))), jnp.broadcast_to(lane, shape))
