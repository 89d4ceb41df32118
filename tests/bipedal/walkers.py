"""Walkers to try things on."""

import jax
import jax.numpy as jnp

from tutelage.envs.bipedal import WalkerDesign, ground, kernel, terrain
from tutelage.envs.bipedal.start import born


def some_walkers(n: int):
    """n walkers just born, on different ground, and an action for each."""
    levels = jax.vmap(WalkerDesign().sample)(jax.random.split(jax.random.key(0), n))
    tiles = jax.vmap(lambda level: ground.paved(terrain.build(level, "parametrised")[0]))(levels)
    moment = jax.tree.map(lambda v: jnp.broadcast_to(v, (n, *v.shape)), kernel.packed(born()))
    return moment, jax.random.uniform(jax.random.key(1), (n, 4), minval=-1, maxval=1), tiles
