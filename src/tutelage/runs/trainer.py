"""The training loop: all seeds of a run in one compiled program, called again and again until the last update."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from tutelage.curricula.classroom import Classroom, Curriculum
from tutelage.curricula.log import PHASES, Log, survey
from tutelage.curricula.seeds import when
from tutelage.curricula.state import State
from tutelage.errors import UserError
from tutelage.runs import archive, checkpoint, devices, health, memory, metrics, presets
from tutelage.runs import config as configs
from tutelage.runs.config import Config
from tutelage.runs.devices import ALL, EACH, placed, spread
from tutelage.runs.evaluate import evaluate
from tutelage.runs.run import remembered, state_template
from tutelage.runs.signals import Interrupted, Requests
from tutelage.runs.start import Beginning

CYCLES_PER_CALL = 64
KEPT_CHECKPOINTS = 2
SHOWN_LEVELS = 8
IDLE_CALLS = 20  # after which it is said that no new levels come

Warn = Callable[[str], None]


def advance(room: Classroom, method: Curriculum, states: State, target: Int[Array, ""]) -> State:
    """Cycles every seed until it has done `target` student updates, or CYCLES_PER_CALL cycles have passed.

    A seed that is there already waits, so that at a target all seeds have learned exactly as often. The log of the
    returned state covers this call.
    """
    level = jax.eval_shape(room.design.sample, jax.random.key(0))
    noted = (*room.learning.notes, *method.notes)
    blank = Log.blank(level, room.slots, method.journal_rows(room, CYCLES_PER_CALL), noted)
    seeds = states.updates.shape[0]
    states = states.with_log(jax.tree.map(lambda x: jnp.broadcast_to(x, (seeds, *x.shape)), blank))

    def unfinished(carry: tuple[Array, State]) -> Array:
        return (carry[0] < CYCLES_PER_CALL) & (carry[1].updates < target).any()

    def cycle(carry: tuple[Array, State]) -> tuple[Array, State]:
        active = carry[1].updates < target
        one = jax.vmap(lambda active, s: when(active, lambda s: method.cycle(room, s), s))
        return carry[0] + 1, one(active, carry[1])

    return lax.while_loop(unfinished, cycle, (jnp.zeros((), jnp.int32), states))[1]


@remembered
def programs(config: Config, devices: int = 1) -> tuple[Classroom, Any, Any]:
    """What is compiled for a run: its classroom, `advance`, and the look at buffers and learners of each stop."""
    room = config.classroom()
    step = spread(lambda s, target: advance(room, config.method, s, target), devices, (EACH, ALL))
    look = jax.vmap(lambda s: (survey(room.design, s.buffer, config.method.buffer), health.finite(s)))
    return room, jax.jit(step, donate_argnums=0), jax.jit(spread(look, devices, (EACH,)))


@dataclass(frozen=True)
class Progress:
    """How a run stands, for whoever shows it."""

    updates: int
    total: int
    env_steps: int
    steps_per_second: float
    fill: float
    row: dict[str, float]  # the latest metrics, averaged over seeds
    seconds_left: float | None


@dataclass
class _Tally:
    """Means and levels gathered on the host since the last row and the last checkpoint."""

    totals: dict[str, np.ndarray] = field(default_factory=dict)
    admitted: list[archive.Admitted] = field(default_factory=list)

    def add(self, log: Log, seeds: list[int]) -> None:
        for name, mean in log.means.items():
            self.totals[name] = self.totals.get(name, 0.0) + np.stack(mean)
        self.admitted.append(archive.admitted_from(log.journal, log.rows, seeds))

    def take_means(self, seed_index: int) -> dict[str, float | None]:
        out = {}
        for name, (total, weight) in self.totals.items():
            out[name] = float(total[seed_index] / weight[seed_index]) if weight[seed_index] > 0 else None
        return out


class Trainer:
    """The compiled programs of a run, and its place on disk."""

    def __init__(
        self,
        config: Config,
        path: Path,
        on_progress: Callable[[Progress], None],
        warn: Warn = lambda text: None,
        device_count: int = 1,
    ):
        devices.check(config.seeds, device_count)
        self.config, self.path, self.on_progress, self.warn = config, path, on_progress, warn
        self.devices = device_count
        self.room, self._advance, self._survey = programs(config, device_count)
        self.requests = Requests()
        self._tally = _Tally()
        self._stopped = 0  # student updates at the last stop
        self._idle = 0  # calls of the compiled program without a student update or a new level
        self._latest: dict[str, float] = {}
        self._began: float | None = None  # when the first call came back: compiling must not count
        self._before = (0, 0)  # student updates and env steps at that time

    @cached_property
    def seeds(self) -> list[int]:
        """The run's seeds; a list only when their number is known to be reasonable."""
        return list(self.config.all_seeds)

    def check(self) -> None:
        """Refuses what cannot be trained here, before anything is written or compiled."""
        metrics.check_extra(self.config.track)
        state = state_template(self.config)
        memory.check(state, devices=self.devices)  # first, since tables as large as the buffer are made in tracing
        memory.check(state, self._advance.trace(state, jnp.zeros((), jnp.int32)).jaxpr.jaxpr, self.devices)
        if type(self.config.env) not in presets.DOMAINS.values():
            health.try_env(self.config)

    def train(self, beginning: Beginning, sinks: list[metrics.Sink]) -> None:
        """From where it begins or goes on to the run's last student update, or to the first stop after a signal."""
        state, done = placed(beginning.state, self.devices), beginning.updates
        self._stopped = done
        self.on_progress(self._progress(state))  # before anything is compiled
        if not checkpoint.available(self.path / "checkpoints"):
            self._tally.admitted += [] if beginning.levels is None else [beginning.levels]
            self._checkpoint(state, done)
        while done < self.config.updates:
            target = self._next_stop(done)
            state = self._reach(state, target)
            self._log(state, target, sinks)  # at every stop: what a row covers must not depend on a resume
            if self.config.track.to != "none" and self._due(self.config.checkpoint_every, target):
                self._show_levels(state, target, sinks)
            due = self._due(self.config.checkpoint_every, target) or self._due(self.config.archive_every, target)
            if due or self.requests.received:
                self._checkpoint(state, target)
            done = self._stopped = target
            if self.requests.received and done < self.config.updates:
                raise self._interrupted(self.requests.received, done)

    def _interrupted(self, number: int, done: int) -> Interrupted:
        text = f"{self.path} stopped at {done:,} of {self.config.updates:,} student updates"
        return Interrupted(number, done, f"{text}: `tutelage resume {shlex.quote(str(self.path))}` goes on with it.")

    def _reach(self, state: State, target: int) -> State:
        """Calls the compiled program until every seed has reached the target."""
        while int(state.updates.min()) < target:
            state = self._advance(state.with_log(None), jnp.asarray(target, jnp.int32))
            assert state.log is not None
            log = jax.device_get(state.log)
            self._tally.add(log, self.seeds)
            state = state.with_log(None)
            self._watch(state, log)
            self._start_clock(state)
            self.on_progress(self._progress(state))
        return state

    def _watch(self, state: State, log: Log) -> None:
        """Says why nothing comes of a training, where that can be told."""
        name, totals = self.config.env.name, self._tally.totals
        if not any(totals[f"{phase}/length"][1].any() for phase in PHASES):
            raise UserError(
                f"The env {name!r} ends no episodes: none was over after {self.config.steps} steps, "
                f"though its max_steps is {self.room.env.max_steps}."
            )
        if not (self._all_finite("return") and self._all_finite("score")):
            self._explain(state, log)
        self._idle = 0 if len(self._tally.admitted[-1]) or int(state.updates.min()) else self._idle + 1
        if self._idle == IDLE_CALLS:
            self.warn(
                f"For {IDLE_CALLS * CYCLES_PER_CALL} rollouts no level has come that the buffer lacks, and it is too "
                "empty to learn from: a smaller --method.buffer.capacity or --method.buffer.min-fill may be needed."
            )

    def _all_finite(self, what: str) -> bool:
        """Whether what was noted of episodes or levels in each phase is finite."""
        return all(np.isfinite(self._tally.totals[f"{phase}/{what}"][0]).all() for phase in PHASES)

    def _explain(self, state: State, log: Log) -> None:
        """Why returns or scores are not finite: the students have diverged, or an env gives such on some levels."""
        updates, seeds = int(state.updates.min()), [{"seed": seed} for seed in self.seeds]
        if (found := health.diverged(jax.device_get(self._survey(state)[1]), seeds)) is not None:
            self._give_up(*found, state, updates)
        if not self._all_finite("return"):
            raise UserError(f"The env {self.config.env.name!r} gives rewards that are not finite.")
        health.try_env(self.config, health.unscored(log))
        raise UserError(f"The scores of some levels ceased to be finite before student update {updates + 1:,}.")

    def _next_stop(self, done: int) -> int:
        c = self.config
        cadences = [n for n in (c.log_every, c.eval_every, c.checkpoint_every, c.archive_every) if n]
        return min(c.updates, *((done // n + 1) * n for n in cadences))

    def _due(self, every: int, updates: int) -> bool:
        return updates == self.config.updates or (every > 0 and updates % every == 0)

    def _env_steps(self, state: State) -> int:
        """Summed over seeds; counted on the host, where integers do not overflow."""
        return int(np.asarray(state.rollouts, np.int64).sum()) * self.config.slots * self.config.steps

    def _start_clock(self, state: State) -> None:
        if self._began is None:
            self._began, self._before = time.monotonic(), (int(state.updates.min()), self._env_steps(state))

    def _elapsed(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    def _speed(self, state: State) -> float:
        elapsed = self._elapsed()
        return (self._env_steps(state) - self._before[1]) / elapsed if elapsed else 0.0

    def _log(self, state: State, updates: int, sinks: list[metrics.Sink]) -> None:
        buffer, finite = jax.device_get(self._survey(state))
        cycles, rollouts = np.asarray(state.cycles, np.int64), np.asarray(state.rollouts, np.int64)
        held_out = self._validate(state, updates)
        rows = []
        for i, seed in enumerate(self.seeds):
            row: dict[str, Any] = {"updates": updates, "seed": seed, "cycles": int(cycles[i])}
            row["env_steps"] = int(rollouts[i]) * self.config.slots * self.config.steps
            row["steps_per_second"] = round(self._speed(state), 1)
            row |= self._tally.take_means(i)
            row |= {k: float(v[i]) for k, v in buffer.items()}
            rows.append(row | held_out.get(seed, {}))
        for sink in sinks:
            sink.write(rows)
        self._tally.totals.clear()
        if (found := health.diverged(finite, rows)) is not None:
            self._give_up(*found, state, updates)
        self._latest |= {k: _seed_mean(rows, k) for k in rows[0]}
        self.on_progress(self._progress(state))

    def _give_up(self, what: str, seed: int, state: State, updates: int) -> None:
        """Ends a training that cannot come to anything, its last good checkpoint untouched."""
        place = self.seeds.index(seed)
        health.try_env(self.config, health.held(jax.tree.map(lambda x: x[place], state.buffer)))
        kept = max(checkpoint.available(self.path / "checkpoints"), default="none")
        raise UserError(
            f"Training has diverged: in seed {seed}, {what} ceased to be finite between student updates "
            f"{self._stopped:,} and {updates:,}. A smaller --{self.room.learning.name}.learning-rate may help. "
            f"The last good checkpoint is {kept}."
        )

    def _show_levels(self, state: State, updates: int, sinks: list[metrics.Sink]) -> None:
        """Each seed's levels of highest score, side by side."""
        buffer = jax.device_get(state.buffer)
        pictures = {}
        for i, seed in enumerate(self.seeds):
            best = np.argsort(-buffer.score[i, : int(buffer.filled[i])])[:SHOWN_LEVELS]
            drawn = [self.room.design.render(buffer.record.at((i, k)).level) for k in best]
            if drawn:
                pictures[f"levels/seed{seed}"] = np.concatenate(drawn, axis=1)
        for sink in sinks:
            sink.show(updates, pictures)

    def _validate(self, state: State, updates: int) -> dict[int, dict[str, float]]:
        """Solved rates on the validation levels, by seed."""
        suite = self.config.env.suites().get("validation", ())
        if not suite or not self.config.eval_every or not self._due(self.config.eval_every, updates):
            return {}
        results = evaluate(
            state.learner.student,
            self.seeds,
            suite,
            self.config.eval_episodes,
            evaluation_seed=updates,
            devices=self.devices,
        )
        out: dict[int, dict[str, float]] = {seed: {} for seed in self.seeds}
        for r in results:
            out[r.seed] |= {f"eval/{r.level}/solved": r.solved_rate, f"eval/{r.level}/return": r.mean_return}
        for row in out.values():
            row["eval/solved"] = float(np.mean([v for k, v in row.items() if k.endswith("/solved")]))
        return out

    def _checkpoint(self, state: State, updates: int) -> None:
        """First the levels, then the state that knows of them."""
        folder = self.path / "checkpoints"
        if self._tally.admitted:
            archive.write(self.path / "levels", updates, archive.concatenate(self._tally.admitted))
            self._tally.admitted.clear()
        checkpoint.save(folder, updates, state, configs.to_json(self.config, presets.method_name(self.config.method)))
        checkpoint.prune(folder, KEPT_CHECKPOINTS, self.config.archive_every)

    def _progress(self, state: State) -> Progress:
        updates = int(state.updates.min())
        progress = updates - self._before[0]
        left = self._elapsed() / progress * (self.config.updates - updates) if progress and self._elapsed() else None
        fill = float(np.asarray(state.buffer.filled).mean()) / self.config.method.buffer.capacity
        return Progress(
            updates, self.config.updates, self._env_steps(state), self._speed(state), fill, self._latest, left
        )


def _seed_mean(rows: list[dict[str, Any]], name: str) -> float:
    values = [row[name] for row in rows if row.get(name) is not None]
    return float(np.mean(values)) if values else float("nan")
