"""A whole rollout of walkers as one GPU kernel, their policy inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from tutelage.env import Box, Played
from tutelage.envs.bipedal.physics.body import Body
from tutelage.envs.bipedal.physics.impact import Flight
from tutelage.envs.bipedal.physics.machine import machine
from tutelage.envs.bipedal.physics.step import Efforts, Push, Seen, World, at_rest
from tutelage.envs.bipedal.physics.tools import anywhere, spread
from tutelage.envs.bipedal.run import solving
from tutelage.envs.bipedal.run.kernels import read_cells
from tutelage.envs.bipedal.run.loop import Loop
from tutelage.envs.bipedal.run.moment import Moment, as_one_batch, packed, unpacked
from tutelage.envs.bipedal.run.packing import Layout
from tutelage.envs.bipedal.run.stages import Stage, Way, table
from tutelage.student.controller import Controller, Crowd
from tutelage.student.nets import Flatten, TwoTowers

WIDTH = 32  # the 24 numbers of an observation, filled up to a power of two
SEEN = 24
MOST_UNITS = 64  # of a hidden layer
CROWD = 1056  # programs that an H200 holds if each takes all registers it can use; where there are more,
REGISTERS = 128  # twice as many fit


class Opening(NamedTuple):
    """How an episode begins."""

    world: World
    obs: Float[Array, "32 ..."]


class Standing(NamedTuple):
    """Where a slot stands between two steps."""

    world: World
    obs: Float[Array, "32 ..."]
    time: Int[Array, "..."]  # in the episode
    entry: Int[Array, "..."]  # of its queue
    clock: Int[Array, "..."]  # in the rollout


class Weights(NamedTuple):
    """A policy's weights: two hidden tanh layers and the one before the action. Of each seed, or of each walker."""

    w1: Float[Array, "*s 24 h"]
    b1: Float[Array, "*s h"]
    w2: Float[Array, "*s h h"]
    b2: Float[Array, "*s h"]
    w3: Float[Array, "*s h 4"]
    b3: Float[Array, "*s 4"]

    @property
    def units(self) -> int:
        """How many units a hidden layer has."""
        return self.b1.shape[-1]


class Record(NamedTuple):
    """What happened, step by step, and where the slots stand in the end."""

    obs: Float[Array, "*s T P 24"]
    action: Float[Array, "*s T P 4"]
    reward: Float[Array, "*s T P"]
    terminated: Array
    truncated: Array
    moment: Moment
    time: Int[Array, "*s P"]
    entry: Int[Array, "*s P"]


class Plan(NamedTuple):
    """What the kernel is made for."""

    tolerance: float
    judge: Callable[..., Any]  # what a step is worth (see `env`)
    max_steps: int
    slots: int
    queue: int
    steps: int
    units: int = MOST_UNITS
    share: int = 0  # walkers that have the same weights; 0: the slots of a seed
    squashed: bool = False  # the action is the tanh of the last layer

    @property
    def together(self) -> int:
        """Walkers that have the same weights."""
        return self.share or self.slots


def played_at_once(
    tolerance: float,
    judge: Callable[..., Any],
    max_steps: int,
    student: Any,
    openings: tuple[Moment, Float[Array, "P Q 24"], Float[Array, "P Q 200 8"]],
    noise: Float[Array, "T P 4"],
) -> tuple[Played, Int[Array, " P"], Int[Array, " P"]] | None:
    """The rollout of one seed's slots, whose `end` is a `Moment`, and of each slot's last episode time and entry.

    Under `vmap` the rollouts of all seeds are one kernel. None where it cannot be.
    """
    policy = _policy_of(student)
    if policy is None:
        return None
    steps, slots, _ = noise.shape
    weights, spread_of_noise, how = policy
    plan = Plan(tolerance, judge, max_steps, slots, openings[1].shape[1], steps, weights.units, **how)
    record = _as_one_kernel(plan)(weights, openings, noise * spread_of_noise)
    return Played(*record[:6]), record.time, record.entry


