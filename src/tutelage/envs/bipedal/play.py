"""A whole rollout of walkers as one GPU kernel, their policy inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float, Int

from tutelage.env import Played
from tutelage.envs.bipedal import contacts, impact, physics
from tutelage.envs.bipedal.body import Body
from tutelage.envs.bipedal.env import WalkerState, judge
from tutelage.envs.bipedal.kernel import Moment, Stages, _look, packed, unpacked
from tutelage.envs.bipedal.lanes import any_of, some_lane, spread, unspread
from tutelage.envs.bipedal.linked import Script
from tutelage.envs.bipedal.nearby import survey
from tutelage.envs.bipedal.pages import Form
from tutelage.envs.bipedal.physics import World, at_rest
from tutelage.gpu import kernels_run_here
from tutelage.student.nets import Flatten, TwoTowers

OBS = 32  # the 24 numbers of an observation, filled up to a power of two
NUMBERS = 24
UNITS = 64
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
    """Of a tower: two hidden tanh layers and a linear one."""

    w1: Float[Array, "*s 24 64"]
    b1: Float[Array, "*s 64"]
    w2: Float[Array, "*s 64 64"]
    b2: Float[Array, "*s 64"]
    w3: Float[Array, "*s 64 4"]
    b3: Float[Array, "*s 4"]


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


class Rules(NamedTuple):
    """What the kernel is made for."""

    tolerance: float
    max_steps: int
    slots: int
    queue: int
    steps: int


def played(
    tolerance: float,
    max_steps: int,
    student: Any,
    openings: tuple[WalkerState, Float[Array, "P Q 24"]],
    noise: Float[Array, "T P 4"],
) -> Played | None:
    """The rollout of one seed's slots; under `vmap` those of all seeds are one kernel. None where it cannot be."""
    if not (kernels_run_here() and isinstance(student, TwoTowers) and isinstance(student.encoder, Flatten)):
        return None
    layers = student.actor.layers
    if layers[0].weight.shape != (NUMBERS, UNITS) or student.log_std is None:
        return None
    (states, obs), (steps, slots, _) = openings, noise.shape
    rules = Rules(tolerance, max_steps, slots, obs.shape[1], steps)
    weights = Weights(*(x for layer in layers for x in (layer.weight, layer.bias)))
    given = (weights, (Moment(*states[:4]), obs, states.ground), noise * jnp.exp(student.log_std))
    record = _nested(rules, 0)(*given)
    ground = states.ground[jnp.arange(slots), record.entry]
    return Played(*record[:5], WalkerState(*record.moment, record.time, ground))


