"""A stage as a kernel: which programs it has, what each reads and writes, and for which walkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage import gpu
from tutelage.envs.bipedal.physics.machine import computed_on
from tutelage.envs.bipedal.physics.tools import any_of, spread
from tutelage.envs.bipedal.run.machines import in_kernel
from tutelage.envs.bipedal.run.packing import Layout, Packed, all_of, entry
from tutelage.envs.bipedal.run.stages import Stage, Values, sources
from tutelage.envs.bipedal.run.triton import Function, call, kernel, written

SPAN = 128  # walkers among which those that are wanted move up
BITS = 32  # bits


class Gathered(NamedTuple):
    """The walkers that are wanted of each span of them, first in it, and how many they are."""

    order: Int[Array, " n"]
    wanted: Int[Array, " spans"]

    @classmethod
    def of(cls, wanted: Bool[Array, " n"], walkers: int) -> Gathered:
        """For programs with so many walkers: if they have but one, all stay where they are.

        Within spans, they are still near each other where they lie.
        """
        if walkers == 1:
            return cls(jnp.arange(len(wanted)), wanted.astype(jnp.int32))
        spans, place, number = _places(wanted)
        begin = SPAN * jnp.arange(len(spans))
        return cls(_ordered(jnp.where(spans, begin[:, None] + place, -1)), number)

    @classmethod
    def by_kind(cls, kinds: Sequence[Bool[Array, " n"]], walkers: int) -> Gathered:
        """All walkers as one span: first those of the first kind, then those of the next, and so on."""
        if walkers == 1:
            return cls.of(any_of(kinds), walkers)
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

    def places(self, refs: Sequence[Any], first: Int[Array, ""], walkers: int) -> tuple[Array, Callable[[], Array]]:
        """Within a program: how many there are from place `first` on, and how to find them.

        Those beyond the last that is wanted do the work of the program's first once more.
        """
        order, wanted = refs
        span = len(self.order) // len(self.wanted)
        left = wanted[first // span] - first % span
        return left, lambda: order[first + jnp.where(jnp.arange(walkers) < left, jnp.arange(walkers), 0)]


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
    bit = jnp.arange(SPAN, dtype=jnp.uint32) % BITS
    words = jnp.sum(jnp.where(spans, jnp.uint32(1) << bit, 0).reshape(len(spans), -1, BITS), axis=2, dtype=jnp.uint32)
    each = lax.population_count(words).astype(jnp.int32)
    before = words[:, :, None] & ((jnp.uint32(1) << bit[:BITS]) - 1)
    place = lax.population_count(before).astype(jnp.int32)
    for k in range(1, words.shape[1]):
        place = place.at[:, k].add(jnp.sum(each[:, :k], axis=1)[:, None])
    return spans, place.reshape(spans.shape), jnp.sum(each, axis=1)


class Size(NamedTuple):
    """How much each of a kernel's programs works on and with."""

    walkers: int
    registers: int | None = None  # that a thread may have
    interpret: bool = False


