"""Several kernels as one, which goes through them again and again: every environment goes on by itself.

A kernel that is launched for each step waits in every step for its slowest environment. One that makes all steps waits
once. Written as one function it would take the compiler hours (see `pages`), so each part is a function of its own, as
Pallas makes it for a kernel, and what is added here is a loop that calls them. They hand on what they find in the GPU's
memory, as separate kernels would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Int

from tutelage.envs.bipedal.compiled import Function, call, kernel, launch, written
from tutelage.envs.bipedal.lanes import some_lane, spread, unfenced
from tutelage.envs.bipedal.pages import Form, Pages

Arrays = Mapping[str, Array]
Shapes = dict[str, jax.ShapeDtypeStruct]


@dataclass(frozen=True)
class Part:
    """One function of the kernel: its program, and the names of the arrays that it is given and that it writes."""

    name: str
    program: Callable[..., None]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass
class Script:
    """What the kernel does in a step, part by part, for n environments. Each program has one of them."""

    n: int
    registers: int | None = None  # that a thread may have
    forms: dict[str, Form] = field(default_factory=dict)
    arrays: Shapes = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    _made: dict[Any, str] = field(default_factory=dict)

    def add_array(self, name: str, shape: Sequence[int]) -> None:
        """An array that parts may look into, or write to."""
        self.arrays[name] = jax.ShapeDtypeStruct(tuple(shape), jnp.float32)

    def add_pages(self, name: str, form: Form, environments: int | None = None) -> None:
        """Pages that parts may read and write; those of other than the n environments are for looking into alone."""
        self.forms[name] = form
        for k, shape in enumerate(form.shapes):
            self.add_array(f"{name}{k}", (environments or self.n, *shape))

    def pages_of(self, name: str) -> tuple[str, ...]:
        """The names of the arrays that pages lie on."""
        return tuple(f"{name}{k}" for k in range(len(self.forms[name].shapes)))

    def read(self, name: str, pages: Sequence[Any], lane: Int[Array, "..."]) -> Any:
        """What is on pages of one environment, within a part."""
        return self.forms[name].read(pages, partial(_entry, lane))

    def laid(self, name: str, values: Any) -> dict[str, Array]:
        """Values, with the environments on their last axis, on pages: here each environment's lie side by side."""
        pages = Pages.of(values).pages
        return {to: jnp.moveaxis(page, -1, 0) for to, page in zip(self.pages_of(name), pages, strict=True)}

    def values(self, name: str, arrays: Arrays) -> Any:
        """What is on pages, of all environments."""
        pages = tuple(jnp.moveaxis(arrays[page], 0, -1) for page in self.pages_of(name))
        return Pages(self.forms[name], pages).values()

    def add(
        self,
        act: Callable,
        reads: Sequence[str],
        writes: str,
        *,
        looks: Sequence[str] = (),
        logs: Sequence[str] = (),
        when: Callable[..., Bool[Array, "1"]] | None = None,
    ) -> None:
        """A part: what `act` makes of the values on pages, and of arrays to look into or to write to, and the lane.

        It goes to the pages named by `writes`, which are as they need to be if there are none of that name yet. If
        `when`, asked of the values, says no, nothing is done and written.
        """
        forms = [self.forms[name] for name in reads]
        arrays = [a for name in looks for a in (self.pages_of(name) if name in self.forms else (name,))]
        if writes not in self.forms:
            values = [form.values_of(1) for form in forms]
            shown = [self.arrays[name] for name in arrays]
            nowhere, lane = [_Void()] * len(logs), jax.ShapeDtypeStruct((1,), jnp.int32)
            with unfenced():
                made = jax.eval_shape(lambda v, refs, lane: act(*v, *refs, *nowhere, lane), values, shown, lane)
            self.add_pages(writes, Form.of(made))
        form = self.forms[writes]

        def program(*refs: Any) -> None:
            rest = list(refs)
            take = lambda n: [rest.pop(0) for _ in range(n)]  # noqa: E731
            pages, looked = [take(len(f.shapes)) for f in forms], take(len(arrays))
            made_on, logged = take(len(form.shapes)), rest
            lane = pl.program_id(0)

            def values() -> list[Any]:
                return [self.read(name, refs, lane) for name, refs in zip(reads, pages, strict=True)]

            def work() -> None:
                made = act(*values(), *looked, *logged, lane + jnp.zeros(1, jnp.int32))
                for ref, tile in zip(made_on, form.write(made, spread), strict=True):
                    ref[_places(lane, tile.shape)] = tile

            with unfenced():
                work() if when is None else pl.when(some_lane(when(*values())))(work)

        pages = tuple(page for name in reads for page in self.pages_of(name))
        self.parts.append(Part(act.__name__, program, (*pages, *arrays), (*self.pages_of(writes), *logs)))

    def call(self, part: Part, given: Sequence[Array], *, interpret: bool = False) -> Sequence[Array]:
        """One part as a kernel of its own; what it writes to is given as well, after what it reads."""
        whole = partial(pl.BlockSpec, memory_space=pl.ANY)
        reads, writes = len(part.reads), len(part.writes)
        aliases = {reads + k: k for k in range(writes)}
        program = lambda *refs: part.program(*refs[:reads], *refs[reads + writes :])  # noqa: E731
        return pl.pallas_call(
            program,
            grid=(self.n,),
            in_specs=[whole() for _ in range(reads + writes)],
            out_specs=[whole() for _ in range(writes)],
            out_shape=[self.arrays[name] for name in part.writes],
            input_output_aliases=aliases,
            compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
            interpret=interpret,
            name=part.name,
        )(*given)

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
        read = [name for name in given if name not in outputs]
        started = [name for name in outputs if name in given]
        inputs = [*read, *started]
        parameters = [*inputs, *(f"{name}'" if name in started else name for name in outputs)]
        out = launch(
            self._module(parameters, times),
            "walk",
            [given[name] for name in inputs],
            [self.arrays[name] for name in outputs],
            self.n,
            {inputs.index(name): outputs.index(name) for name in started},
        )
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


def _entry(lane: Int[Array, "..."], page: Any, k: int) -> Array:
    """Entry k of an environment's page, within a part."""
    lane = jnp.max(lane)
    if len(page.shape) == 2:
        return page[lane, k] + jnp.zeros(1)
    lanes, *axes = _places(lane, (*page.shape[2:], 1))
    return page[(lanes, jnp.full_like(lanes, k), *axes)]


def _places(lane: Int[Array, ""], shape: Sequence[int]) -> tuple[Array, ...]:
    """Where the values of an environment are on its page; the last axis is for the environment."""
    axes = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in range(len(shape) - 1))
    return (jnp.broadcast_to(lane, shape), *axes)


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
