"""Where the time of a student update goes on this machine's device, kernel by kernel.

    python bench/where_time_goes.py maze/accel --seeds 5 [--set student.cell=gru] [--updates 6] [--wait-for FILE]

Compiles, fills the buffer, then lets JAX's profiler watch a few updates. What is printed: how long an update takes by
the clock, how much of it the device is at work, and the kernels that take longest, with how often each is launched and
how long one takes. Kernels that differ only by a number at the end of their names stand together.

With `--wait-for` it waits between compiling and watching until there is a file of that name, so that what it watches
has the device for itself.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.profiler import ProfileData

from tutelage.runs.bench import device_name, reach
from tutelage.runs.flags import start_jax
from tutelage.runs.presets import preset
from tutelage.runs.run import initial_state
from tutelage.runs.settings import changed, read, settings
from tutelage.runs.trainer import advance

ROWS = 28
WARM_UP = 20  # student updates


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--wait-for", type=Path)
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    return parser.parse_args()


def with_words(config: Any, words: list[str]) -> Any:
    """A config with some settings as on the command line."""
    kinds = {setting.name: setting.kind for setting in settings(config)}
    parts = (word.partition("=") for word in words)
    return changed(config, {name: read(kinds[name], [value]) for name, _, value in parts})


def launches(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Name, begin and length in seconds of whatever ran on the device."""
    [file] = folder.rglob("*.xplane.pb")
    data = ProfileData.from_file(str(file))
    planes = [plane for plane in data.planes if plane.name.startswith("/device:")] or list(data.planes)
    for plane in planes:
        for line in plane.lines:
            if line.name.startswith("Stream") or "XLA" in line.name:
                for event in line.events:
                    yield event.name, event.start_ns / 1e9, event.duration_ns / 1e9


def busy(spans: list[tuple[float, float]]) -> float:
    """Seconds in which anything ran."""
    total, until = 0.0, 0.0
    for begin, length in sorted(spans):
        total += max(0.0, begin + length - max(begin, until))
        until = max(until, begin + length)
    return total


def main() -> None:
    args = arguments()
    config = with_words(replace(preset(*args.preset.split("/")), seeds=args.seeds), args.set)
    start_jax(config.env)
    room = config.classroom()
    program = jax.jit(lambda s, target: advance(room, config.method, s, target), donate_argnums=0)
    state = jax.jit(lambda: initial_state(config))()
    step = program.lower(state, jnp.int32(0)).compile()
    print(f"{args.preset}, {args.seeds} seeds, {device_name()}: compiled", flush=True)
    while args.wait_for and not args.wait_for.exists():
        time.sleep(0.05)
    state = reach(step, state, args.warm_up)
    began = time.perf_counter()
    state = reach(step, state, args.warm_up + args.updates)
    unwatched = (time.perf_counter() - began) / args.updates
    print(f"an update: {1e3 * unwatched:.1f} ms", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            reach(step, state, args.warm_up + 2 * args.updates)
        show(list(launches(Path(folder))), args.updates)


def show(ran: list[tuple[str, float, float]], updates: int) -> None:
    """Prints how long the device was at work, and with what."""
    seconds, counts = defaultdict(float), defaultdict(int)
    for name, _, length in ran:
        kind = re.sub(r"[._]\d+", "", name)[:60]
        seconds[kind] += length / updates
        counts[kind] += 1
    at_work = busy([(begin, length) for _, begin, length in ran]) / updates
    print(f"device at work: {1e3 * at_work:.1f} ms an update while watched; launches: {len(ran) / updates:,.0f}")
    for kind in sorted(seconds, key=lambda kind: -seconds[kind])[:ROWS]:
        each = 1e6 * seconds[kind] * updates / counts[kind]
        print(f"{kind:62}{1e3 * seconds[kind]:8.2f} ms{counts[kind] / updates:9,.0f} ×{each:8.1f} µs")


if __name__ == "__main__":
    main()
