"""ALP-GMM's fit of all mixtures, on the device and by scikit-learn on the host.

    python bench/alp_gmm_fit.py [--seeds 1 10]

The walker's eight parameters and the absolute learning progress of 250 tasks in three heaps, as many sizes of mixtures
as `bipedal/alp-gmm` tries, one fit for each seed: the device fits all seeds at once, scikit-learn one after the other.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import jax
import numpy as np
from sklearn.mixture import GaussianMixture

from tutelage.curricula.mixture import fit_best
from tutelage.runs.bench import best_of, device_name
from tutelage.runs.presets import preset

REPEATS = 3


def tasks(seeds: int, count: int, size: int) -> np.ndarray:
    """Tasks and their learning progress, `[seeds, count, size]`, around three places."""
    random = np.random.default_rng(0)
    places = random.uniform(0, 2, (seeds, 3, size))
    near = places[np.arange(seeds)[:, None], random.integers(0, 3, (seeds, count))]
    return (near + random.normal(0, 0.2, near.shape)).astype(np.float32)


def by_scikit_learn(points: np.ndarray, sizes: tuple[int, int]) -> list[int]:
    """The sizes chosen by AIC."""
    chosen = []
    for one in points:
        fits = [GaussianMixture(k, random_state=0).fit(one) for k in range(sizes[0], sizes[1] + 1)]
        chosen.append(min(fits, key=lambda fit, one=one: fit.aic(one)).n_components)
    return chosen


def seconds_of(run: Callable[[], object]) -> float:
    """Of the fastest of a few."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 10])
    wanted = parser.parse_args().seeds
    if min(wanted) < 1:
        parser.error("--seeds must be at least 1")
    method = preset("bipedal", "alp-gmm").method
    sizes = (method.fewest, method.most)
    print(f"{device_name()}; {method.fit_rate} tasks, mixtures of {sizes[0]} to {sizes[1]}\n")
    print("| seeds | on the device | scikit-learn on the host | it takes longer by |\n|---|---|---|---|")
    for seeds in wanted:
        points = tasks(seeds, method.fit_rate, 9)
        keys = jax.random.split(jax.random.key(0), seeds)
        fit = jax.jit(jax.vmap(lambda key, points: fit_best(key, points, sizes)))
        here = best_of(lambda fit=fit, keys=keys, points=points: fit(keys, points), REPEATS)
        there = seconds_of(lambda points=points: by_scikit_learn(points, sizes))
        print(f"| {seeds} | {1e3 * here:,.0f} ms | {1e3 * there:,.0f} ms | {there / here:.2f} |")


if __name__ == "__main__":
    main()
