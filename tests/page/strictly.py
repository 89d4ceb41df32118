"""Counts the numbers in which steps of a walker in an engine differ from JAX's; run with XLA told how to round."""

import jax
import jax.numpy as jnp
import numpy as np
from played import Called, leaves

from tutelage.envs.bipedal import WalkerDomain
from tutelage.page import engines

EPISODES, STEPS = 6, 100


def main() -> None:
    domain = WalkerDomain()
    env, design, ours = domain.env(), domain.design(), Called(engines.for_domain(domain))
    sample, reset, step = jax.jit(design.sample), jax.jit(env.reset), jax.jit(env.step)
    unequal = total = 0
    for key in jax.random.split(jax.random.key(0), EPISODES):
        state, _ = reset(key, sample(key))
        for k in jax.random.split(key, STEPS):
            action = jnp.clip(jax.random.normal(k, (4,)), -1.0, 1.0)
            found = ours("step", k, state, action, jnp.int32(env.max_steps))
            state, seen = after = step(k, state, action)
            pairs = list(zip(found, leaves(after), strict=True))
            unequal += sum(int((a != b).sum()) for a, b in pairs if not np.isnan(b).any())
            total += sum(a.size for a, _ in pairs)
            if seen.done:
                break
    print(f"{unequal} of {total}")


if __name__ == "__main__":
    main()
