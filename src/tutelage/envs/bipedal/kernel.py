"""A step of many walkers as a few GPU kernels, and who uses it.

Compiled by XLA, a step is some hundred small kernels that wait for one another; at the few hundred environments of a
training run that is all it does. Here the same functions are eight, each a stage of the step: every program holds a few
environments, side by side on the last axis of all its values. One kernel for everything would save little, and takes
the compiler many times as long (see `pages`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int

from tutelage.envs.bipedal import contacts, exact, ground, impact, lidar, physics, reduced
from tutelage.envs.bipedal.body import Body, hull_origin
from tutelage.envs.bipedal.contacts import Footing, Memory, survey
from tutelage.envs.bipedal.exact import JointImpulse
from tutelage.envs.bipedal.ground import Cells, Look, Tiles
from tutelage.envs.bipedal.impact import Aimed, Flight
from tutelage.envs.bipedal.lanes import any_of, pick, some_lane
from tutelage.envs.bipedal.pages import Pages, kernels_run_here, stage
from tutelage.envs.bipedal.physics import Efforts, Push, Solver, World

PROGRAMS = 1024  # that a GPU runs side by side about as fast as one


class Lanes(NamedTuple):
    """How many environments a program of each kernel works on."""

    feel: int
    solve: int
    begin: int
    move: int
    see: int
    aim: int
    touch: int
    bounce: int

    @classmethod
    def of(cls, n: int) -> Lanes:
        """For n environments: few are spread over the GPU, one a program; many fill its threads, as far as that helps.

        Where a program holds more than one, it waits for the slowest. Stages with axes of cells fill a warp with one or
        two, and with many they need more registers than there are.
        """
        share = 1 << max(n // PROGRAMS, 1).bit_length() - 1
        one, two, four, many = (min(share, most) for most in (1, 2, 4, 32))
        return cls(feel=four, solve=many, begin=many, move=many, see=two, aim=one, touch=four, bounce=many)


# The registers a thread of each may have where there are many programs: without a limit all would take the most there
# are, and a GPU's processors could hold but eight programs each.
REGISTERS = Lanes(feel=128, solve=168, begin=168, move=128, see=96, aim=96, touch=128, bounce=168)


class Moment(NamedTuple):
    """A `World` as an environment's state holds it: bodies and joints lie on axes."""

    bodies: Body  # fields [5]
    joints: JointImpulse  # fields [4]
    memory: Memory  # leaves [8]
    feet: Bool[Array, "*n 2"]


class After(NamedTuple):
    """What a step comes to."""

    moment: Moment
    fallen: Bool[Array, "*n"]
    rays: Float[Array, "*n 16"]


Given = tuple[World, Efforts]
Advance = Callable[[Moment, Float[Array, "*n 4"], Float[Array, "*n 200 8"]], After]


def advance(solver: Solver) -> Advance:
    """The step of one environment. Under `vmap` all of them are one batch; on a GPU, that is a few kernels."""
    return _nested(fused if kernels_run_here() else abreast, solver, 0)


def alone(solver: Solver, moment: Moment, action: Float[Array, "4"], tiles: Tiles) -> After:
    """The step as XLA compiles it, also on GPUs and under `vmap`."""
    return _nested(abreast, solver, 0)(moment, action, tiles)


