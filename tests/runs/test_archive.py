"""Admitted levels on disk: written stretch by stretch, and read as one list."""

import jax
import numpy as np
import pytest

from tutelage.envs.maze.level import MazeLevel
from tutelage.runs import archive


def stretch(count: int, first: int) -> archive.Admitted:
    """So many levels, with ids from `first` on."""
    ids = np.arange(first, first + count, dtype=np.int32)
    walls = np.random.default_rng(first).random((count, 5, 4)) < 0.5
    levels = MazeLevel(walls, ids, ids + 1, ids % 4)  # pyright: ignore[reportArgumentType]
    facts = dict(seed=0 * ids, id=ids, parent=ids - 1, generation=ids // 2, birth=ids, score=ids / np.float32(3))
    return archive.Admitted(level=levels, **facts)


@pytest.mark.parametrize("counts", [(3, 2), (3, 0, 2), (0, 4), (0,)], ids=str)
def test_what_is_written_is_read(tmp_path, counts):
    """Stretches in which nothing was admitted included."""
    example = jax.tree.map(lambda x: x[0], stretch(1, 0).level)
    parts = [stretch(count, 10 * n) for n, count in enumerate(counts)]
    for n, part in enumerate(parts):
        archive.write(tmp_path, n, part)
    found, expected = archive.read(tmp_path, example), archive.concatenate(parts)
    assert len(found.id) == sum(counts)
    for name in archive.FACTS:
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    for a, b in zip(found.level, expected.level, strict=True):
        assert a.shape == b.shape
        assert np.array_equal(a, b)
