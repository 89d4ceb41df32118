"""Seeds spread over the devices of a host, each of which works on its share of them and waits for no other.

What is spread is cut before it is compiled (`jax.shard_map`), so that a device's program is that of a run of so many
seeds: XLA has nothing to divide, and kernels are made for the share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from tutelage.errors import UserError

T = TypeVar("T", bound=PyTree)

SEEDS = "seeds"
EACH = PartitionSpec(SEEDS)
"""Each device has its seeds' share of this argument, on the leading axis."""
ALL = PartitionSpec()
"""Each device has this argument as it is."""


def check(seeds: int, devices: int) -> None:
    """Refuses a number of devices that are not there, or that the seeds cannot be shared out over evenly."""
    there = jax.local_device_count()
    if not 1 <= devices <= there:
        raise UserError(f"--devices must be from 1 to {there}, the devices there are here, not {devices}.")
    if seeds % devices:
        nearest = max(round(seeds / devices), 1) * devices
        raise UserError(f"{seeds} seeds cannot be shared out evenly over {devices} devices: --seeds {nearest} can.")


def spread(act: Callable[..., T], devices: int, given: tuple[PartitionSpec, ...]) -> Callable[..., T]:
    """`act`, of which each of so many devices does its seeds' share; all that it comes to has seeds on its first axis.

    On one device, that is `act`.
    """
    if devices == 1:
        return act
    return jax.shard_map(act, mesh=_mesh(devices), in_specs=given, out_specs=EACH, check_vma=False)


def placed(tree: T, devices: int) -> T:
    """Arrays with seeds on their first axis, on the devices that will work on them."""
    return tree if devices == 1 else jax.device_put(tree, NamedSharding(_mesh(devices), EACH))


def _mesh(devices: int) -> Mesh:
    return jax.make_mesh((devices,), (SEEDS,), (AxisType.Auto,), devices=jax.local_devices()[:devices])