def abreast(solver: Solver, moment: Moment, action: Float[Array, "n 4"], tiles: Float[Array, "n 200 8"]) -> After:
    """The step of n environments as XLA compiles it, the environments on the last axis of everything."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    look = ground.Ground(tiles, jnp.arange(action.shape[1]))
    world = physics.step(unpacked(moment), (action[0], action[1], action[2], action[3]), look, solver)
    after = After(packed(world), world.fallen, lidar.scan(*hull_origin(world.bodies[0]), look))
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), after)


def packed(world: World) -> Moment:
    """The world of one environment on axes."""
    bodies = Body(*(jnp.stack(field) for field in zip(*world.bodies, strict=True)))
    joints = JointImpulse(*(jnp.stack(field) for field in zip(*world.joints, strict=True)))
    return Moment(bodies, joints, world.memory, jnp.stack(world.feet))


def unpacked(moment: Moment) -> World:
    """The world again; whether its walker has fallen is asked anew each step."""
    bodies = tuple(Body(*(field[k] for field in moment.bodies)) for k in range(5))
    joints = tuple(JointImpulse(*(field[k] for field in moment.joints)) for k in range(4))
    feet = (moment.feet[0], moment.feet[1])
    return World(bodies, joints, moment.memory, feet, jnp.zeros_like(feet[0]))  # type: ignore[arg-type]


@lru_cache
def _traced_once(run: Callable[..., After], solver: Solver) -> Advance:
    """The step, traced once for each number of environments: it is long, and a method has several rollouts of it."""
    return jax.jit(partial(run, solver))


@lru_cache
def _nested(run: Callable[..., After], solver: Solver, axes: int) -> Advance:
    """The step for values with `axes` leading axes, which makes all one batch when another comes."""

    @custom_vmap
    def step(moment: Moment, action: Array, tiles: Array) -> After:
        shape = action.shape[:axes]
        given = jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), (moment, action, tiles))
        after = _traced_once(run if axes else abreast, solver)(*given)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), after)

    @step.def_vmap
    def more(size: int, batched: Any, *given: Any) -> tuple[After, Any]:
        def wide(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

        after = _nested(run, solver, axes + 1)(*jax.tree.map(wide, given, tuple(batched)))
        return after, jax.tree.map(lambda _: True, after)

    return step


@dataclass(frozen=True)
class Stages:
    """What each kernel does, in the order of a step. The last three follow one impact of each leg body."""

    solver: Solver

    def feel(self, given: Given, look: Look) -> Footing:
        """What the legs touch."""
        world, _ = given
        return contacts.feel(world.bodies[1:], survey(world.bodies[1:], look), look, world.memory, world.feet)

    def solve(self, given: Given, footing: Footing) -> Push:
        """The velocity solver."""
        problem = physics.problem(*given, footing)
        return physics.pushed(problem, exact.solve(problem) if self.solver == "exact" else reduced.solve(problem))

    def begin(self, given: Given, footing: Footing, push: Push) -> Push:
        """The same again for those whose first step it is."""
        return physics.first_pushed(physics.problem(*given, footing), push)

    def move(self, given: Given, footing: Footing, push: Push) -> Flight:
        """Positions, and what is to be known of the way there."""
        world, _ = given
        end = physics.moved(physics.problem(*given, footing), push, self.solver)
        return impact.take_off(world.bodies, end, push.memory, footing.feet)

    def see(self, given: Given, flight: Flight, look: Look) -> tuple[Array, Array]:
        """Whether the hull touches, and the lidar."""
        hull = flight.end[0]
        return physics.hull_touches(given[0].bodies[0], hull, look), lidar.scan(*hull_origin(hull), look)

    def aim(self, given: Given, flight: Flight, look: Look) -> Aimed:
        """Who is struck next."""
        none = Aimed((jnp.zeros_like(flight.any_struck),) * 4, flight.time, flight.met)
        legs = given[0].bodies[1:]
        return _if_any(flight.any_struck, lambda: impact.aim(flight, survey(legs, look), look), none)

    def touch(self, given: Given, flight: Flight, aimed: Aimed, look: Look) -> Footing:
        """What the struck touch then."""
        legs, now = given[0].bodies[1:], (look, flight.memory, flight.feet)
        act = lambda: contacts.feel(aimed.met, survey(legs, look), *now, at_impact=True)  # noqa: E731
        none = jax.tree.map(lambda v: jnp.zeros(v.shape, v.dtype), jax.eval_shape(act))
        return _if_any(any_of(aimed.struck), act, none._replace(memory=flight.memory, feet=flight.feet))

    def bounce(self, flight: Flight, aimed: Aimed, footing: Footing) -> Flight:
        """Where they go from there."""
        iterations = physics.effort(self.solver).iterations
        none = flight._replace(any_struck=jnp.zeros_like(flight.any_struck))
        return _if_any(any_of(aimed.struck), lambda: impact.bounce(flight, aimed, footing, iterations), none)


def fused(
    solver: Solver,
    moment: Moment,
    action: Float[Array, "n 4"],
    tiles: Float[Array, "n 200 8"],
    *,
    lanes: Lanes | None = None,
    interpret: bool = False,
) -> After:
    """The step of n environments as a few kernels."""
    lanes = lanes or Lanes.of(action.shape[0])
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    efforts = (action[0], action[1], action[2], action[3])
    ground = (_look, tiles)

    crowded = action.shape[1] > 2 * PROGRAMS

    def run(act: Callable, given: Sequence[Pages], look: Any = None) -> Pages:
        mine, registers = (getattr(table, act.__name__) for table in (lanes, REGISTERS))
        return stage(act, given, look, lanes=mine, registers=registers if crowded else None, interpret=interpret)

    stages = Stages(solver)
    given = Pages.of((unpacked(moment), efforts))
    footing = run(stages.feel, [given], ground)
    push = run(stages.solve, [given, footing])
    if solver == "reduced":
        push = run(stages.begin, [given, footing, push])
    flight = run(stages.move, [given, footing, push])
    fallen, rays = run(stages.see, [given, flight], ground).values()
    for _ in range(physics.effort(solver).rounds):
        aimed = run(stages.aim, [given, flight], ground)
        flight = run(stages.bounce, [flight, aimed, run(stages.touch, [given, flight, aimed], ground)])
    landed = flight.values()
    after = After(packed(World(landed.end, push.values().joints, landed.memory, landed.feet, fallen)), fallen, rays)
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), after)


def _if_any(wanted: Bool[Array, " lanes"], act: Callable[[], Any], otherwise: Any) -> Any:
    """`act()` if some lane wants it: where none does, the program is done."""
    return lax.cond(some_lane(wanted), act, lambda: otherwise)


def _look(tiles: Any, lane: Int[Array, " lanes"], cell: Int[Array, "..."]) -> Cells:
    """`ground.Ground`, in a kernel."""

    def columns(n: int, cell: Array) -> tuple[Array, ...]:
        shape = (n, *cell.shape)
        at = (jnp.broadcast_to(lane, shape), jnp.broadcast_to(cell, shape), lax.broadcasted_iota(jnp.int32, shape, 0))
        found = tiles[at]
        return tuple(pick(found, k) for k in range(n))

    x1, y1, left, right, top, bottom, number, again = columns(8, cell)
    x2, y2 = columns(2, cell + 1)
    return Cells(x1, y1, x2, y2, left, right, top, bottom, number.astype(jnp.int32), again > 0)