def _policy_of(student: Any) -> tuple[Weights, Array, dict[str, Any]] | None:
    """A student's weights, what its noise is multiplied by, and how `Plan` tells it; None if the kernel cannot hold it.

    A crowd has weights for each walker. They are as they were laid out for it, but for the axis of walkers, which comes
    first: a program reads those of its walker in every step, 11 kB of a policy with 40 units, and the walkers that run
    side by side do not have more than the GPU's second cache holds.
    """
    if isinstance(student, TwoTowers) and isinstance(student.encoder, Flatten):
        weights = _weights(student.actor.layers)
        fits = weights.w1.shape == (SEEN, MOST_UNITS) and student.log_std is not None
        return (weights, jnp.exp(student.log_std), {}) if fits and student.log_std is not None else None
    if isinstance(student, Crowd) and isinstance(student.members, Controller):
        one = student.members
        weights = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), _weights(one.layers))
        fits = weights.w1.shape[1] == SEEN and weights.units <= MOST_UNITS and one.actions == Box(4)
        if fits and isinstance(one.encoder, Flatten):
            return weights, jnp.zeros(4), {"share": 1, "squashed": True}
    return None


def _weights(layers: Any) -> Weights:
    return Weights(*(x for layer in layers for x in (layer.weight, layer.bias)))


@lru_cache
def _as_one_kernel(plan: Plan) -> Callable[..., Record]:
    run = partial(play, plan)
    return as_one_batch(run, alone=run)


@dataclass(frozen=True)
class Ends:
    """The stages of a rollout that are none of a step's: the policy before it, and what it was worth after it."""

    plan: Plan
    loop: Loop

    def act(self, at: Standing, w1, b1, w2, b2, w3, b3, noise, walker, observed, acted) -> Efforts:
        """The policy, noise added; what it saw and did is written down."""
        whose = walker // self.plan.together
        hidden = jnp.tanh(_layer(w1, b1, whose, at.obs, self.plan.units))
        hidden = jnp.tanh(_layer(w2, b2, whose, hidden, self.plan.units))
        action = _layer(w3, b3, whose, hidden, 4)
        action = (jnp.tanh(action) if self.plan.squashed else action) + noise[_row(walker, at.clock, 4)]
        observed[_row(walker, at.clock, WIDTH)] = at.obs
        acted[_row(walker, at.clock, 4)] = action
        return machine().entries(action)  # type: ignore[return-value]

    def turn(self, at: Standing, efforts: Efforts, push: Push, flight: Flight, seen: Seen, *rest: Any) -> Standing:
        """What the step was worth, and on to the next, or to how the next episode begins."""
        *openings, walker, outcome = rest
        world = World(flight.end, push.joints, flight.memory, flight.feet, jnp.zeros_like(seen.fallen))
        time = at.time + 1
        numbers, reward, terminated, truncated = self.plan.judge(
            self.plan.max_steps, at.world, world, efforts, seen.fallen, machine().entries(seen.rays), time
        )
        flags = [terminated.astype(jnp.float32), truncated.astype(jnp.float32)]
        outcome[_row(walker, at.clock, 4)] = spread([reward, *flags, jnp.zeros_like(reward)])
        ends = terminated | truncated
        entry = jnp.where(ends, (at.entry + 1) % self.plan.queue, at.entry)
        going = Opening(world, spread([*numbers, *[jnp.zeros_like(reward)] * (WIDTH - SEEN)]))

        state = lax.cond(
            anywhere(ends),
            lambda: self.loop.read("opening", openings, walker * self.plan.queue + entry),
            lambda: going,
        )
        return Standing(state.world, state.obs, jnp.where(ends, 0, time), entry, at.clock + 1)