@lru_cache
def _nested(rules: Rules, axes: int) -> Callable[..., Record]:
    """`play` for values with `axes` leading axes, which makes all one batch when another comes."""

    @custom_vmap
    def run(*given: Any) -> Record:
        shape = given[-1].shape[:axes]
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), given)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), play(rules, *flat))

    @run.def_vmap
    def more(size: int, batched: Any, *given: Any) -> tuple[Record, Any]:
        def wide(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

        record = _nested(rules, axes + 1)(*jax.tree.map(wide, given, tuple(batched)))
        return record, jax.tree.map(lambda _: True, record)

    return run


@dataclass(frozen=True)
class Parts:
    """What a step is made of, in its order: functions of what is on the script's pages."""

    rules: Rules
    script: Script

    @property
    def stages(self) -> Stages:
        """Those of a single step."""
        return Stages(self.rules.tolerance)

    @property
    def impacts(self) -> impact.Effort:
        """How far they are followed."""
        return physics.effort(self.rules.tolerance)

    def act(self, at: Standing, w1, b1, w2, b2, w3, b3, noise, seen, done, lane):
        """The policy, noise added; what it saw and did is written down."""
        seed = lane // self.rules.slots
        hidden = jnp.tanh(_layer(w1, b1, seed, at.obs, UNITS))
        hidden = jnp.tanh(_layer(w2, b2, seed, hidden, UNITS))
        action = _layer(w3, b3, seed, hidden, 4) + noise[_row(lane, at.clock, 4)]
        seen[_row(lane, at.clock, OBS)] = at.obs
        done[_row(lane, at.clock, 4)] = action
        return tuple(unspread(action))

    def _look(self, tiles, lane, at: Standing):
        """The ground of the level that a slot is on."""
        return lambda cell: _look(tiles, lane * self.rules.queue + at.entry, cell)

    def feel(self, at, efforts, tiles, lane):
        """What the legs touch."""
        return self.stages.feel((at.world, efforts), self._look(tiles, lane, at))

    def solve(self, at, efforts, footing, lane):
        """The velocity solver."""
        return self.stages.solve((at.world, efforts), footing)

    def move(self, at, efforts, footing, push, lane):
        """Positions, and what is to be known of the way there."""
        return self.stages.move((at.world, efforts), footing, push)

    def see(self, at, efforts, flight, tiles, lane):
        """Whether the hull touches, and the lidar."""
        return self.stages.see((at.world, efforts), flight, self._look(tiles, lane, at))

    def aim(self, at, flight, tiles, lane):
        """Who is struck first."""
        ground = self._look(tiles, lane, at)
        return impact.aim(flight, survey(at.world.bodies[1:], ground), ground)

    def aim_again(self, at, flight, aimed, tiles, lane):
        """Who is struck next."""
        return self.aim(at, flight, tiles, lane)

    def touch(self, at, flight, aimed, tiles, lane):
        """What the struck touch then."""
        ground = self._look(tiles, lane, at)
        surveyed = survey(at.world.bodies[1:], ground)
        return contacts.feel(aimed.met, surveyed, ground, flight.memory, flight.feet, at_impact=True)

    def bounce(self, flight, aimed, touched, lane):
        """Where they go from there."""
        return impact.bounce(flight, aimed, touched, self.impacts.iterations)

    def one_struck(self, *given):
        """Whether there is one."""
        [aimed] = [x for x in given if isinstance(x, impact.Aimed)]
        return any_of(aimed.struck)

    def turn(self, at: Standing, efforts, push, flight, found, *rest):
        """What the step was worth, and on to the next, or to how the next episode begins."""
        *openings, outcome, lane = rest
        fallen, rays = found
        world = World(flight.end, push.joints, flight.memory, flight.feet, jnp.zeros_like(fallen))
        time = at.time + 1
        numbers, reward, terminated, truncated = judge(
            self.rules.max_steps, at.world, world, efforts, fallen, unspread(rays), time
        )
        flags = [terminated.astype(jnp.float32), truncated.astype(jnp.float32)]
        outcome[_row(lane, at.clock, 4)] = spread([reward, *flags, jnp.zeros_like(reward)])
        ends = terminated | truncated
        entry = jnp.where(ends, (at.entry + 1) % self.rules.queue, at.entry)
        going = Opening(world, spread([*numbers, *[jnp.zeros_like(reward)] * (OBS - NUMBERS)]))

        state = lax.cond(
            some_lane(ends),
            lambda: self.script.read("opening", openings, lane * self.rules.queue + entry),
            lambda: going,
        )
        return Standing(state.world, state.obs, jnp.where(ends, 0, time), entry, at.clock + 1)


@lru_cache
def script(rules: Rules, n: int, seeds: int) -> Script:
    """A step of n walkers of so many seeds."""
    s, q = Script(n, REGISTERS if n > CROWD else None), rules.queue
    parts = Parts(rules, s)
    opening, standing = jax.eval_shape(_examples)
    s.add_pages("standing", Form.of(standing))
    s.add_pages("opening", Form.of(opening), n * q)
    s.add_array("tiles", (n * q, 200, 8))
    shapes = ((OBS, UNITS), (UNITS,), (UNITS, UNITS), (UNITS,), (UNITS, 4), (4,))
    for name, shape in zip(Weights._fields, shapes, strict=True):
        s.add_array(name, (seeds, *shape))
    s.add_array("noise", (n, rules.steps, 4))
    s.add_array("seen", (n, rules.steps, OBS))
    s.add_array("done", (n, rules.steps, 4))
    s.add_array("outcome", (n, rules.steps, 4))
    s.add(parts.act, ["standing"], "efforts", looks=[*Weights._fields, "noise"], logs=["seen", "done"])
    s.add(parts.feel, ["standing", "efforts"], "footing", looks=["tiles"])
    s.add(parts.solve, ["standing", "efforts", "footing"], "push")
    s.add(parts.move, ["standing", "efforts", "footing", "push"], "flight")
    s.add(parts.see, ["standing", "efforts", "flight"], "found", looks=["tiles"])
    s.add(parts.aim, ["standing", "flight"], "aimed", looks=["tiles"])
    for k in range(parts.impacts.rounds):
        if k:
            s.add(parts.aim_again, ["standing", "flight", "aimed"], "aimed", looks=["tiles"], when=parts.one_struck)
        s.add(parts.touch, ["standing", "flight", "aimed"], "touched", looks=["tiles"], when=parts.one_struck)
        s.add(parts.bounce, ["flight", "aimed", "touched"], "flight", when=parts.one_struck)
    s.add(
        parts.turn, ["standing", "efforts", "push", "flight", "found"], "standing", looks=["opening"], logs=["outcome"]
    )
    return s


def _examples() -> tuple[Opening, Standing]:
    """What there is of one environment."""
    none, number = jnp.zeros(1), jnp.zeros(1, jnp.int32)
    world, obs = at_rest((Body(none, none, none, none, none, none),) * 5), jnp.zeros((OBS, 1))
    return Opening(world, obs), Standing(world, obs, number, number, number)


def _layer(weight: Any, bias: Any, seed: Int[Array, "1"], x: Float[Array, "k 1"], units: int) -> Float[Array, "u 1"]:
    """x·W + b, with the weights of this seed."""
    shape = (x.shape[0], units, 1)
    at = [lax.broadcasted_iota(jnp.int32, shape, k) for k in range(2)]
    w = weight[(jnp.broadcast_to(seed, shape), *at)]
    b = bias[(jnp.broadcast_to(seed, shape[1:]), lax.broadcasted_iota(jnp.int32, shape[1:], 0))]
    return jnp.sum(w * jnp.expand_dims(x, 1), axis=0) + b


def _row(lane: Int[Array, "1"], clock: Int[Array, "1"], width: int) -> tuple[Array, ...]:
    """Where an environment's numbers of a step lie."""
    shape = (width, 1)
    return jnp.broadcast_to(lane, shape), jnp.broadcast_to(clock, shape), lax.broadcasted_iota(jnp.int32, shape, 0)


def play(
    rules: Rules,
    weights: Weights,
    openings: tuple[Moment, Float[Array, "s P Q 24"], Float[Array, "s P Q 200 8"]],
    noise: Float[Array, "s T P 4"],
    *,
    interpret: bool = False,
) -> Record:
    """The rollouts of s seeds with P slots each. The noise is what is added to the policy's means."""
    seeds, slots, q = noise.shape[0], rules.slots, rules.queue
    n = seeds * slots
    moment, obs, tiles = jax.tree.map(lambda x: x.reshape(n * q, *x.shape[3:]), openings)
    moment = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), moment)
    opening = Opening(unpacked(moment), jnp.pad(obs.T, ((0, OBS - NUMBERS), (0, 0))))
    first = jax.tree.map(lambda x: x[..., ::q], opening)
    none = jnp.zeros(n, jnp.int32)
    s = script(rules, n, seeds)
    given = s.laid("standing", Standing(first.world, first.obs, none, none, none)) | s.laid("opening", opening)
    w1 = jnp.pad(weights.w1, ((0, 0), (0, OBS - NUMBERS), (0, 0)))
    given |= weights._replace(w1=w1)._asdict()
    given |= {"tiles": tiles, "noise": jnp.swapaxes(noise, 1, 2).reshape(n, rules.steps, 4)}
    out = s.interpreted(given, rules.steps) if interpret else s.run(given, rules.steps)
    end = s.values("standing", out)
    seen, done, outcome = (
        jnp.swapaxes(out[name].reshape(seeds, slots, *out[name].shape[1:]), 1, 2)
        for name in ("seen", "done", "outcome")
    )
    stand = jax.tree.map(
        lambda x: jnp.moveaxis(x, -1, 0).reshape(seeds, slots, *x.shape[:-1]), (packed(end.world), end.time, end.entry)
    )
    flags = outcome[..., 1:3] > 0.5
    return Record(seen[..., :NUMBERS], done, outcome[..., 0], flags[..., 0], flags[..., 1], *stand)