@dataclass(frozen=True)
class Launch:
    """A stage's kernel that is to be launched.

    What it writes is new, and nothing is known there of walkers that it is not for; or if it updates what was there
    before, that is written over, and they stay as they were.
    """

    stage: Stage
    anew: Mapping[str, Stage]  # values that are made within the kernel
    there: Mapping[str, Packed | Array]  # values of all walkers, and arrays to look into
    size: Size
    made: dict[Any, Any] = field(default_factory=dict)  # what is found out for one launch, for others of the stage

    def run(self) -> Packed:
        """What it writes."""
        if self.size.interpret:
            out = self._call()(*self.arrays)
        else:
            out = gpu.launch(self._text(), self.stage.name, self.arrays, self.out, self.programs, self.aliases)
        return Packed(self.layout, tuple(out))

    def beside(self, other: Launch) -> tuple[Packed, Packed]:
        """What both write, in one launch: while this one's last programs run, the other's begin."""
        if self.size.interpret:
            return self.run(), other.run()
        assert not self.aliases, "outputs are counted anew"
        assert not other.aliases, "outputs are counted anew"
        assert self.size.registers == other.size.registers, "a kernel's programs have as many registers each"
        names = self.stage.name, other.stage.name
        mine, others = Function.of(self._text(), names[0]), Function.of(other._text(self.programs), names[1])
        a, b, made = len(self.arrays), len(self.arrays) + len(other.arrays), len(self.out)
        kinds = [*mine.types[:a], *others.types[: b - a], *mine.types[a:], *others.types[b - a :]]
        place = [f"%a{k}" for k in range(len(kinds))]
        body = EITHER.format(
            programs=self.programs,
            this=call(names[0], [*place[:a], *place[b : b + made]], mine.types),
            other=call(names[1], [*place[a:b], *place[b + made :]], others.types),
        )
        name = "_".join(names)
        text = kernel(name, [mine.text, others.text], kinds, body, self.size.registers)
        programs = self.programs + other.programs
        out = gpu.launch(text, name, [*self.arrays, *other.arrays], [*self.out, *other.out], programs)
        return Packed(self.layout, tuple(out[:made])), Packed(other.layout, tuple(out[made:]))

    @cached_property
    def packed(self) -> dict[str, Packed]:
        """The values that are read, with that which is updated last."""
        names = {*sources(self.stage.reads, self.anew)} - {*self.before}
        there = {name: value for name, value in self.there.items() if isinstance(value, Packed)}
        return {name: value for name, value in there.items() if name in names} | self.before

    @cached_property
    def before(self) -> dict[str, Packed]:
        """What is updated, if it is there."""
        value = self.there.get(self.stage.writes) if self.stage.updates else None
        return {self.stage.writes: value} if isinstance(value, Packed) else {}

    @cached_property
    def looked(self) -> dict[str, Array]:
        """The arrays that are looked into."""
        names = sources(self.stage.reads, self.anew)
        return {name: value for name, value in self.there.items() if name in names and not isinstance(value, Packed)}

    @cached_property
    def gathered(self) -> Gathered | None:
        """The walkers it is for; None for all."""
        wanted = self.stage.wanted
        asked = self.there.get(wanted.of) if wanted else None
        if wanted is None or not isinstance(asked, Packed):
            return None
        kinds = wanted.which(asked.values())
        if wanted.gathered:
            return Gathered.by_kind(kinds, self.size.walkers)
        return Gathered.of(any_of(kinds), self.size.walkers)

    @property
    def walkers(self) -> int:
        """How many there are."""
        return next(iter(self.packed.values())).arrays[0].shape[-1]

    @property
    def arrays(self) -> list[Array]:
        """All that programs may look into, anywhere."""
        packed = (array for value in self.packed.values() for array in value.arrays)
        return [*self.looked.values(), *(self.gathered or ()), *packed]

    def _once(self, what: str, make: Callable[[], Any]) -> Any:
        """What is the same for all launches of the stage with arrays of these shapes: it takes a while to find."""
        key = (what, self.stage.name, *((array.shape, str(array.dtype)) for array in self.arrays))
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    @property
    def layout(self) -> Layout:
        """Where what is written lies."""
        return self._once("layout", self._layout)

    def _layout(self) -> Layout:
        walkers = self.size.walkers
        values = {name: value.layout.values_of(walkers) for name, value in self.packed.items()}
        which = jax.ShapeDtypeStruct((walkers,), jnp.int32)
        layout = Layout.of(jax.eval_shape(self._work, values, self.looked, which))
        same = all(layout == value.layout for value in self.before.values())
        assert same, f"{self.stage.name} makes other than there was"
        return layout

    @property
    def out(self) -> list[jax.ShapeDtypeStruct]:
        """The arrays that are written, by shape."""
        return [jax.ShapeDtypeStruct((*shape, self.walkers), jnp.float32) for shape in self.layout.shapes]

    @property
    def aliases(self) -> dict[int, int]:
        """Which of the arrays are written over."""
        first = len(self.arrays) - len(self.out)
        return {first + k: k for k in range(len(self.out))} if self.before else {}

    @property
    def programs(self) -> int:
        """How many there are; some may have nothing to do."""
        return -(-(self.walkers if self.gathered is None else len(self.gathered.order)) // self.size.walkers)

    def _work(self, values: Mapping[str, PyTree], looked: Mapping[str, Any], walker: Int[Array, " n"]) -> PyTree:
        with computed_on(in_kernel(self.size.walkers)):
            found = Values(self.anew, **values, **looked, walker=walker)
            found.carry_out(self.stage)
            return found[self.stage.writes]

    def _program(self, number: Int[Array, ""], *refs: Any) -> None:
        """What a program does, by its number."""
        rest, walkers = list(refs), self.size.walkers
        looked = {name: rest.pop(0) for name in self.looked}
        gathered = [rest.pop(0) for _ in self.gathered or ()]
        made_on = [rest.pop() for _ in self.out][::-1]

        def work(walker: Int[Array, " n"]) -> None:
            given = iter(rest)
            values = {
                name: value.layout.read([next(given) for _ in value.arrays], partial(entry, walker))
                for name, value in self.packed.items()
            }
            made = self._work(values, looked, walker)
            for ref, tile in zip(made_on, self.layout.write(made, spread), strict=True):
                ref[all_of(ref.shape[:-1], walker)] = tile

        first = number * walkers
        if self.gathered is None:
            # Those beyond the last walker do that one's work once more.
            work(jnp.minimum(first + jnp.arange(walkers), self.walkers - 1))
        else:
            left, find = self.gathered.places(gathered, first, walkers)
            gpu.pallas().when(left > 0)(lambda: work(find()))

    def _text(self, after: int = 0) -> str:
        """The kernel in Triton's language, as it is after so many programs of another."""
        shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in self.arrays]
        return self._once(f"text {after}", lambda: written(self._call(after), shapes, self.size.registers))

    def _call(self, after: int = 0) -> Callable[..., Sequence[Array]]:
        program = lambda *refs: self._program(gpu.pallas().program_id(0) - after, *refs)  # noqa: E731
        programs, interpret = after + self.programs, self.size.interpret
        return gpu.kernel_call(program, self.stage.name, programs, self.out, aliases=self.aliases, interpret=interpret)


EITHER = """
    %program = tt.get_program_id x : i32
    %programs = arith.constant {programs} : i32
    %is_first = arith.cmpi slt, %program, %programs : i32
    scf.if %is_first {{
      {this}
    }} else {{
      {other}
    }}"""
