"""The lava domain as a whole: options, suites, encoders, pictures, presets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random

from lava.reference import assert_sound
from tutelage.env import Domain, HasOriginal
from tutelage.envs.lava import LavaDomain, LavaObs, NetHackEncoder, render
from tutelage.envs.lava.draws import Crossing, Tiles
from tutelage.envs.lava.env import full_map
from tutelage.envs.lava.level import level_from_rows
from tutelage.envs.lava.nethack import GLYPHS
from tutelage.envs.maze import MazeDomain
from tutelage.runs.presets import PRESETS, preset


def test_builds_its_parts() -> None:
    """One set of options, the same in every part."""
    domain = LavaDomain(max_steps=50, penalty="every-step", generator="uniform", placements=9)
    assert isinstance(domain, Domain)
    assert isinstance(domain, HasOriginal)
    assert not isinstance(MazeDomain(), HasOriginal)
    assert domain.name == "lava"
    assert (domain.env().max_steps, domain.env().penalty) == (50, "every-step")
    assert (domain.design().generator, domain.design().placements) == ("uniform", 9)
    assert all(level.env == domain.env() for level in domain.suites()["lava"])


@pytest.mark.parametrize("wrong", [{"max_steps": 0}, {"placements": -1}])
def test_refuses_nonsense(wrong: dict) -> None:
    """One sentence for each option that cannot be."""
    with pytest.raises(ValueError, match=r"^`\w+` must .*\.$"):
        LavaDomain(**wrong)


def test_suite_has_the_papers_rows() -> None:
    """Names and order; each level can be hashed, so that compiled programs are kept."""
    suites = LavaDomain().suites()
    assert [level.name for level in suites["lava"]] == ["Empty", "10 Tiles", "20 Tiles", "LavaCrossing S9N1"]
    assert list(suites) == ["lava", "validation"]
    assert all(hash(level) == hash(level) for level in suites["lava"])


@pytest.mark.parametrize(("draw", "mean"), [(Tiles(0), 0), (Tiles(10), 8.748), (Tiles(20), 15.86)])
def test_random_test_levels(draw: Tiles, mean: float) -> None:
    """So many placements: 49·(1 − qⁿ)·q² lava tiles on average, q = 48/49."""
    levels = jax.jit(jax.vmap(draw))(random.split(random.key(0), 4000))
    assert_sound(levels)
    np.testing.assert_allclose(levels.lava.sum(axis=(1, 2)).mean(), mean, atol=0.1)


def test_crossing_is_minigrids() -> None:
    """The 42 levels of one river with one gap, equally likely; and MiniGrid makes no others."""
    levels = jax.jit(jax.vmap(Crossing()))(random.split(random.key(0), 4200))
    found, counts = np.unique(np.asarray(levels.lava).reshape(-1, 49), axis=0, return_counts=True)
    assert len(found) == 42
    assert (found.sum(axis=1) == 6).all()
    np.testing.assert_allclose(counts / 4200, 1 / 42, atol=0.01)
    assert ((levels.agent == 0) & (levels.goal == 48)).all()
    assert {row.tobytes() for row in minigrid_crossings(60)} <= {row.tobytes() for row in found}


def minigrid_crossings(count: int) -> list[np.ndarray]:
    """Lava of MiniGrid's own LavaCrossing S9N1."""
    pytest.importorskip("minigrid")
    from minigrid.core.world_object import Lava
    from minigrid.envs import CrossingEnv

    original, layouts = CrossingEnv(size=9, num_crossings=1, obstacle_type=Lava), []
    for seed in range(count):
        original.reset(seed=seed)
        lava = np.array([isinstance(tile, Lava) for tile in original.grid.grid]).reshape(9, 9)
        layouts.append(lava[1:-1, 1:-1].reshape(-1))
    return layouts


def observations(count: int) -> LavaObs:
    """What students see on random levels."""
    domain = LavaDomain()

    def look(key):
        level = domain.design().sample(key)
        state, _ = domain.env().reset(key, level)
        return domain.env().step(key, state, jnp.int32(1))[1].obs

    return jax.jit(jax.vmap(look))(random.split(random.key(0), count))


def plain_nethack(encoder: NetHackEncoder, obs: LavaObs) -> jax.Array:
    """The network as it is defined: over the whole map, with convolutions and rows read from the table."""

    def stack(convolutions, glyphs):
        x = encoder.table[jnp.argmax(glyphs[..., None] == GLYPHS, axis=-1)][None]
        for layer in convolutions.layers:
            kernel = layer.weight.reshape(3, 3, x.shape[-1], -1)
            x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.elu(x + layer.bias)
        return x.reshape(-1)

    stats = obs.blstats.astype(jnp.float32)
    for layer in encoder.stats:
        stats = jax.nn.relu(layer(stats))
    parts = [stats, stack(encoder.crop, obs.crop), stack(encoder.map, full_map(obs.glyphs))]
    return jax.nn.relu(encoder.last(jax.nn.relu(encoder.joint(jnp.concatenate(parts)))))


