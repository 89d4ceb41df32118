"""Several stages as one kernel, which goes through them again and again: every walker goes on by itself.

A kernel that is launched for each step waits in every step for its slowest walker. One that makes all steps waits once.
Written as one function it would take the compiler hours (see `packing`), so each stage is a function of its own, as
Pallas makes it for a kernel, and what is added here is a loop that calls them. They hand on what they find in the GPU's
memory, as separate kernels would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from tutelage import gpu
from tutelage.envs.bipedal.physics.machine import computed_on
from tutelage.envs.bipedal.physics.tools import any_of, anywhere, spread
from tutelage.envs.bipedal.run.machines import OneWalker
from tutelage.envs.bipedal.run.packing import Layout, Packed
from tutelage.envs.bipedal.run.stages import Stage, Values, sources
from tutelage.envs.bipedal.run.triton import Function, call, kernel, written

Arrays = Mapping[str, Array]


class Part(NamedTuple):
    """One function of the kernel: its program, and the names of the arrays that it is given and that it writes."""

    name: str
    program: Callable[..., None]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass
class Loop:
    """What the kernel does in a round, stage by stage, for n walkers. Each program has one of them."""

    n: int
    anew: Mapping[str, Stage]  # values that are made where they are read
    registers: int | None = None  # that a thread may have
    layouts: dict[str, Layout] = field(default_factory=dict)
    arrays: dict[str, jax.ShapeDtypeStruct] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    _made: dict[Any, str] = field(default_factory=dict)

    def add_array(self, name: str, shape: Sequence[int]) -> None:
        """An array that stages may look into, or write to."""
        self.arrays[name] = jax.ShapeDtypeStruct(tuple(shape), jnp.float32)

    def add_value(self, name: str, layout: Layout, walkers: int | None = None) -> None:
        """A value that stages may read and write; that of other than the n walkers is for `read` alone."""
        self.layouts[name] = layout
        for k, shape in enumerate(layout.shapes):
            self.add_array(f"{name}{k}", (walkers or self.n, *shape))

    def arrays_of(self, name: str) -> tuple[str, ...]:
        """The names of the arrays that a value lies on."""
        return tuple(f"{name}{k}" for k in range(len(self.layouts[name].shapes)))

    def read(self, name: str, arrays: Sequence[Any], walker: Int[Array, "..."]) -> Any:
        """The value of one walker, within a stage."""
        return self.layouts[name].read(arrays, partial(_entry, walker))

    def packed(self, name: str, values: Any) -> dict[str, Array]:
        """Values, with the walkers on their last axis, on arrays: here each walker's lie side by side."""
        arrays = Packed.of(values).arrays
        return {to: jnp.moveaxis(array, -1, 0) for to, array in zip(self.arrays_of(name), arrays, strict=True)}

    def values(self, name: str, arrays: Arrays) -> Any:
        """A value, of all walkers."""
        found = tuple(jnp.moveaxis(arrays[array], 0, -1) for array in self.arrays_of(name))
        return Packed(self.layouts[name], found).values()

    def add(self, stage: Stage) -> None:
        """A stage that is done in each round, after those before it; if it is for some alone, for those."""
        wanted = stage.wanted if stage.wanted and stage.wanted.of in self.layouts else None
        names = sources((*stage.reads, *((wanted.of,) if wanted else ())), self.anew)
        read = [name for name in self.layouts if name in names]
        looked = [name for name in names if name in self.arrays]
        if stage.writes not in self.layouts:
            self.add_value(stage.writes, self._layout(stage, read, looked))
        layout = self.layouts[stage.writes]

        def program(*refs: Any) -> None:
            rest = list(refs)
            take = lambda n: [rest.pop(0) for _ in range(n)]  # noqa: E731
            packed, at = [take(len(self.layouts[name].shapes)) for name in read], gpu.pallas().program_id(0)
            there, made_on = dict(zip(looked, take(len(looked)), strict=True)), take(len(layout.shapes))
            there |= dict(zip(stage.logs, rest, strict=True))

            def values() -> dict[str, Any]:
                return {name: self.read(name, refs, at) for name, refs in zip(read, packed, strict=True)}

            def work() -> None:
                made = self._work(stage, {**values(), **there, "walker": at + jnp.zeros(1, jnp.int32)})
                for ref, tile in zip(made_on, layout.write(made, spread), strict=True):
                    ref[_own(at, tile.shape)] = tile

            with computed_on(OneWalker()):
                if wanted is None:
                    return work()
                return gpu.pallas().when(anywhere(any_of(wanted.which(values()[wanted.of]))))(work)

        reads = (*(array for name in read for array in self.arrays_of(name)), *looked)
        self.parts.append(Part(stage.name, program, reads, (*self.arrays_of(stage.writes), *stage.logs)))

    def _work(self, stage: Stage, values: Mapping[str, Any]) -> Any:
        with computed_on(OneWalker()):
            found = Values(self.anew, **values)
            found.carry_out(stage)
            return found[stage.writes]

    def _layout(self, stage: Stage, read: Sequence[str], looked: Sequence[str]) -> Layout:
        """Where what a stage writes lies."""
        values = {name: self.layouts[name].values_of(1) for name in read}
        values |= {name: self.arrays[name] for name in looked}
        values |= {"walker": jax.ShapeDtypeStruct((1,), jnp.int32)}
        nowhere = dict.fromkeys(stage.logs, _Void())
        return Layout.of(jax.eval_shape(lambda values: self._work(stage, values | nowhere), values))

    def call(self, part: Part, given: Sequence[Array], *, interpret: bool = False) -> Sequence[Array]:
        """One part as a kernel of its own; what it writes to is given as well, after what it reads."""
        reads, writes = len(part.reads), len(part.writes)
        program = lambda *refs: part.program(*refs[:reads], *refs[reads + writes :])  # noqa: E731
        aliases = {reads + k: k for k in range(writes)}
        out = [self.arrays[name] for name in part.writes]
        return gpu.kernel_call(program, part.name, self.n, out, aliases=aliases, interpret=interpret)(*given)

    def interpreted(self, given: Arrays, times: int) -> dict[str, Array]:
        """All arrays after so many rounds, slowly, anywhere."""
        arrays = {name: jnp.zeros(s.shape, s.dtype) for name, s in self.arrays.items()} | dict(given)

        def once(_: Int[Array, ""], arrays: dict[str, Array]) -> dict[str, Array]:
            for part in self.parts:
                out = self.call(part, [arrays[name] for name in (*part.reads, *part.writes)], interpret=True)
                arrays = arrays | dict(zip(part.writes, out, strict=True))
            return arrays

        return jax.lax.fori_loop(0, times, once, arrays)

    def run(self, given: Arrays, times: int) -> dict[str, Array]:
        """All arrays after so many rounds, as one kernel on a GPU."""
        outputs = list(dict.fromkeys(name for part in self.parts for name in part.writes))
        started = [name for name in outputs if name in given]
        inputs = [*(name for name in given if name not in outputs), *started]
        parameters = [*inputs, *(f"{name}'" if name in started else name for name in outputs)]
        arrays, shapes = [given[name] for name in inputs], [self.arrays[name] for name in outputs]
        aliases = {inputs.index(name): outputs.index(name) for name in started}
        out = gpu.launch(self._module(parameters, times), "walk", arrays, shapes, self.n, aliases)
        return dict(zip(outputs, out, strict=True))

    def _module(self, parameters: Sequence[str], times: int) -> str:
        """The kernel in Triton's language, made once: it takes a while."""
        key = (tuple(parameters), times)
        if key not in self._made:
            self._made[key] = self._written(parameters, times)
        return self._made[key]

    def _written(self, parameters: Sequence[str], times: int) -> str:
        functions: dict[str, str] = {}
        calls = []
        place = {name: f"%a{k}" for k, name in enumerate(parameters)}
        for part in self.parts:
            shapes = [self.arrays[name] for name in (*part.reads, *part.writes)]
            text = written(lambda *given, part=part: self.call(part, given), shapes)
            name = functions.setdefault(text, f"{part.name}_{len(functions)}")
            given = [place[array] for array in (*part.reads, *part.writes, *part.writes)]
            calls.append(f"      {call(name, given, [POINTER] * len(given))}\n      gpu.barrier")
        body = LOOP.format(times=times, calls="\n".join(calls))
        bodies = [Function.of(text, name).text for text, name in functions.items()]
        return kernel("walk", bodies, [POINTER] * len(parameters), body, self.registers)


def _entry(walker: Int[Array, "..."], array: Any, k: int) -> Array:
    """Entry k of a walker's array, within a stage."""
    walker = jnp.max(walker)
    if len(array.shape) == 2:
        return array[walker, k] + jnp.zeros(1)
    walkers, *axes = _own(walker, (*array.shape[2:], 1))
    return array[(walkers, jnp.full_like(walkers, k), *axes)]


def _own(walker: Int[Array, ""], shape: Sequence[int]) -> tuple[Array, ...]:
    """Where the values of a walker are on its array; the last axis is for the walker."""
    axes = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in range(len(shape) - 1))
    return (jnp.broadcast_to(walker, shape), *axes)


POINTER = "!tt.ptr<f32>"

LOOP = """
    %first = arith.constant 0 : i32
    %last = arith.constant {times} : i32
    %one = arith.constant 1 : i32
    scf.for %time = %first to %last step %one : i32 {{
{calls}
    }}"""


class _Void:
    """Something to write to of which nothing is kept."""

    def __setitem__(self, at: Any, value: Any) -> None:
        pass
