"""Students as ONNX: one step of a student, for programs that have no JAX. Needs the extra `onnx`.

| input | what |
|---|---|
| `obs.…` | the observation, an input for each of its arrays |
| `start` | whether an episode begins with it; only of a student that remembers |
| `memory.…` | what the step before gave as `next_memory.…`; zeros in the beginning |

| output | what |
|---|---|
| `logits`, or `mean` and `log_std` | the distribution over actions |
| `value` | the return that the student expects |
| `next_memory.…` | its memory after the step |

All of them have as first axis students that act side by side, as many as one likes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from tutelage.errors import UserError
from tutelage.runs.config import Config
from tutelage.runs.storage import write_atomically
from tutelage.student.controller import Controller, Population
from tutelage.student.nets import Student


def export(student: Student, config: Config[Any, Any], to: Path) -> bool:
    """Writes an ONNX file. Whether any number of students act side by side; if not, it is one."""
    if isinstance(student, Population | Controller):
        raise UserError("ONNX files are of students that value what they see, not of those that learn by `es`.")
    exporter = _exporter()
    try:
        model, any_number = exporter(Step(student, config, "B")), True
    except jax.errors.InconclusiveDimensionOperation:  # of a network that asks how many there are
        model, any_number = exporter(Step(student, config, 1)), False
    write_atomically(to, model.SerializeToString())
    return any_number


class Step:
    """One step of a student, with arrays one after another for arguments and results."""

    def __init__(self, student: Student, config: Config[Any, Any], side_by_side: str | int) -> None:
        env, design = config.env.env(), config.env.design()
        key = jax.random.key(0)
        level = jax.eval_shape(design.sample, key)
        self.student = student
        self.obs = jax.eval_shape(env.reset, key, level)[1]
        self.memory = jax.eval_shape(lambda: jax.tree.map(lambda x: x[0], student.memory(1)))
        start = {"start": jax.ShapeDtypeStruct((), bool)} if student.recurrent else {}
        given = _named("obs", self.obs) | start | _named("memory", self.memory)
        self.input_names = list(given)
        first = jax.export.symbolic_shape(side_by_side)[0] if isinstance(side_by_side, str) else side_by_side
        self.inputs = [jax.ShapeDtypeStruct((first, *x.shape), x.dtype) for x in given.values()]
        policy = jax.eval_shape(self._act, *self.inputs)[1]
        self.output_names = [*_named("", policy), "value", *_named("next_memory", self.memory)]

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        memory, policy, value = self._act(*arrays)
        return (*jax.tree.leaves(policy), value, *jax.tree.leaves(memory))

    def _act(self, *arrays: Any) -> tuple[PyTree, Any, Any]:
        obs, structure = jax.tree.flatten(self.obs)
        seen, rest = structure.unflatten(arrays[: len(obs)]), arrays[len(obs) :]
        start = rest[0] if self.student.recurrent else jnp.zeros(arrays[0].shape[:1], bool)
        kept = jax.tree.unflatten(jax.tree.structure(self.memory), rest[self.student.recurrent :])
        return self.student.act(kept, seen, start)


def _named(group: str, tree: PyTree) -> dict[str, Any]:
    """The arrays of a pytree: `memory`, or `memory.h` and `memory.c` if there are several."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    names = [".".join([group, *(_word(step) for step in path)]).strip(".") for path, _ in leaves]
    return {name: leaf for name, (_, leaf) in zip(names, leaves, strict=True)}


def _word(step: Any) -> str:
    return str(next(getattr(step, name) for name in ("name", "key", "idx") if hasattr(step, name)))


def _exporter() -> Callable[[Step], Any]:
    try:
        from jax2onnx import to_onnx  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(f"This needs jax2onnx ({error}): pip install 'tutelage[onnx]'") from error

    def write(step: Step) -> Any:
        names = {"input_names": step.input_names, "output_names": step.output_names}
        with _silence("onnx_ir.serde"):  # which warns of shapes that nobody needs to know
            return to_onnx(step, step.inputs, model_name="student", **names)

    return write


@contextmanager
def _silence(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
