"""Returns of a trained walker on the same levels, in an engine and by JAX; both begin from the same keys.

python tests/page/returned.py RUN [LEVELS]
"""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tutelage.page import engines
from tutelage.page.engines import Found
from tutelage.page.runtime import Record
from tutelage.runs.run import Run, load_student
from tutelage.student import distributions

LEVEL = "Roughness"


class Part:
    """Functions of an engine with a record for each name."""

    def __init__(self, found: Found):
        self.engine, self.functions, self.records = found.engine.open(), found.functions, {}

    def ready(self, role: str):
        """A call on the records of its arguments' names."""
        function = self.engine.manifest["functions"][self.functions[role]]
        pairs = [*function["in"], *function["out"]]
        return self.engine.bound(self.functions[role], *(self.record(*pair) for pair in pairs))

    def record(self, name: str, kind: str) -> Record:
        """The one of this name."""
        if name not in self.records:
            self.records[name] = self.engine.make(kind)
        return self.records[name]


def in_engine(run: Run, student, levels, keys) -> np.ndarray:
    """Each level once."""
    body, mind = Part(engines.for_domain(run.config.env)), Part(engines.for_student(run.config))
    reset, step, noise, act = body.ready("reset"), body.ready("step"), mind.ready("noise"), mind.ready("act")
    mind.records["params"].load(eqx.filter(student, eqx.is_array))
    body.records["limit"].load(jnp.int32(run.config.env.env().max_steps))
    returns = []
    for n, key in enumerate(keys):
        body.records["level"].load(jax.tree.map(lambda x, n=n: x[n], levels))
        body.records["key"].load(key)
        reset()
        mind.records["start"].load(jnp.bool_(True))
        total = 0.0
        for k in np.asarray(jax.random.key_data(jax.random.split(key, 2000))):
            mind.records["key"].load(k)
            noise()
            mind.records["obs"].load(body.records["obs"].values()[0])
            act()
            mind.records["start"].load(np.bool_(False))
            body.records["action"].load(mind.records["action"].values()[0])
            step()
            reward, terminated, truncated = body.records["outcome"].values()
            total += float(reward)
            if terminated or truncated:
                break
        returns.append(total)
    return np.array(returns)


def by_jax(run: Run, student, levels, keys) -> np.ndarray:
    """All levels at once."""
    env = run.config.env.env()
    noise = jax.vmap(lambda key: distributions.noise(key, env.actions, ()))

    def one(carry, step_keys):
        state, obs, memory, start, total, live = carry
        memory, policy, _ = student.act(memory, obs, start)
        state, seen = jax.vmap(env.step)(step_keys, state, policy.sample(noise(step_keys)))
        live_after = live & ~(seen.terminated | seen.truncated)
        return (state, seen.obs, memory, jnp.zeros_like(start), total + live * seen.reward, live_after), None

    @jax.jit
    def play(keys, levels):
        state, obs = jax.vmap(env.reset)(keys, levels)
        step_keys = jax.vmap(lambda key: jax.random.split(key, 2000))(keys).swapaxes(0, 1)
        start = jnp.ones(len(keys), bool)
        carry = (state, obs, student.memory(len(keys)), start, jnp.zeros(len(keys)), start)
        return jax.lax.scan(one, carry, step_keys)[0][4]

    return np.asarray(play(keys, levels))


def main(path: str, count: int) -> None:
    """Prints both means, the standard error of their difference, and the difference in such errors."""
    run = Run(Path(path))
    student = load_student(path).ready()
    (test,) = (t for suite in run.config.env.suites().values() for t in suite if t.name == LEVEL)
    keys = jax.random.split(jax.random.key(5), count)
    levels = jax.vmap(test.draw)(keys)
    ours, theirs = in_engine(run, student, levels, keys), by_jax(run, student, levels, keys)
    error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / count)
    print(f"{ours.mean():.2f} {theirs.mean():.2f} {error:.2f} {(ours.mean() - theirs.mean()) / error:.2f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 128)
