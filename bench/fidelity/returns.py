"""Returns of walkers in gymnasium's Box2D and here, on the same terrains, with the same pushes and the same noise.

    python bench/fidelity/returns.py record OUT --policies DIR [--episodes 200] [--worlds hardcore,basic,Stairs]
    python bench/fidelity/returns.py replay OUT [--tolerance 0.001]

`record` plays gymnasium, a fresh world for each episode, and writes a file for every hundred levels of a world; what is
there already is not played again. `basic` and `hardcore` are gymnasium's own terrains; the others are those of the
suite `bipedal`, injected. `--policies` is a folder of `.npz` files with `w0 b0 w1 b1 w2 b2 log_std`; gymnasium's own
heuristic plays along. `replay` needs only what `record` has written, and plays all of a world's episodes at once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from policies import HEURISTIC, Network, first_gait, load, together

from tutelage.envs.bipedal import TOLERANCE, WalkerDomain
from tutelage.envs.bipedal.env import Walker
from tutelage.envs.bipedal.suite import BASIC_STEPS, PAPER, STEPS
from tutelage.envs.bipedal.terrain import Terrain, build
from tutelage.runs.flags import tell_xla

WORLDS = ("hardcore", "basic", *PAPER)
BLOCK = 100  # levels a file


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("record", "replay"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=500_000)
    parser.add_argument("--worlds", type=lambda names: names.split(","), default=WORLDS)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    return parser.parse_args()


def limit(world: str) -> int:
    """Steps until an episode is cut off."""
    return BASIC_STEPS if world == "basic" else STEPS


def noise(seed: int) -> np.ndarray:
    """What is random about the actions of an episode, in both worlds: standard normal numbers `[step, 4]`."""
    return np.random.default_rng(seed).standard_normal((STEPS, 4), np.float32)


def record(args: argparse.Namespace) -> None:
    """Plays gymnasium and writes what has been played."""
    policies = {path.stem: load(path) for path in sorted(args.policies.glob("*.npz"))}
    args.folder.mkdir(parents=True, exist_ok=True)
    stacked = {name: np.stack(arrays) for name, *arrays in zip(Network._fields, *policies.values(), strict=True)}
    np.savez(args.folder / "policies.npz", **stacked)
    for world in args.worlds:
        for first in range(args.first_seed, args.first_seed + args.episodes, BLOCK):
            path = args.folder / f"{world}-{first}.npz"
            if not path.exists():
                levels = min(BLOCK, args.first_seed + args.episodes - first)
                np.savez_compressed(path, **record_block(world, range(first, first + levels), policies))


def record_block(world: str, seeds: range, policies: dict[str, Network]) -> dict[str, Any]:
    """Levels of a world, and the return of every policy on each of them."""
    makers = [opener(world, seed) for seed in seeds]
    grounds = [make()[2:] for make in makers]
    terrain = jax.tree.map(lambda *x: np.stack(x), *(ground for ground, _ in grounds))
    played = {}
    for name, network in [*policies.items(), (HEURISTIC, None)]:
        began = time.perf_counter()
        played[name] = [
            play_real(*make()[:2], network, noise(seed), limit(world)) for make, seed in zip(makers, seeds, strict=True)
        ]
        steps = sum(length for _, length in played[name])
        mean = np.mean([total for total, _ in played[name]])
        print(f"{world} {seeds[0]} {name}: {mean:.1f}, {steps / (time.perf_counter() - began):.0f} steps/s", flush=True)
    outcome = np.array(list(played.values()))
    return {
        **terrain._asdict(),
        "force": np.float32([force for _, force in grounds]),
        "seed": np.array(seeds),
        "policy": np.array(list(played)),
        "returns": outcome[..., 0],
        "lengths": outcome[..., 1].astype(np.int32),
    }


def opener(world: str, seed: int) -> Callable[[], tuple]:
    """A function that opens gymnasium on a level: the env, its first observation, the terrain, the first force."""
    if world in PAPER:
        terrain, force = jax.tree.map(np.asarray, _built(world, seed))
        return partial(_injected, terrain, float(force))
    from bipedal import box2d

    return partial(box2d.make, seed, world == "hardcore")


@partial(jax.jit, static_argnums=0)
def _built(world: str, seed: int) -> Any:
    return build(PAPER[world](random.key(seed)), "parametrised")


def _injected(terrain: Terrain, force: float) -> tuple:
    from tutelage.envs.bipedal.real import gymnasium

    env = gymnasium()(STEPS)
    return env, env.begin((terrain, force)).obs, terrain, force


def play_real(env: Any, obs: np.ndarray, network: Network | None, noises: np.ndarray, limit: int) -> tuple[float, int]:
    """Return and length of an episode in gymnasium."""
    from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

    walker, total = BipedalWalkerHeuristics(), 0.0
    for t in range(limit):
        action = network.act(obs, noises[t], np) if network else walker.step_heuristic(obs)
        obs, reward, terminated, _, _ = env.step(np.float32(action))
        total += reward
        if terminated:
            return total, t + 1
    return total, limit


class Recorded(NamedTuple):
    """The episodes of a world: `[level]` or, for what differs by policy, `[policy, level]`."""

    world: str
    terrain: Terrain
    force: np.ndarray
    seed: np.ndarray
    policy: np.ndarray
    returns: np.ndarray


def recorded(folder: Path, worlds: tuple[str, ...]) -> Iterator[Recorded]:
    """What has been recorded, world by world."""
    for world in worlds:
        files = sorted(folder.glob(f"{world}-*.npz"))
        if files:
            blocks = [dict(np.load(path, allow_pickle=False)) for path in files]
            joined = {
                name: np.concatenate([block[name] for block in blocks]) for name in (*Terrain._fields, "force", "seed")
            }
            returns = np.concatenate([block["returns"] for block in blocks], axis=1)
            terrain = Terrain(*(joined[name] for name in Terrain._fields))
            yield Recorded(world, terrain, joined["force"], joined["seed"], blocks[0]["policy"], returns)


def replay(args: argparse.Namespace) -> None:
    """Plays what has been recorded once more, here, and prints how the returns compare."""
    weights = np.load(args.folder / "policies.npz")
    networks = [Network(*layers) for layers in zip(*(weights[name] for name in Network._fields), strict=True)]
    play = player(args.tolerance, together(networks))
    print(f"tolerance {args.tolerance:g}, {jax.devices()[0].device_kind}, JAX {jax.__version__}\n")
    print("| world | policy | episodes | gymnasium | here | difference of pairs | in s.e. | KS p |")
    print("|---|---|---|---|---|---|---|---|")
    for played in recorded(args.folder, args.worlds):
        noises = np.stack([noise(seed) for seed in played.seed], axis=1)
        here = np.asarray(play(*jax.tree.map(jnp.asarray, (played.terrain, played.force, noises)), limit(played.world)))
        for name, *pair in zip(played.policy, played.returns, here, strict=True):
            print(row(played.world, name, *pair), flush=True)


def player(tolerance: float, policies: Any) -> Callable:
    """A compiled function from terrains, forces, noise and a limit of steps to returns `[policy, level]`."""
    env = Walker(max_steps=STEPS, tolerance=tolerance)
    n = policies.heuristic.size

    @jax.jit
    def play(terrain: Terrain, force: jax.Array, noises: jax.Array, limit: int) -> jax.Array:
        levels = force.size

        def batch(x):
            return jnp.broadcast_to(x, (n, *x.shape)).reshape(n * levels, *x.shape[1:])

        def step(carry):
            t, states, obs, gaits, total, alive = carry
            seen = obs.reshape(n, levels, -1)
            gaits, actions = jax.vmap(type(policies).act, (0, 0, 0, None))(policies, gaits, seen, noises[t])
            states, after = jax.vmap(partial(env.step, random.key(0)))(states, actions.reshape(n * levels, -1))
            total += jnp.where(alive, after.reward, 0.0)
            return t + 1, states, after.obs, gaits, total, alive & ~after.terminated

        states, obs = jax.vmap(env.start)(*jax.tree.map(batch, (terrain, force)))
        total = jnp.zeros(n * levels)
        begin = (0, states, obs, first_gait((n, levels)), total, jnp.ones_like(total, bool))
        total = lax.while_loop(lambda carry: (carry[0] < limit) & carry[-1].any(), step, begin)[-2]
        return total.reshape(n, levels)

    return play


def row(world: str, policy: str, real: np.ndarray, here: np.ndarray) -> str:
    """A line of the table: means with their standard errors, the mean difference of pairs, a test of distributions."""
    from scipy.stats import ks_2samp

    gap, error = mean_and_error(here - real)
    same = ks_2samp(real, here).pvalue
    means = " | ".join("{:.1f} ± {:.1f}".format(*mean_and_error(x)) for x in (real, here))
    return (
        f"| {world} | {policy} | {len(real)} | {means} | {gap:+.1f} ± {error:.1f} | {gap / error:+.1f} | {same:.2f} |"
    )


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    args = arguments()
    tell_xla(WalkerDomain())
    {"record": record, "replay": replay}[args.stage](args)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    main()
