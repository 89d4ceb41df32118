"""A GPU to compile for where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import jax
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, use_abstract_mesh


@contextmanager
def some_gpu() -> Iterator[None]:
    """A GPU to trace and lower for, of which newer versions of JAX want to know what it is."""
    device = AbstractDevice(device_kind="NVIDIA H200", num_cores=None, platform="gpu")
    mesh = AbstractMesh((1,), ("all",), (AxisType.Auto,), abstract_device=device)
    with use_abstract_mesh(mesh), mock.patch.object(jax, "default_backend", return_value="gpu"):
        yield
