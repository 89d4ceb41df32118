"""Walkers to try things on."""

import jax
import jax.numpy as jnp

from tutelage.envs.bipedal import WalkerDesign, terrain
from tutelage.envs.bipedal.physics.begin import born
from tutelage.envs.bipedal.physics.ground import paved
from tutelage.envs.bipedal.run.moment import packed


def some_walkers(n: int):
    """n walkers just born, on different ground, and an action for each."""
    levels = jax.vmap(WalkerDesign().sample)(jax.random.split(jax.random.key(0), n))
    tiles = jax.vmap(lambda level: paved(terrain.build(level, "parametrised")[0]))(levels)
    moment = jax.tree.map(lambda v: jnp.broadcast_to(v, (n, *v.shape)), packed(born()))
    return moment, jax.random.uniform(jax.random.key(1), (n, 4), minval=-1, maxval=1), tiles
