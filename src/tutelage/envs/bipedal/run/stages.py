"""A step, stage by stage: the one table of what is done, with what it reads and writes.

XLA carries a table out value by value (`step`); `kernels` makes a GPU kernel of each stage; `rollout` makes one of them
all. A new stage is one entry. Where the machines differ is in how the work is divided, which is their `Way`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from tutelage.envs.bipedal.physics import impact
from tutelage.envs.bipedal.physics import step as physics
from tutelage.envs.bipedal.physics.contacts import Footing
from tutelage.envs.bipedal.physics.ground import Ground, Look
from tutelage.envs.bipedal.physics.impact import Aimed, Flight
from tutelage.envs.bipedal.physics.machine import if_any, machine
from tutelage.envs.bipedal.physics.nearby import Surveyed
from tutelage.envs.bipedal.physics.position import POSITION_ITERATIONS
from tutelage.envs.bipedal.physics.step import Efforts, Push, Seen, World
from tutelage.envs.bipedal.physics.tools import any_of, anywhere, where
from tutelage.envs.bipedal.physics.velocity import Problem, Solution, solve
from tutelage.envs.bipedal.run.solving import POINTS, is_crowded, number_of, of_few, visited

Mask = Bool[Array, "..."]


@dataclass(frozen=True)
class Wanted:
    """The walkers a stage is for: the value that is asked, and its answer, a mask for each kind that goes together."""

    of: str
    which: Callable[[Any], Sequence[Mask]]
    gathered: bool = False  # from all walkers there are; else from those around


@dataclass(frozen=True)
class Stage:
    """One entry of the table: a function of the values that it reads, and the value that it writes."""

    name: str
    act: Callable[..., PyTree]
    reads: tuple[str, ...]
    writes: str
    walkers: int = 32  # at most, in a program of its kernel
    registers: int = 255  # of a thread, where there are many programs
    wanted: Wanted | None = None  # all, if it is not said, or what is asked is not there yet
    updates: bool = False  # what it writes was there before, and stays as it was for those whom it is not for
    anew: bool = False  # little work for much to hand on: within a kernel, it is done where its value is read
    beside: Stage | None = None  # launched together with this one
    logs: tuple[str, ...] = ()  # arrays that it writes to by itself


@dataclass(frozen=True)
class Table:
    """The stages of a step, in their order."""

    stages: tuple[Stage, ...]
    impact: tuple[Stage, ...]  # then those of an impact, again and again
    impacts: int  # of a body, at most

    @property
    def anew(self) -> dict[str, Stage]:
        """Those that are done where their value is read, by its name."""
        return {stage.writes: stage for stage in self.stages if stage.anew}


class Way(NamedTuple):
    """How a machine divides the work."""

    solve: Callable[[Problem, float], Solution] | None = solve  # None: those with few contacts and the others apart
    portions: tuple[int, ...] = (
        POSITION_ITERATIONS,
    )  # of position iterations, after each of which those settled are left out
    later: tuple[int, ...] = ()  # portions that are stages of their own


PLAINLY = Way()


# The registers are those measured as the best on an H200. With all there are, its processors can hold but eight
# programs each. Iterations need them all, and so do stages in which few programs have something to do. Stages with axes
# of cells fill a warp with one to four walkers, and with many they need more registers than there are.
def table(tolerance: float, way: Way = PLAINLY) -> Table:
    """What a step consists of at this tolerance of the velocity solver."""
    effort = impact.effort(tolerance)
    struck = Wanted("aimed", lambda aimed: [any_of(aimed.struck)])
    bounce = partial(_bounce, iterations=effort.iterations)
    return Table(
        (
            Stage("survey", physics.survey, ("world", "look"), "surveyed", anew=True),
            Stage("feel", physics.feel, ("world", "surveyed", "look"), "footing", walkers=4, registers=128),
            Stage("problem", physics.problem, ("world", "efforts", "footing"), "problem", anew=True),
            *_solving(tolerance, way),
            *_moving(tolerance, way),
            Stage("see", physics.see, ("world", "flight", "look"), "seen", walkers=4, registers=128),
        ),
        (
            Stage("aim", _aim, ("surveyed", "flight", "look"), "aimed", 1, 80, struck, updates=True),
            Stage("touch", physics.touch, ("flight", "aimed", "surveyed", "look"), "touched", 4, 128, struck),
            Stage("bounce", bounce, ("aimed", "touched", "flight"), "flight", wanted=struck, updates=True),
        ),
        effort.rounds,
    )


def _solving(tolerance: float, way: Way) -> tuple[Stage, ...]:
    """Velocities; if so asked, in two stages side by side, in which those with as many contacts are taken together."""
    found = way.solve or solve
    of_many = lambda problem: physics.pushed(problem, found(problem, tolerance))  # noqa: E731
    if way.solve or tolerance == 0:
        return (Stage("solve", of_many, ("problem",), "push"),)
    of_others = lambda problem: physics.pushed(problem, of_few(problem, tolerance))  # noqa: E731
    crowded = Wanted("footing", _crowded, gathered=True)
    others = Wanted("footing", _others, gathered=True)
    few = Stage("solve_few", of_others, ("problem",), "push_few", wanted=others)
    many = Stage("solve_crowded", of_many, ("problem",), "push_crowded", wanted=crowded, beside=few)
    return many, Stage("push", _either_push, ("footing", "push_few", "push_crowded"), "push", anew=True)


def _crowded(footing: Footing) -> list[Mask]:
    """Those with more contacts than a few, the most first: a program waits for the slowest of its walkers."""
    crowded, number = is_crowded(footing.contacts), visited(footing.contacts)
    return [crowded & (number > 4), crowded & (number == 4), crowded & (number == 3), crowded & (number < 3)]


def _others(footing: Footing) -> list[Mask]:
    number = number_of(footing.contacts)
    return [number == k for k in reversed(range(POINTS + 1))]


def _either_push(footing: Footing, few: Push, crowded: Push) -> Push:
    """What was found for each."""
    which = is_crowded(footing.contacts)
    return if_any(which, lambda few: where(which, crowded, few), few)


def _moving(tolerance: float, way: Way) -> tuple[Stage, ...]:
    """Positions, all at once or further portions of the iterations in stages of their own."""
    reads = ("push", "problem", "footing")
    if not way.later:
        act = partial(physics.move, tolerance=tolerance, portions=way.portions)
        return (Stage("move", act, reads, "flight", registers=128),)
    act = partial(physics.move_a_little, tolerance=tolerance, times=sum(way.portions))
    unsettled = [Wanted("flight", lambda flight: [flight.unsettled], gathered=k > 0) for k in range(len(way.later))]
    return (
        Stage("move", act, reads, "flight", registers=128),
        *(
            Stage(
                f"settle_{times}",
                partial(physics.settle_on, tolerance=tolerance, times=times),
                ("problem", "flight"),
                "flight",
                wanted=wanted,
                updates=True,
            )
            for times, wanted in zip(way.later, unsettled, strict=True)
        ),
    )


def _aim(surveyed: Surveyed, flight: Flight, look: Look) -> Aimed:
    return impact.aim(flight, surveyed, look)


def _bounce(aimed: Aimed, touched: Footing, flight: Flight, *, iterations: int) -> Flight:
    return impact.bounce(flight, aimed, touched, iterations)


class Values(dict[str, Any]):
    """Values by name. Those of stages that are done anew are made when they are first read."""

    def __init__(self, anew: Mapping[str, Stage], **values: Any):
        super().__init__(values)
        self.anew = anew

    def __missing__(self, name: str) -> Any:
        self.carry_out(self.anew[name])
        return self[name]

    def carry_out(self, stage: Stage) -> None:
        """Does what a stage does."""
        self[stage.writes] = stage.act(*(self[name] for name in (*stage.reads, *stage.logs)))


def sources(names: Iterable[str], anew: Mapping[str, Stage]) -> tuple[str, ...]:
    """What these values are made from, each once: those that are not made anew themselves."""
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys(sources(anew[name].reads, anew) if name in anew else (name,))
    return tuple(found)


def step(world: World, efforts: Efforts, look: Look, table: Table) -> tuple[World, Seen]:
    """The world 0.02 s later, and what is to be seen of it; on the machine that is named."""
    values = Values(table.anew, world=world, efforts=efforts, look=look)
    for stage in table.stages:
        values.carry_out(stage)
    end, push, seen = after_impacts(table, values), values["push"], values["seen"]
    return World(end.end, push.joints, end.memory, end.feet, seen.fallen), seen


def after_impacts(table: Table, values: Values) -> Flight:
    """The flight after its impacts: from one to the next, of those who may have any."""
    surveyed, look = values["surveyed"], values["look"]

    def follow(given: tuple[Flight, Surveyed, Int[Array, " n"]]) -> Flight:
        flight, surveyed, place = given
        there = look._replace(place=place)

        def once(state: tuple[Flight, Any, Any]) -> tuple[Flight, Bool[Array, ""], Int[Array, ""]]:
            values = Values({}, flight=state[0], surveyed=surveyed, look=there)
            for stage in table.impact:
                values.carry_out(stage)
            return values["flight"], anywhere(any_of(values["aimed"].struck)), state[2] + 1

        return lax.while_loop(lambda s: s[1] & (s[2] < table.impacts), once, (flight, jnp.bool_(True), 0))[0]

    assert isinstance(look, Ground), "walkers are gathered with the ground that they are on"
    near = impact.endangered(values["flight"], surveyed)
    given = (values["flight"], surveyed, look.place)
    return machine().for_few(near, follow, given, values["flight"], share=3)
