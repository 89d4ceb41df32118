"""A step of many walkers as a few GPU kernels, and who uses it.

Compiled by XLA, a step is some hundred small kernels that wait for one another; at the few hundred environments of a
training run that is all it does. Here the same functions are a dozen, each a stage of the step: every program holds a
few environments, side by side on the last axis of all its values. One kernel for everything would save little, and
takes the compiler many times as long (see `pages`).
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

from tutelage.envs.bipedal import contacts, exact, ground, impact, lidar, physics
from tutelage.envs.bipedal.body import Bodies, Body, hull_origin
from tutelage.envs.bipedal.contacts import Footing, Memory
from tutelage.envs.bipedal.exact import JointImpulse
from tutelage.envs.bipedal.ground import Cells, Look, Tiles
from tutelage.envs.bipedal.impact import Aimed, Flight
from tutelage.envs.bipedal.jobs import Job, Stage
from tutelage.envs.bipedal.lanes import any_of, fence, some_lane, unspread, where
from tutelage.envs.bipedal.nearby import survey
from tutelage.envs.bipedal.pages import Pages
from tutelage.envs.bipedal.physics import Efforts, Push, World
from tutelage.envs.bipedal.position import FEW, ITERATIONS, MORE
from tutelage.gpu import kernels_run_here

PROGRAMS = 1024  # that a GPU runs side by side about as fast as one


class Lanes(NamedTuple):
    """How many environments a program of each kernel works on."""

    feel: int
    solve: int
    crowded: int
    move: int
    settle: int
    finish: int
    see: int
    aim: int
    touch: int
    bounce: int

    @classmethod
    def of(cls, n: int) -> Lanes:
        """For n environments: few are spread over the GPU, one a program; many fill its threads, as far as that helps.

        Where a program holds more than one, it waits for the slowest. Stages with axes of cells fill a warp with one to
        four, and with many they need more registers than there are.
        """
        share = 1 << max(n // PROGRAMS, 1).bit_length() - 1
        four, many = min(share, 4), min(share, 32)
        all_wide = cls(*[many] * len(cls._fields))
        return all_wide._replace(feel=four, see=four, aim=1, touch=four)


# The registers a thread of each may have where there are many programs, as measured on an H200: all would take the most
# there are, with which a GPU's processors can hold but eight programs each. Sweeps need them all, and so do stages in
# which few programs have something to do.
REGISTERS = Lanes(
    feel=128, solve=255, crowded=255, move=128, settle=255, finish=255, see=128, aim=80, touch=128, bounce=255
)
ALIKE = {  # stages with the lanes and registers of others
    "solve_few": "solve",
    "literal": "crowded",
    "start": "move",
    "aim_again": "aim",
}


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


def advance(tolerance: float) -> Advance:
    """The step of one environment. Under `vmap` all of them are one batch; on a GPU, that is a few kernels."""
    return _nested(fused if kernels_run_here() else abreast, tolerance, 0)


def alone(tolerance: float, moment: Moment, action: Float[Array, "4"], tiles: Tiles) -> After:
    """The step as XLA compiles it, also on GPUs and under `vmap`."""
    return _nested(abreast, tolerance, 0)(moment, action, tiles)


def abreast(tolerance: float, moment: Moment, action: Float[Array, "n 4"], tiles: Float[Array, "n 200 8"]) -> After:
    """The step of n environments as XLA compiles it, the environments on the last axis of everything."""
    moment, action = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (moment, action))
    look = ground.Ground(tiles, jnp.arange(action.shape[1]))
    world = physics.step(unpacked(moment), (action[0], action[1], action[2], action[3]), look, tolerance)
    rays = fence(lidar.scan(*hull_origin(world.bodies[0]), look))
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), After(packed(world), world.fallen, rays))


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
def _traced_once(run: Callable[..., After], tolerance: float) -> Advance:
    """The step, traced once for each number of environments: it is long, and a method has several rollouts of it."""
    return jax.jit(partial(run, tolerance))


@lru_cache
def _nested(run: Callable[..., After], tolerance: float, axes: int) -> Advance:
    """The step for values with `axes` leading axes, which makes all one batch when another comes."""

    @custom_vmap
    def step(moment: Moment, action: Array, tiles: Array) -> After:
        shape = action.shape[:axes]
        given = jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), (moment, action, tiles))
        after = _traced_once(run if axes else abreast, tolerance)(*given)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), after)

    @step.def_vmap
    def more(size: int, batched: Any, *given: Any) -> tuple[After, Any]:
        def wide(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (size, *x.shape))

        after = _nested(run, tolerance, axes + 1)(*jax.tree.map(wide, given, tuple(batched)))
        return after, jax.tree.map(lambda _: True, after)

    return step


@dataclass(frozen=True)
class Stages:
    """What each kernel does, in the order of a step. The last three follow one impact of each leg body."""

    tolerance: float

    def feel(self, given: Given, look: Look) -> Footing:
        """What the legs touch."""
        world, _ = given
        return contacts.feel(world.bodies[1:], survey(world.bodies[1:], look), look, world.memory, world.feet)

    def solve(self, given: Given, footing: Footing) -> Push:
        """The velocity solver."""
        problem = physics.problem(*given, footing)
        return physics.pushed(problem, exact.solve(problem, self.tolerance))

    def solve_few(self, given: Given, footing: Footing) -> Push:
        """The velocity solver, for those with few contacts."""
        problem = physics.problem(*given, footing)
        return physics.pushed(problem, exact.solve_few(problem, self.tolerance))

    def move(self, given: Given, footing: Footing, push: Push) -> Flight:
        """Positions, and what is to be known of the way there."""
        return self._take_off(
            given, footing, push, physics.moved(physics.problem(*given, footing), push, self.tolerance)
        )

    def literal(self, given: Given, footing: Footing) -> Push:
        """All iterations, for those with more."""
        return physics.thoroughly(physics.problem(*given, footing))

    def start(self, given: Given, footing: Footing, push: Push, apart: Push | None = None) -> Flight:
        """Positions as far as a few iterations go; of those who were solved for apart, with what was found for them."""
        if apart is not None:
            which = exact.is_crowded(footing.contacts)
            push = lax.cond(some_lane(which), lambda: where(which, apart, push), lambda: push)
        end, unsettled = physics.moved_a_little(physics.problem(*given, footing), push, self.tolerance)
        return self._take_off(given, footing, push, end)._replace(unsettled=unsettled)

    def settle(self, given: Given, footing: Footing, flight: Flight) -> Flight:
        """The positions of those who had not settled by then, some iterations later."""
        return self._settle(given, footing, flight, MORE - FEW)

    def finish(self, given: Given, footing: Footing, flight: Flight) -> Flight:
        """The same to the end."""
        return self._settle(given, footing, flight, ITERATIONS - MORE)

    def _settle(self, given: Given, footing: Footing, flight: Flight, times: int) -> Flight:
        problem = physics.problem(*given, footing)
        end, unsettled = physics.moved_on(problem, flight.end, self.tolerance, times)
        return flight._replace(end=end, unsettled=unsettled)

    def _take_off(self, given: Given, footing: Footing, push: Push, end: Bodies) -> Flight:
        return impact.take_off(given[0].bodies, end, push.memory, footing.feet)

    def see(self, given: Given, flight: Flight, look: Look) -> tuple[Array, Array]:
        """Whether the hull touches, and the lidar."""
        hull = flight.end[0]
        return physics.hull_touches(given[0].bodies[0], hull, look), lidar.scan(*hull_origin(hull), look)

    def aim(self, given: Given, flight: Flight, look: Look) -> Aimed:
        """Who is struck first."""
        return impact.aim(flight, survey(given[0].bodies[1:], look), look)

    def aim_again(self, given: Given, flight: Flight, aimed: Aimed, look: Look) -> Aimed:
        """Who is struck next."""
        return self.aim(given, flight, look)

    def touch(self, given: Given, flight: Flight, aimed: Aimed, look: Look) -> Footing:
        """What the struck touch then."""
        surveyed = survey(given[0].bodies[1:], look)
        return contacts.feel(aimed.met, surveyed, look, flight.memory, flight.feet, at_impact=True)

    def bounce(self, aimed: Aimed, footing: Footing, flight: Flight) -> Flight:
        """Where they go from there."""
        return impact.bounce(flight, aimed, footing, physics.effort(self.tolerance).iterations)


def fused(
    tolerance: float,
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

    def job(act: Callable, given: Sequence[Pages], look: Any = None, **how: Any) -> Job:
        name = ALIKE.get(act.__name__, act.__name__)
        registers = getattr(REGISTERS, name) if crowded else None
        return Stage(getattr(lanes, name), registers, interpret).job(act, given, look, **how)

    def run(act: Callable, given: Sequence[Pages], look: Any = None, **how: Any) -> Pages:
        return job(act, given, look, **how).run()

    stages = Stages(tolerance)
    given = Pages.of((unpacked(moment), efforts))
    footing = run(stages.feel, [given], ground)
    flight, joints = _set_off(stages, job, given, footing)
    fallen, rays = run(stages.see, [given, flight], ground).values()
    aimed = run(stages.aim, [given, flight], ground)
    for k in range(physics.effort(tolerance).rounds):
        struck = any_of(aimed.values().struck)
        if k:
            aimed = run(stages.aim_again, [given, flight, aimed], ground, wanted=struck, anew=False)
            struck = any_of(aimed.values().struck)
        touched = run(stages.touch, [given, flight, aimed], ground, wanted=struck)
        flight = run(stages.bounce, [aimed, touched, flight], wanted=struck, anew=False)
    landed = flight.values()
    after = After(packed(World(landed.end, joints, landed.memory, landed.feet, fallen)), fallen, rays)
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), after)


def _set_off(stages: Stages, job: Callable[..., Job], given: Pages, footing: Pages) -> tuple[Pages, Any]:
    """Velocities, and positions before impacts: the flight on its pages, and the joints' impulses."""
    if stages.tolerance == 0:
        push = job(stages.solve, [given, footing]).run()
        flight, joints = job(stages.start, [given, footing, push]).run(), push.values().joints
    else:
        crowded = exact.is_crowded(footing.values().contacts)
        theirs, others = _solved_apart(stages, job, given, footing, crowded)
        flight = job(stages.start, [given, footing, others, theirs]).run()
        joints = where(crowded, theirs.values().joints, others.values().joints)
    unsettled = flight.values().unsettled
    flight = job(stages.settle, [given, footing, flight], wanted=unsettled, anew=False).run()
    kinds = [flight.values().unsettled]
    return job(stages.finish, [given, footing, flight], kinds=kinds, anew=False).run(), joints


