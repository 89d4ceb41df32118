"""The student's eye for lava grids that trains on a CPU: one layer over what is where."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int16, Key

from tutelage.envs.lava.env import CROP, GLYPHS, LavaObs
from tutelage.envs.lava.level import TILES
from tutelage.student.nets import Linear


class SmallEncoder(eqx.Module):
    """relu(W·k + b), where k says for each tile of the room and of the crop which of six glyphs it shows.

    The status line is left out: the map shows where the student is, and the turn does not matter.
    """

    layer: Linear
    size: int = eqx.field(static=True)

    def __init__(self, *, size: int = 64, key: Key[Array, ""]) -> None:
        self.layer = Linear((TILES + CROP**2) * len(GLYPHS), size, gain=2**0.5, key=key)
        self.size = size

    def __call__(self, obs: LavaObs) -> Float[Array, " size"]:
        seen = jnp.concatenate([kinds(obs.glyphs).reshape(-1), kinds(obs.crop).reshape(-1)])
        return jax.nn.relu(self.layer(seen))


def kinds(glyphs: Int16[Array, "*tiles"]) -> Float[Array, "*tiles 6"]:
    """One-hot: which of the six `GLYPHS` a tile shows."""
    return (glyphs[..., None] == GLYPHS).astype(jnp.float32)
