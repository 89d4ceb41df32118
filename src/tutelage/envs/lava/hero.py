"""The attributes of a human rogue, as NetHack 3.6 rolls them at the start of a game."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jaxtyping import Array, Bool, Int, Int32, Key

# In NetHack's order: strength, intelligence, wisdom, dexterity, constitution, charisma.
BASE = np.array([7, 7, 7, 10, 7, 6], np.int32)  # what every rogue has
SHARE = np.array([21, 10, 10, 30, 20, 9], np.int32)  # chances of each point above that, in percent
LARGEST = np.array([118, 18, 18, 18, 18, 18], np.int32)  # of a human; strength counts 18/01 as 19, 18/100 as 118
POINTS = 75
SHOWN = (0, 3, 4, 1, 2, 5)  # the status line has dexterity and constitution before intelligence and wisdom


def roll(key: Key[Array, ""]) -> Int32[Array, "6"]:
    """Points one by one, each to an attribute by its share unless that is full; then each may vary once.

    The variation has a chance of 1 in 20 and is one of −2 … 4.
    """
    key_points, key_varies, key_by = random.split(key, 3)

    def give(attributes: Int[Array, "6"], key: Key[Array, ""]):
        weight = jnp.where(attributes < LARGEST, SHARE, 0)
        which = jnp.searchsorted(jnp.cumsum(weight), random.randint(key, (), 0, weight.sum()), side="right")
        return attributes.at[which].add(1), None

    keys = random.split(key_points, POINTS - int(BASE.sum()))
    attributes, _ = lax.scan(give, jnp.asarray(BASE), keys)
    varies: Bool[Array, "6"] = random.randint(key_varies, (6,), 0, 20) == 0
    by = random.randint(key_by, (6,), -2, 5)
    return jnp.minimum(attributes + jnp.where(varies, by, 0), LARGEST).astype(jnp.int32)


def shown(attributes: Int32[Array, "6"]) -> Int32[Array, "7"]:
    """The attributes as in the status line: strength on a scale to 25 comes first, then itself and the others."""
    strength = attributes[0]
    to_25 = jnp.where(strength <= 18, strength, 19 + strength // 50)
    return jnp.concatenate([to_25[None], attributes[jnp.array(SHOWN)]])
