"""gymnasium's walker as an oracle: its terrain and its bodies as our arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("Box2D")
walkers = pytest.importorskip("gymnasium.envs.box2d.bipedal_walker")

from tutelage.envs.bipedal.physics.body import Body  # noqa: E402
from tutelage.envs.bipedal.terrain import Terrain  # noqa: E402

CELL = 14 / 30


def flat() -> Terrain:
    return terrain_of(np.arange(200) * CELL, np.full(200, 400 / 30 / 4), [])


def terrain_of(x, y, boxes) -> Terrain:
    """Vertices and rectangles (left, right, top, bottom) as a terrain."""
    box, number = np.tile(np.float32([1, 0, 0, 0]), (200, 1)), np.full(200, -1, np.int32)
    for k, rectangle in enumerate(boxes):
        first, last = int((rectangle[0] + 1e-3) / CELL), int((rectangle[1] - 1e-3) / CELL)
        box[first : last + 1], number[first : last + 1] = rectangle, k
    return Terrain(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(box), jnp.asarray(number))


def make(seed: int, hardcore: bool = False):
    """A fresh walker of gymnasium's after its reset, the terrain it stands on, and the force of its first step."""
    env = walkers.BipedalWalker(hardcore=hardcore)
    forces = []
    apply_force = walkers.Box2D.b2Body.ApplyForceToCenter
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            walkers.Box2D.b2Body,
            "ApplyForceToCenter",
            lambda body, force, wake: (forces.append(force[0]), apply_force(body, force, wake))[1],
        )
        obs, _ = env.reset(seed=seed)
    return env, obs, exported(env), forces[0]


def exported(env) -> Terrain:
    """The terrain of gymnasium's walker."""
    edges, boxes = [], []
    for body in env.terrain:
        corners = np.array(body.fixtures[0].shape.vertices)
        if len(corners) == 2:
            edges.append(corners)
        else:
            boxes.append([corners[:, 0].min(), corners[:, 0].max(), corners[:, 1].max(), corners[:, 1].min()])
    edges.sort(key=lambda e: e[0, 0])
    points = np.array([e[0] for e in edges] + [edges[-1][1]])
    return terrain_of(points[:, 0], points[:, 1], sorted(boxes))


def bodies_of(env) -> np.ndarray:
    """The five bodies, a row each: x, y, angle, vx, vy, spin."""
    return np.array(
        [[*body.worldCenter, body.angle, *body.linearVelocity, body.angularVelocity] for body in (env.hull, *env.legs)],
        np.float32,
    )


def as_body(rows) -> Body:
    """Rows as our bodies, on an axis."""
    return Body(*(jnp.asarray(rows[..., k]) for k in range(6)))


def unroll(env, obs, act, steps: int) -> dict[str, np.ndarray]:
    """An episode of at most `steps` steps, padded with its last moment: what was, what was done, what came of it."""
    rows, record = [bodies_of(env)], []
    over = False
    for _ in range(steps):
        action, alive = np.float32(act(obs)), not over
        reward = 0.0
        if alive:
            obs, reward, over, _, _ = env.step(action)
        rows.append(bodies_of(env))
        record.append((action, obs, np.float32(reward), over, alive))
    fields = dict(
        zip(("action", "obs", "reward", "over", "alive"), map(np.array, zip(*record, strict=True)), strict=True)
    )
    return {"bodies": np.array(rows), **fields}


def episodes(n: int, steps: int) -> dict:
    """Episodes by the heuristic and by random actions in turn, the second half on hardcore terrain."""
    out = []
    for k in range(n):
        env, obs, terrain, force = make(k, hardcore=k >= n // 2)
        rng, heuristic = np.random.default_rng(k), walkers.BipedalWalkerHeuristics()
        act = heuristic.step_heuristic if k % 2 == 0 else lambda _, rng=rng: rng.uniform(-1, 1, 4)
        out.append({"terrain": terrain, "force": np.float32(force), "first": obs, **unroll(env, obs, act, steps)})
    return jax.tree.map(lambda *v: np.stack(v), *out)
