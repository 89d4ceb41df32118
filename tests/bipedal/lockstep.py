"""Our steps from Box2D's states: every step begins where Box2D's began, so that errors are those of one step."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from bipedal import box2d
from tutelage.envs.bipedal.env import Walker, WalkerState

EPISODES, STEPS = 8, 120


@lru_cache
def compiled(tolerance: float):
    """`Walker.start` and `Walker.step` for a batch of eight, compiled once for all tests."""
    env = Walker(tolerance=tolerance)
    key = jax.random.key(0)
    return jax.jit(jax.vmap(env.start)), jax.jit(jax.vmap(lambda state, action: env.step(key, state, action)))


def follow(start, step, played: dict) -> dict[str, np.ndarray]:
    """Errors of single steps, where Box2D's episode was not over: bodies, lidar, reward, flags, ends."""
    terrain = jax.tree.map(jnp.asarray, played["terrain"])
    state, obs = start(terrain, jnp.asarray(played["force"]))
    found = {"first": np.abs(np.asarray(obs) - played["first"])}
    steps = {name: [] for name in ("pose", "velocity", "lidar", "reward", "flags", "ends")}
    for t in range(played["action"].shape[1]):
        state: WalkerState = state._replace(bodies=box2d.as_body(played["bodies"][:, t]))
        state, after = step(state, jnp.asarray(played["action"][:, t]))
        alive, over = played["alive"][:, t], played["over"][:, t]
        error = np.abs(np.stack([np.asarray(v) for v in state.bodies], -1) - played["bodies"][:, t + 1])
        seen = np.abs(np.asarray(after.obs) - played["obs"][:, t])
        goes_on = alive & ~over
        steps["pose"].extend(error[goes_on, :, :3].max((1, 2)))
        steps["velocity"].extend(error[goes_on, :, 3:].max((1, 2)))
        steps["lidar"].extend(seen[goes_on, 14:].max(1))
        steps["reward"].extend(np.abs(np.asarray(after.reward) - played["reward"][:, t])[alive])
        steps["flags"].extend(seen[alive][:, [8, 13]].ravel())
        steps["ends"].extend(np.asarray(after.terminated)[alive] != over[alive])
    return {**found, **{name: np.array(values) for name, values in steps.items()}}