@lru_cache
def loop(plan: Plan, n: int) -> Loop:
    """A step of n walkers, from what the policy sees to what the next will see."""
    stages, queue = table(plan.tolerance, Way(solving.alone)), plan.queue

    def look(tiles: Any, walker: Int[Array, "1"], at: Standing) -> Callable:
        return lambda cell: read_cells(tiles, walker * queue + at.entry, cell)

    anew = stages.anew | {
        "world": Stage("world", lambda at: at.world, ("standing",), "world", anew=True),
        "look": Stage("look", look, ("tiles", "walker", "standing"), "look", anew=True),
    }
    made = Loop(n, anew, REGISTERS if n > CROWD else None)
    opening, standing = jax.eval_shape(_examples)
    made.add_value("standing", Layout.of(standing))
    made.add_value("opening", Layout.of(opening), n * queue)
    made.add_array("tiles", (n * queue, 200, 8))
    units = plan.units
    shapes = ((WIDTH, units), (units,), (units, units), (units,), (units, 4), (4,))
    for name, shape in zip(Weights._fields, shapes, strict=True):
        made.add_array(name, (n // plan.together, *shape))
    for name, width in (("noise", 4), ("observed", WIDTH), ("acted", 4), ("outcome", 4)):
        made.add_array(name, (n, plan.steps, width))
    ends = Ends(plan, made)
    given = ("standing", *Weights._fields, "noise", "walker")
    made.add(Stage("act", ends.act, given, "efforts", logs=("observed", "acted")))
    for stage in (*stages.stages, *stages.impact * stages.impacts):
        if not stage.anew:
            made.add(stage)
    after = ("standing", "efforts", "push", "flight", "seen", *made.arrays_of("opening"), "walker")
    made.add(Stage("turn", ends.turn, after, "standing", logs=("outcome",)))
    return made


def _examples() -> tuple[Opening, Standing]:
    """What there is of one walker."""
    none, number = jnp.zeros(1), jnp.zeros(1, jnp.int32)
    world, obs = at_rest((Body(none, none, none, none, none, none),) * 5), jnp.zeros((WIDTH, 1))
    return Opening(world, obs), Standing(world, obs, number, number, number)


def _layer(weight: Any, bias: Any, whose: Int[Array, "1"], x: Float[Array, "k 1"], units: int) -> Float[Array, "u 1"]:
    """x·W + b with the weights of these, filled up with zeros to a power of two.

    Where a number is beyond the last, so that there is no weight, the last one is read again: x is zero there.
    """
    wide = 1 << (units - 1).bit_length()
    shape = (x.shape[0], wide, 1)
    unit = lax.broadcasted_iota(jnp.int32, shape[1:], 0)
    at = [_up_to(end, shape, k) for k, end in enumerate((weight.shape[1], units))]
    w = weight[(jnp.broadcast_to(whose, shape), *at)]
    b = bias[(jnp.broadcast_to(whose, shape[1:]), _up_to(units, shape[1:], 0))]
    found = jnp.sum(w * jnp.expand_dims(x, 1), axis=0) + b
    return found if units == wide else jnp.where(unit < units, found, 0.0)


def _up_to(end: int, shape: tuple[int, ...], axis: int) -> Int[Array, "..."]:
    """The index along an axis; beyond the last one that there is, that one."""
    index = lax.broadcasted_iota(jnp.int32, shape, axis)
    return index if end == shape[axis] else jnp.minimum(index, end - 1)


def _row(walker: Int[Array, "1"], clock: Int[Array, "1"], width: int) -> tuple[Array, ...]:
    """Where a walker's numbers of a step lie."""
    shape = (width, 1)
    return jnp.broadcast_to(walker, shape), jnp.broadcast_to(clock, shape), lax.broadcasted_iota(jnp.int32, shape, 0)


def play(
    plan: Plan,
    weights: Weights,
    openings: tuple[Moment, Float[Array, "s P Q 24"], Float[Array, "s P Q 200 8"]],
    noise: Float[Array, "s T P 4"],
    *,
    interpret: bool = False,
) -> Record:
    """The rollouts of s seeds with P slots each. The noise is what is added to the policy's means."""
    seeds, slots, q = noise.shape[0], plan.slots, plan.queue
    n = seeds * slots
    moment, obs, tiles = jax.tree.map(lambda x: x.reshape(n * q, *x.shape[3:]), openings)
    moment = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), moment)
    opening = Opening(unpacked(moment), jnp.pad(obs.T, ((0, WIDTH - SEEN), (0, 0))))
    first = jax.tree.map(lambda x: x[..., ::q], opening)
    none = jnp.zeros(n, jnp.int32)
    s = loop(plan, n)
    given = s.packed("standing", Standing(first.world, first.obs, none, none, none)) | s.packed("opening", opening)
    own = jax.tree.map(lambda x: x.reshape(n // plan.together, *x.shape[1 if plan.share == 0 else 2 :]), weights)
    w1 = jnp.pad(own.w1, ((0, 0), (0, WIDTH - SEEN), (0, 0)))
    given |= own._replace(w1=w1)._asdict()
    given |= {"tiles": tiles, "noise": jnp.swapaxes(noise, 1, 2).reshape(n, plan.steps, 4)}
    out = s.interpreted(given, plan.steps) if interpret else s.run(given, plan.steps)
    end = s.values("standing", out)
    observed, acted, outcome = (
        jnp.swapaxes(out[name].reshape(seeds, slots, *out[name].shape[1:]), 1, 2)
        for name in ("observed", "acted", "outcome")
    )
    stand = jax.tree.map(
        lambda x: jnp.moveaxis(x, -1, 0).reshape(seeds, slots, *x.shape[:-1]), (packed(end.world), end.time, end.entry)
    )
    flags = outcome[..., 1:3] > 0.5
    return Record(observed[..., :SEEN], acted, outcome[..., 0], flags[..., 0], flags[..., 1], *stand)
