"""The student's eye of the NetHack Learning Environment's baseline, at full size.

Its input is NetHack's whole map of 21×79 tiles. As all of it but the room is solid stone, most of what the convolutions
compute is the same for every observation. Here it is computed once for a batch of them, which changes neither the
function nor its gradients: each 3×3 layer carries the room's influence one tile further, so that after l layers only a
window of (7 + 2l)×(7 + 2l) tiles depends on the observation.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Float, Int16, Key

from tutelage.envs.lava.encoder import kinds
from tutelage.envs.lava.env import BLSTATS, CROP, GLYPHS, LEFT, MAP_HEIGHT, MAP_WIDTH, STONE, TOP, LavaObs
from tutelage.envs.lava.level import SIDE

KERNEL = 3
CHANNELS = (32, 16, 16, 16, 16, 8)
STATS, HIDDEN, FEATURES = 32, 512, 256
LAYERS = len(CHANNELS) - 1


class Affine(eqx.Module):
    """x·W + b, both U(±1/√fan in): PyTorch's default."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __init__(self, inputs: int, outputs: int, *, key: Key[Array, ""]) -> None:
        key_weight, key_bias = random.split(key)
        bound = inputs**-0.5
        self.weight = random.uniform(key_weight, (inputs, outputs), minval=-bound, maxval=bound)
        self.bias = random.uniform(key_bias, (outputs,), minval=-bound, maxval=bound)

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        return x @ self.weight + self.bias


class Convolutions(eqx.Module):
    """Five layers elu(conv 3×3) with 16, 16, 16, 16 and 8 channels, each a matrix product over all patches."""

    layers: tuple[Affine, ...]

    def __init__(self, *, key: Key[Array, ""]) -> None:
        keys = random.split(key, LAYERS)
        widths = zip(CHANNELS[:-1], CHANNELS[1:], keys, strict=True)
        self.layers = tuple(Affine(KERNEL**2 * inputs, outputs, key=k) for inputs, outputs, k in widths)

    def on_tiles(self, x: Float[Array, "h w 32"]) -> tuple[Float[Array, "h w _"], ...]:
        """The input and the output of every layer, zeros around the edge of each."""
        stages = [x]
        for layer in self.layers:
            stages.append(convolve(layer, jnp.pad(stages[-1], ((1, 1), (1, 1), (0, 0)))))
        return tuple(stages)

    def on_room(
        self, x: Float[Array, "7 7 32"], around: tuple[Float[Array, "21 79 _"], ...]
    ) -> Float[Array, "17 17 8"]:
        """The last layer's output where the room has influence, given all `stages` of a map without the room."""
        for depth, (layer, map_) in enumerate(zip(self.layers, around[:-1], strict=True)):
            context = window(map_, depth + 2)
            x = convolve(layer, context.at[2:-2, 2:-2].set(x))
        return x


class NetHackEncoder(eqx.Module):
    """Glyph embeddings → convolutions over map and crop; with the status line → two dense layers.

    The sizes: 32 numbers a glyph; 21·79·8 of the map, 9·9·8 of the crop and 32 of the status line make 13,952 inputs of
    a layer of 512 and then of 256, all relu. The table of embeddings has a row for each of the six glyphs that occur.
    Rows for NetHack's other 5,970 would never be read nor learn anything.
    """

    table: Float[Array, "6 32"]
    map: Convolutions
    crop: Convolutions
    stats: tuple[Affine, Affine]
    joint: Affine
    last: Affine
    size: int = eqx.field(static=True)

    def __init__(self, *, key: Key[Array, ""]) -> None:
        """PyTorch's defaults throughout: the table is N(0, 1)."""
        keys = random.split(key, 7)
        self.table = random.normal(keys[0], (len(GLYPHS), CHANNELS[0]))
        self.map, self.crop = Convolutions(key=keys[1]), Convolutions(key=keys[2])
        self.stats = Affine(BLSTATS.size, STATS, key=keys[3]), Affine(STATS, STATS, key=keys[4])
        inputs = STATS + (CROP**2 + MAP_HEIGHT * MAP_WIDTH) * CHANNELS[-1]
        self.joint, self.last = Affine(inputs, HIDDEN, key=keys[5]), Affine(HIDDEN, FEATURES, key=keys[6])
        self.size = FEATURES

    def __call__(self, obs: LavaObs) -> Float[Array, " size"]:
        stats = obs.blstats.astype(jnp.float32)
        for layer in self.stats:
            stats = jax.nn.relu(layer(stats))
        crop = self.crop.on_tiles(self.embed(obs.crop))[-1]
        near = jnp.concatenate([stats, crop.reshape(-1)])
        joint = near @ self.joint.weight[: near.size] + self.see_map(obs.glyphs) + self.joint.bias
        return jax.nn.relu(self.last(jax.nn.relu(joint)))

    def embed(self, glyphs: Int16[Array, "h w"]) -> Float[Array, "h w 32"]:
        """Each glyph's row of the table, as a matrix product: reading rows would have a slow gradient."""
        return kinds(glyphs) @ self.table

    def see_map(self, glyphs: Int16[Array, "7 7"]) -> Float[Array, " hidden"]:
        """The whole map's share of the joint layer: the room's window, and what no observation changes."""
        stone = self.embed(jnp.full((MAP_HEIGHT, MAP_WIDTH), STONE, jnp.int16))
        stages = self.map.on_tiles(stone)
        room = self.map.on_room(self.embed(glyphs), stages)
        weight = self.joint.weight[-stages[-1].size :].reshape(*stages[-1].shape, HIDDEN)
        rest = put(stages[-1], jnp.zeros_like(room)).reshape(-1) @ weight.reshape(-1, HIDDEN)
        return rest + room.reshape(-1) @ window(weight, LAYERS).reshape(-1, HIDDEN)


def convolve(layer: Affine, x: Float[Array, "h w inputs"]) -> Float[Array, "h2 w2 outputs"]:
    """elu(conv 3×3), without padding: two tiles fewer each way."""
    h, w = x.shape[0] - KERNEL + 1, x.shape[1] - KERNEL + 1
    patches = [x[i : i + h, j : j + w] for i in range(KERNEL) for j in range(KERNEL)]
    return jax.nn.elu(layer(jnp.concatenate(patches, axis=-1)))


def window(map_: Float[Array, "21 79 *c"], margin: int) -> Float[Array, "side side *c"]:
    """The room's tiles on a map and `margin` more on each side."""
    end = SIDE + margin
    return map_[TOP - margin : TOP + end, LEFT - margin : LEFT + end]


def put(map_: Float[Array, "21 79 c"], tiles: Float[Array, "side side c"]) -> Float[Array, "21 79 c"]:
    """The map with its middle, the room and what is around it, replaced."""
    margin = (tiles.shape[0] - SIDE) // 2
    end = SIDE + margin
    return map_.at[TOP - margin : TOP + end, LEFT - margin : LEFT + end].set(tiles)