def test_nethack_encoder_is_the_network_over_the_whole_map() -> None:
    """Leaving out what is constant changes neither the features nor any gradient."""
    encoder, obs = LavaDomain(eye="nethack").encoder(random.key(0)), observations(4)
    fast, plain = jax.vmap(encoder)(obs), jax.vmap(lambda o: plain_nethack(encoder, o))(obs)
    np.testing.assert_allclose(fast, plain, atol=1e-4)
    assert np.std(fast, axis=0).max() > 1e-3, "features depend on the observation"

    def total(see):
        return lambda encoder: jnp.sum(jnp.sin(jax.vmap(lambda o: see(encoder, o))(obs)))

    fast, plain = (jax.jit(jax.grad(total(see)))(encoder) for see in (NetHackEncoder.__call__, plain_nethack))
    for have, want in zip(jax.tree.leaves(fast), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(have, want, atol=1e-4 * (1 + np.abs(want).max()))


def test_nethack_encoder_has_the_baselines_size() -> None:
    """13,952 inputs of the joint layer; only the rows of glyphs that never occur are missing."""
    encoder = jax.eval_shape(lambda: LavaDomain(eye="nethack").encoder(random.key(0)))
    convolutions = (9 * 32 * 16 + 16) + 3 * (9 * 16 * 16 + 16) + (9 * 16 * 8 + 8)
    stats = (27 * 32 + 32) + (32 * 32 + 32)
    dense = (13952 * 512 + 512) + (512 * 256 + 256)
    assert sum(leaf.size for leaf in jax.tree.leaves(encoder)) == 6 * 32 + 2 * convolutions + stats + dense
    assert encoder.size == 256


def test_small_encoder_sees_every_tile() -> None:
    """Moving the goal or a lava tile anywhere changes its features."""
    domain = LavaDomain()
    encoder = domain.encoder(random.key(0))
    levels = [level_from_rows(["S......", *["......."] * 5, row]) for row in ("......G", ".....G.", "....LG.")]
    features = [np.asarray(encoder(domain.env().reset(random.key(0), level)[1])) for level in levels]
    assert features[0].shape == (encoder.size,)
    assert len({f.tobytes() for f in features}) == 3


LEVEL = level_from_rows(["S.L....", *["......."] * 5, "......G"])


@pytest.mark.parametrize("tile", [8, 16, 40])
def test_picture_shows_every_kind_of_tile(tile: int) -> None:
    """Stone around the room, floor, lava, stairs and the student look different."""
    picture = render.draw(LEVEL, tile=tile)
    assert picture.shape == (9 * tile, 9 * tile, 3)
    assert picture.dtype == np.uint8
    places = {"stone": (0, 0), "student": (1, 1), "floor": (1, 2), "lava": (1, 3), "goal": (7, 7)}
    looks = {name: picture[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile] for name, (y, x) in places.items()}
    assert len({look.tobytes() for look in looks.values()}) == 5
    assert (looks["stone"] == render.STONE).all()
    red, _, blue = looks["lava"].mean(axis=(0, 1))
    assert red > 4 * blue


def test_film() -> None:
    """A frame a state, with the trail; a burnt student is shown on the lava."""
    domain = LavaDomain()
    state, _ = domain.env().reset(random.key(0), LEVEL)
    states = [state]
    for action in (1, 1):
        states.append(domain.env().step(random.key(0), states[-1], jnp.int32(action))[0])
    frames = domain.film(LEVEL, jax.tree.map(lambda *leaves: np.stack(leaves), *states))
    assert len({frame.tobytes() for frame in frames}) == len(frames) == 3
    tile = frames[0].shape[0] // 9
    lava = [frame[tile : 2 * tile, 3 * tile : 4 * tile] for frame in frames]
    assert (lava[0] == lava[1]).all()
    assert (lava[1] != lava[2]).any()


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("lava/")])
def test_presets_can_be_trained(name: str) -> None:
    """Each has a student that fits; ACCEL's buffer can be filled enough from the 2,352 empty rooms."""
    config = preset(*name.split("/"))
    config.classroom()
    assert config.updates == 1000
    if config.env.generator == "empty":
        assert config.method.buffer.min_filled < 49 * 48 / 2


def test_students_of_the_presets_are_the_nethack_baseline() -> None:
    """LSTM of 256, and on it one layer for the eight moves and one for the value."""
    student = jax.eval_shape(preset("lava", "accel").classroom().new_student, random.key(0))
    assert student.actor.weight.shape == (256, 8)
    assert student.critic.weight.shape == (256, 1)
    assert student.recurrent
