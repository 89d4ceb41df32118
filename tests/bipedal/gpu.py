"""A GPU to compile for where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import jax
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, use_abstract_mesh

from tutelage import gpu
from tutelage.runs import devices


@contextmanager
def some_gpu(count: int = 1) -> Iterator[None]:
    """A GPU to trace and lower for, of which newer versions of JAX want to know what it is; or several."""
    device = AbstractDevice(device_kind="NVIDIA H200", num_cores=None, platform="gpu")
    mesh = AbstractMesh((count,), (devices.SEEDS,), (AxisType.Auto,), abstract_device=device)
    there = mock.patch.object(devices, "_mesh", return_value=mesh)
    with use_abstract_mesh(mesh), there, mock.patch.object(jax, "default_backend", return_value="gpu"):
        yield


def is_a_kernel(text: str) -> bool:
    """Whether this is a module in Triton's language, as far as can be seen without its compiler; raises if it is not.

    Names that are given twice, or to nothing, and types that do not fit would be found on a GPU only.
    """
    known = text.replace("gpu.barrier\n", '"gpu.barrier"() : () -> ()\n')  # of a dialect that is not there
    with gpu.parsed(known) as module:
        return bool(module.operation.verify())