def _solved_apart(
    stages: Stages, job: Callable[..., Job], given: Pages, footing: Pages, apart: Bool[Array, " n"]
) -> tuple[Pages, Pages]:
    """Velocities, of those who take longer and of the others, side by side.

    A program waits for the slowest of its walkers, so those with as many contacts are taken together.
    """
    contacts = footing.values().contacts
    number, visited = exact.number_of(contacts), exact.visited(contacts)
    many = [apart & (visited > 4), apart & (visited == 4), apart & (visited == 3), apart & (visited < 3)]
    few = [number == k for k in reversed(range(exact.POINTS + 1))]
    beside = job(stages.solve_few, [given, footing], kinds=few)
    return job(stages.literal, [given, footing], kinds=many).beside(beside)


def _look(tiles: Any, lane: Int[Array, " lanes"], cell: Int[Array, "..."]) -> Cells:
    """`ground.Ground`, in a kernel."""

    def columns(begin: int, n: int, cell: Array) -> tuple[Array, ...]:
        # No more than a thread reads at once, so that none has to ask another.
        shape = (n, *cell.shape)
        column = begin + lax.broadcasted_iota(jnp.int32, shape, 0)
        found = tiles[jnp.broadcast_to(lane, shape), jnp.broadcast_to(cell, shape), column]
        return unspread(found)

    (x1, y1, left, right), (top, bottom, number, again) = columns(0, 4, cell), columns(4, 4, cell)
    x2, y2 = columns(0, 2, cell + 1)
    return Cells(x1, y1, x2, y2, left, right, top, bottom, number.astype(jnp.int32), again > 0)
