"""How velocities are solved for on each machine: which walkers go together, and in which loops.

The iterations, and when they end, are those of `physics.velocity.solve`: by XLA on a GPU alone, all are made. But where
walkers are computed together, all wait for the slowest; and a loop over as many contacts as there may be is slower than
one for just as many as there are. So here walkers are told apart by how many contacts they have.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int

from tutelage.envs.bipedal.physics.contacts import SLOTS, Contact
from tutelage.envs.bipedal.physics.machine import machine
from tutelage.envs.bipedal.physics.tools import index, some
from tutelage.envs.bipedal.physics.velocity import (
    ITERATIONS,
    ROUNDS,
    SURE,
    Course,
    Problem,
    Rounds,
    Solution,
    Span,
    Task,
    at_first,
    begin,
    iterate,
    locked,
    prepared,
    rounds,
    rounds_of,
    solution,
    solve,
    solve_all,
    with_second,
    without_second,
)

POINTS = 3  # contacts, of one point each, up to which kernels have loops of their own


def is_crowded(contacts: Contact) -> Bool[Array, "..."]:
    """Whether a walker touches with more than a point each of few contacts."""
    return number_of(contacts) > POINTS


def visited(contacts: Contact) -> Int[Array, "..."]:
    """How many contacts are to be visited."""
    on = contacts.on[0] | contacts.on[1]
    return jnp.max(jnp.where(on, index(on.shape[0], on.ndim - 1) + 1, 0), axis=0)


def number_of(contacts: Contact) -> Int[Array, "..."]:
    """How many contacts are to be visited; if one of them has two points, more than there can be."""
    return jnp.where(some(contacts.on[0] & contacts.on[1]), SLOTS + 1, visited(contacts))


def by_kinds(problem: Problem, tolerance: float) -> Solution:
    """On CPUs, where all would wait for the few that touch at several points, and for those that take long."""
    if tolerance == 0:
        return solve_all(problem)
    number = number_of(problem.contacts)
    task, course = prepared(problem)
    at = rounds_of(1, without_second, task, at_first(course), Span(0, SURE, tolerance))

    def finish(given: tuple[Problem, Rounds]) -> Course:
        problem, at = given
        task, _ = prepared(problem)
        return rounds_of(1, without_second, task, at, Span(SURE, ROUNDS, tolerance)).course

    course = machine().for_few(at.going & (number < 2), finish, (problem, at), at.course, share=4)
    others = partial(solve, tolerance=tolerance)
    return machine().for_few(number > 1, others, problem, solution(task, course), share=8)


def all_in_one_kernel(problem: Problem, tolerance: float) -> Solution:
    """By XLA on GPUs: all iterations, whatever the tolerance, in one of its kernels, where they cannot end early.

    As a kernel can read but so many values, joints are made ready in each iteration.
    """
    task, course = begin(problem)
    once = lambda task, course: iterate(task._replace(hinges=locked(task.hinges)), course)  # noqa: E731
    return solution(task, machine().repeated(once, task._replace(turned=None), course, ITERATIONS))


def alone(problem: Problem, tolerance: float) -> Solution:
    """In a kernel of one walker a program."""
    if tolerance == 0:
        return solve_all(problem)
    task, course = prepared(problem)
    number, span = number_of(problem.contacts), Span(0, ROUNDS, tolerance)
    few = partial(_of_few, number, task, span)
    two = partial(rounds_of, 2, with_second, task, span=span)
    more = partial(rounds, partial(iterate, task), span=span)
    assert task.used.number is not None, "kernels know how many contacts there are"
    many = partial(lax.cond, task.used.number <= 2, two, more)
    return solution(task, lax.cond(jnp.max(number) <= POINTS, few, many, at_first(course)).course)


def of_few(problem: Problem, tolerance: float) -> Solution:
    """In a kernel of walkers that are not crowded."""
    task, course = prepared(problem)
    at = _of_few(number_of(problem.contacts), task, Span(0, ROUNDS, tolerance), at_first(course))
    return solution(task, at.course)


def _of_few(number: Int[Array, "..."], task: Task, span: Span, at: Rounds) -> Rounds:
    """Loops for each number of contacts of one point each."""
    loops = (partial(rounds_of, k, without_second, task, span=span) for k in range(POINTS + 1))
    most, *others = reversed(list(loops))
    for k, fewer in enumerate(others, 1):
        most = partial(lax.cond, jnp.max(number) <= POINTS - k, fewer, most)
    return most(at)
