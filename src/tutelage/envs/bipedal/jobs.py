"""Stages of a step as kernels: what each does with what is on pages, and for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.compiled import Function, call, kernel, launch, written
from tutelage.envs.bipedal.lanes import any_of, spread, unfenced
from tutelage.envs.bipedal.pages import Form, Pages, all_of, read

Look = tuple[Callable, Array]  # a function and what it looks into
SPAN = 128  # environments among which those that are wanted move up
WORD = 32  # bits


class Line(NamedTuple):
    """Those that are wanted of each span of environments, first in it, and how many they are."""

    order: Int[Array, "n"]
    wanted: Int[Array, "spans"]

    @classmethod
    def of(cls, wanted: Bool[Array, " n"], lanes: int) -> Line:
        """For programs with so many lanes: if they have but one, all stay where they are.

        Within spans, they are still near each other where they lie.
        """
        if lanes == 1:
            return cls(jnp.arange(len(wanted)), wanted.astype(jnp.int32))
        spans, place, number = _places(wanted)
        begin = SPAN * jnp.arange(len(spans))
        return cls(_ordered(jnp.where(spans, begin[:, None] + place, -1)), number)

    @classmethod
    def by_kind(cls, kinds: Sequence[Bool[Array, " n"]], lanes: int) -> Line:
        """All environments as one span: first those of the first kind, then those of the next, and so on."""
        if lanes == 1:
            return cls.of(any_of(kinds), lanes)
        found = [_places(kind) for kind in kinds]
        number = jnp.stack([number for _, _, number in found])
        # A product, whose factors XLA computes once; of a sum, it would for each of its terms. All numbers are small.
        span = jnp.arange(number.shape[1])
        before = jnp.round(number.astype(jnp.float32) @ (span[:, None] < span).astype(jnp.float32)).astype(jnp.int32)
        where, begin = jnp.full_like(found[0][1], -1), 0
        for k, (spans, place, _) in enumerate(found):
            where = jnp.where(spans, begin + before[k][:, None] + place, where)
            begin += before[k, -1] + number[k, -1]
        return cls(_ordered(where), jnp.reshape(begin, 1))

    def lanes(self, refs: Sequence[Any], first: Int[Array, ""], lanes: int) -> tuple[Array, Callable[[], Array]]:
        """Within a program: how many there are from place `first` on, and how to find them.

        Lanes beyond the last that is wanted do the work of the program's first once more.
        """
        order, wanted = refs
        span = len(self.order) // len(self.wanted)
        left = wanted[first // span] - first % span
        return left, lambda: order[first + jnp.where(jnp.arange(lanes) < left, jnp.arange(lanes), 0)]


def _ordered(place: Int[Array, "spans SPAN"]) -> Int[Array, " n"]:
    """Who is at each place; of those who are at none, nothing is said."""
    at = jnp.arange(place.size)
    place = jnp.where(place < 0, place.size + at.reshape(place.shape), place).reshape(-1)
    return jnp.zeros(place.size, jnp.int32).at[place].set(at, mode="drop", unique_indices=True)


def _places(
    wanted: Bool[Array, " n"],
) -> tuple[Bool[Array, "spans SPAN"], Int[Array, "spans SPAN"], Int[Array, " spans"]]:
    """Who is wanted, by spans; how many of a span are before each of it, and how many in all.

    Those of a span are the bits of a few words, which are counted. To sort takes much longer to compile, and to compare
    each with each much longer to run.
    """
    spans = jnp.pad(wanted, (0, -len(wanted) % SPAN)).reshape(-1, SPAN)
    bit = jnp.arange(SPAN, dtype=jnp.uint32) % WORD
    words = jnp.sum(jnp.where(spans, jnp.uint32(1) << bit, 0).reshape(len(spans), -1, WORD), axis=2, dtype=jnp.uint32)
    each = lax.population_count(words).astype(jnp.int32)
    before = words[:, :, None] & ((jnp.uint32(1) << bit[:WORD]) - 1)
    place = lax.population_count(before).astype(jnp.int32)
    for k in range(1, words.shape[1]):
        place = place.at[:, k].add(jnp.sum(each[:, :k], axis=1)[:, None])
    return spans, place.reshape(spans.shape), jnp.sum(each, axis=1)


@dataclass(frozen=True)
class Stage:
    """What a kernel is made of, besides what it does."""

    lanes: int  # the environments that a program works on
    registers: int | None = None  # that a thread may have
    interpret: bool = False

    def job(
        self,
        act: Callable[..., PyTree],
        given: Sequence[Pages],
        look: Look | None = None,
        *,
        wanted: Bool[Array, " n"] | None = None,
        kinds: Sequence[Bool[Array, " n"]] | None = None,
        anew: bool = True,
    ) -> Job:
        """`act` of what is on the pages as one kernel; of the environments that are `wanted`, or of `kinds`, if said.

        `look` is a function and an array for it to look into. `act` is given it as well, as a function of what is left
        after the array and the numbers of the environments. The outcome is on pages of its own, on which nothing is
        known of the others, or if it is not to be `anew`, on those that were given last, where they stay as they were.
        """
        line = None if wanted is None else Line.of(wanted, self.lanes)
        line = line if kinds is None else Line.by_kind(kinds, self.lanes)
        return Job(self, act, tuple(given), look, line, anew)

    def run(self, act: Callable[..., PyTree], given: Sequence[Pages], look: Look | None = None, **how: Any) -> Pages:
        """The job, done."""
        return self.job(act, given, look, **how).run()


@dataclass(frozen=True)
class Job:
    """A kernel that is to be launched."""

    stage: Stage
    act: Callable[..., PyTree]
    given: tuple[Pages, ...]
    look: Look | None
    line: Line | None
    anew: bool

    def run(self) -> Pages:
        """The pages it writes."""
        if self.stage.interpret:
            out = self._call()(*self.arrays)
        else:
            out = launch(self._text(), self.name, self.arrays, self.out, self.programs, self.aliases)
        return Pages(self.form, tuple(out))

    def beside(self, other: Job) -> tuple[Pages, Pages]:
        """The pages that both write, in one launch: while this one's last programs run, the other's begin."""
        if self.stage.interpret:
            return self.run(), other.run()
        assert self.anew, "outputs are counted anew"
        assert other.anew, "outputs are counted anew"
        assert self.stage.registers == other.stage.registers, "a kernel's programs have as many registers each"
        mine, others = Function.of(self._text(), self.name), Function.of(other._text(self.programs), other.name)
        a, b, made = len(self.arrays), len(self.arrays) + len(other.arrays), len(self.out)
        kinds = [*mine.types[:a], *others.types[: b - a], *mine.types[a:], *others.types[b - a :]]
        place = [f"%a{k}" for k in range(len(kinds))]
        body = EITHER.format(
            programs=self.programs,
            this=call(self.name, [*place[:a], *place[b : b + made]], mine.types),
            other=call(other.name, [*place[a:b], *place[b + made :]], others.types),
        )
        name = f"{self.name}_{other.name}"
        text = kernel(name, [mine.text, others.text], kinds, body, self.stage.registers)
        programs = self.programs + other.programs
        out = launch(text, name, [*self.arrays, *other.arrays], [*self.out, *other.out], programs)
        return Pages(self.form, tuple(out[:made])), Pages(other.form, tuple(out[made:]))

    @property
    def name(self) -> str:
        """Of the kernel."""
        return getattr(self.act, "__name__", "stage")

    @property
    def environments(self) -> int:
        """How many there are."""
        return self.given[0].pages[0].shape[-1]

    @property
    def arrays(self) -> list[Array]:
        """All that programs may look into, anywhere."""
        looked = [] if self.look is None else [self.look[1]]
        return [*looked, *(self.line or ()), *(page for given in self.given for page in given.pages)]

    @cached_property
    def form(self) -> Form:
        """Of what is written."""
        lanes = self.stage.lanes
        values = [given.form.values_of(lanes) for given in self.given]
        array = None if self.look is None else self.look[1]
        form = Form.of(jax.eval_shape(self._work, values, array, jax.ShapeDtypeStruct((lanes,), jnp.int32)))
        assert self.anew or form == self.given[-1].form, f"{self.act} makes other than it was given"
        return form

    @property
    def out(self) -> list[jax.ShapeDtypeStruct]:
        """The pages that are written, by shape."""
        return [jax.ShapeDtypeStruct((*shape, self.environments), jnp.float32) for shape in self.form.shapes]

    @property
    def aliases(self) -> dict[int, int]:
        """Which of the arrays are written over."""
        first = len(self.arrays) - len(self.out)
        return {} if self.anew else {first + k: k for k in range(len(self.out))}

    @property
    def programs(self) -> int:
        """Of which some may have nothing to do."""
        return pl.cdiv(self.environments if self.line is None else len(self.line.order), self.stage.lanes)

    def _work(self, values: Sequence[PyTree], array: Any, lane: Int[Array, " lanes"]) -> PyTree:
        with unfenced():
            return self.act(*values, *(() if self.look is None else (partial(self.look[0], array, lane),)))

    def _program(self, number: Int[Array, ""], *refs: Any) -> None:
        """What a program does, by its number."""
        rest, lanes = list(refs), self.stage.lanes
        array = None if self.look is None else rest.pop(0)
        line = [rest.pop(0) for _ in self.line or ()]
        made_on = [rest.pop() for _ in self.out][::-1]

        def work(lane: Int[Array, " lanes"]) -> None:
            made = self._work(read(self.given, rest, lane), array, lane)
            for ref, tile in zip(made_on, self.form.write(made, spread), strict=True):
                ref[all_of(ref.shape[:-1], lane)] = tile

        first = number * lanes
        if self.line is None:
            # Lanes beyond the last environment do that one's work once more.
            work(jnp.minimum(first + jnp.arange(lanes), self.environments - 1))
        else:
            left, find = self.line.lanes(line, first, lanes)
            pl.when(left > 0)(lambda: work(find()))

    def _text(self, after: int = 0) -> str:
        """The kernel in Triton's language, as it is after so many programs of another."""
        shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in self.arrays]
        return written(self._call(after), shapes, self.stage.registers)

    def _call(self, after: int = 0) -> Callable[..., Sequence[Array]]:
        whole = partial(pl.BlockSpec, memory_space=pl.ANY)
        return pl.pallas_call(
            lambda *refs: self._program(pl.program_id(0) - after, *refs),
            grid=(after + self.programs,),
            in_specs=[whole() for _ in self.arrays],
            out_specs=[whole() for _ in self.out],
            out_shape=self.out,
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
