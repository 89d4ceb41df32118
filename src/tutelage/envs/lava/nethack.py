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
import numpy as np
from jax import random
from jaxtyping import Array, Float, Int16, Key

from tutelage.envs.lava.encoder import kinds
from tutelage.envs.lava.env import BLSTATS, CROP, GLYPHS, LEFT, MAP_HEIGHT, MAP_WIDTH, STONE, TOP, LavaObs
from tutelage.envs.lava.level import SIDE
from tutelage.student.nets import Affine

KERNEL = 3
CHANNELS = (32, 16, 16, 16, 16, 8)
STATS, HIDDEN, FEATURES = 32, 512, 256
LAYERS = len(CHANNELS) - 1
KIND_OF_STONE = int(np.flatnonzero(GLYPHS == STONE)[0])


class Convolutions(eqx.Module):
    """Five layers elu(conv 3×3) with 16, 16, 16, 16 and 8 channels."""

    layers: tuple[Affine, ...]

    def __init__(self, *, key: Key[Array, ""]) -> None:
        keys = random.split(key, LAYERS)
        widths = zip(CHANNELS[:-1], CHANNELS[1:], keys, strict=True)
        self.layers = tuple(Affine(KERNEL**2 * inputs, outputs, key=k) for inputs, outputs, k in widths)

    def on_tiles(self, x: Float[Array, "h w 32"]) -> tuple[Float[Array, "h w _"], ...]:
        """The input and the output of every layer, zeros around the edge of each."""
        stages = [x]
        for layer in self.layers:
            stages.append(jax.nn.elu(convolve(layer, jnp.pad(stages[-1], ((1, 1), (1, 1), (0, 0))))))
        return tuple(stages)

    def taps(self, table: Float[Array, "6 32"]) -> tuple[Float[Array, "9 _ _"], ...]:
        """Each layer's weights, tap by tap; the first takes a tile's one-hot kind, with `table` multiplied in."""
        first, *later = (layer.weight.reshape(KERNEL**2, -1, layer.weight.shape[1]) for layer in self.layers)
        return (table @ first, *later)


class Row(eqx.Module):
    """elu(conv 3×3) of small square maps as one matrix product a row: three rows of tiles in, one row of tiles out.

    The matrix is banded. Its zeros cost arithmetic, which the matrix units have plenty of; laying out every tile's 3×3
    neighbourhood instead costs three times the memory traffic, which is what such small convolutions wait for.
    """

    weight: Float[Array, "in out"]
    offset: Float[Array, "rows out"]
    margin: int = eqx.field(static=True)

    @staticmethod
    def of(taps: Float[Array, "9 inputs outputs"], offset: Float[Array, "side side outputs"], margin: int) -> Row:
        """Taps for maps with `margin` zeros around them, to be added to `offset`, a map of what else is known."""
        side = offset.shape[0]
        inner = side + 2 - 2 * margin
        # Output column j sees input column p through the kernel's column p − j + margin.
        reach = np.arange(inner)[None, :, None] - np.arange(side) + margin
        band = (reach == np.arange(KERNEL)[:, None, None]).astype(np.float32)
        weight = jnp.einsum("dkcu,kpj->dpcju", taps.reshape(KERNEL, KERNEL, *taps.shape[1:]), band)
        return Row(weight.reshape(KERNEL * inner * taps.shape[1], -1), offset.reshape(side, -1), margin)

    def __call__(self, x: Float[Array, "h w"]) -> Float[Array, "h2 w2"]:
        """Rows of tiles, the channels of a row's tiles side by side."""
        rows = self.offset.shape[0]
        x = jnp.pad(x, ((self.margin, self.margin), (0, 0)))
        three = jnp.concatenate([x[i : i + rows] for i in range(KERNEL)], axis=1)
        return jax.nn.elu(three @ self.weight + self.offset)


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
        return self.ready()(obs)

    def ready(self) -> Glance:
        """This encoder with everything computed that does not depend on the observation."""
        stages = self.map.on_tiles(jnp.broadcast_to(self.table[KIND_OF_STONE], (MAP_HEIGHT, MAP_WIDTH, CHANNELS[0])))
        far = self.joint.weight[-stages[-1].size :]
        window_weight = window(far.reshape(*stages[-1].shape, HIDDEN), LAYERS)
        near = self.joint.weight[: -stages[-1].size]
        return Glance(
            stats=self.stats,
            crop=self._crop_rows(),
            map=self._map_rows(stages),
            joint=jnp.concatenate([near, window_weight.reshape(-1, HIDDEN)]),
            constant=clear(stages[-1], LAYERS).reshape(-1) @ far + self.joint.bias,
            last=self.last,
        )

    def _crop_rows(self) -> tuple[Row, ...]:
        layers = zip(self.crop.layers, self.crop.taps(self.table), strict=True)
        shape = (CROP, CROP)
        return tuple(Row.of(taps, jnp.broadcast_to(a.bias, (*shape, a.bias.size)), margin=1) for a, taps in layers)

    def _map_rows(self, stages: tuple[Float[Array, "21 79 _"], ...]) -> tuple[Row, ...]:
        """Each layer adds to what it makes of the room what it makes of the stone around it."""
        rows = []
        for depth, (layer, taps) in enumerate(zip(self.map.layers, self.map.taps(self.table), strict=True)):
            around = window(stages[depth], depth + 2).at[2:-2, 2:-2].set(0.0)
            rows.append(Row.of(taps, convolve(layer, around), margin=2))
        return tuple(rows)


class Glance(eqx.Module):
    """A `NetHackEncoder` made ready to look at many observations."""

    stats: tuple[Affine, Affine]
    crop: tuple[Row, ...]
    map: tuple[Row, ...]
    joint: Float[Array, "in hidden"]  # of the status line, the crop and the part of the map that depends on the room
    constant: Float[Array, " hidden"]  # what the rest of the map adds
    last: Affine

    def __call__(self, obs: LavaObs) -> Float[Array, " size"]:
        stats = obs.blstats.astype(jnp.float32)
        for layer in self.stats:
            stats = jax.nn.relu(layer(stats))
        seen = jnp.concatenate([stats, _through(self.crop, obs.crop), _through(self.map, obs.glyphs)])
        return jax.nn.relu(self.last(jax.nn.relu(seen @ self.joint + self.constant)))


def _through(rows: tuple[Row, ...], glyphs: Int16[Array, "side side"]) -> Float[Array, " out"]:
    x = kinds(glyphs).reshape(glyphs.shape[0], -1)
    for row in rows:
        x = row(x)
    return x.reshape(-1)


def convolve(layer: Affine, x: Float[Array, "h w inputs"]) -> Float[Array, "h2 w2 outputs"]:
    """conv 3×3, without padding: two tiles fewer each way."""
    h, w = x.shape[0] - KERNEL + 1, x.shape[1] - KERNEL + 1
    patches = [x[i : i + h, j : j + w] for i in range(KERNEL) for j in range(KERNEL)]
    return layer(jnp.concatenate(patches, axis=-1))


def window(map_: Float[Array, "21 79 *c"], margin: int) -> Float[Array, "side side *c"]:
    """The room's tiles on a map and `margin` more on each side."""
    end = SIDE + margin
    return map_[TOP - margin : TOP + end, LEFT - margin : LEFT + end]


def clear(map_: Float[Array, "21 79 c"], margin: int) -> Float[Array, "21 79 c"]:
    """The map with zeros for the room and `margin` tiles around it."""
    end = SIDE + margin
    return map_.at[TOP - margin : TOP + end, LEFT - margin : LEFT + end].set(0.0)
