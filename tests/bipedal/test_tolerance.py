"""Iterations that end early find what all of Box2D's would, and in a step what Box2D does."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bipedal import box2d, lockstep
from tutelage.envs.bipedal import TOLERANCE
from tutelage.envs.bipedal.physics import velocity
from tutelage.envs.bipedal.physics.body import INVERSE_INERTIA, INVERSE_MASS, JOINTS, Body
from tutelage.envs.bipedal.physics.contacts import footing_of
from tutelage.envs.bipedal.physics.ground import Ground, paved
from tutelage.envs.bipedal.physics.machine import computed_on
from tutelage.envs.bipedal.physics.nearby import cells_around
from tutelage.envs.bipedal.physics.step import problem
from tutelage.envs.bipedal.run import solving
from tutelage.envs.bipedal.run.machines import OnCPU, OnGPU, in_kernel
from tutelage.envs.bipedal.run.moment import Moment, unpacked


@pytest.fixture(scope="module")
def played():
    return box2d.episodes(lockstep.EPISODES, lockstep.STEPS)


def test_single_steps(played):
    """As near as all iterations come (`test_all_iterations`)."""
    errors = lockstep.follow(*lockstep.compiled(TOLERANCE), played)
    assert np.median(errors["velocity"]) < 1e-5
    assert np.quantile(errors["velocity"], 0.9) < 1e-3
    assert np.quantile(errors["velocity"], 0.98) < 0.1
    assert np.median(errors["lidar"]) < 1e-5
    assert errors["flags"].mean() < 0.01
    assert errors["ends"].mean() < 0.002


@pytest.fixture(scope="module")
def problems(played):
    """Those of walkers at work, with the impulses of the step before, by way of steps with all iterations."""
    start, step = lockstep.compiled(0.0)
    state, _ = start(jax.tree.map(jnp.asarray, played["terrain"]), jnp.asarray(played["force"]))
    tiles = jax.vmap(paved)(jax.tree.map(jnp.asarray, played["terrain"]))

    @jax.jit
    def ask(state, action):
        world = unpacked(jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), Moment(*state[:4])))
        look = Ground(tiles, jnp.arange(len(action)))
        footing = footing_of(world.bodies[1:], cells_around(world.bodies[1:], look), look, world.memory, world.feet)
        return problem(world, tuple(jnp.clip(action, -1, 1).T), footing)

    found = []
    for k in range(48):
        action = jax.random.uniform(jax.random.key(k), (lockstep.EPISODES, 4), minval=-1, maxval=1)
        found.append(ask(state, action))
        state, _ = step(state, action)
    return jax.tree.map(lambda *x: jnp.concatenate(x, axis=-1), *found)


def apart(one, other):
    """By how much the worst body's velocity differs, problem by problem."""
    return np.abs(np.array(one) - np.array(other)).max((0, 1))


def impulses_apart(one, other):
    """By how much the worst impulse of a joint, or of a contact's point, differs."""
    pairs = zip(jax.tree.leaves(one[1:]), jax.tree.leaves(other[1:]), strict=True)
    return np.max([np.abs(a - b).reshape(-1, a.shape[-1]).max(0) for a, b in pairs], axis=0)


@pytest.fixture(scope="module")
def all_made(problems):
    """What all iterations find."""
    return jax.jit(velocity.solve_all)(problems)


@pytest.fixture(scope="module")
def ended(problems):
    """What is found where iterations end by the rule."""
    return jax.jit(partial(velocity.solve, tolerance=TOLERANCE))(problems)


def test_it_finds_what_all_iterations_do(all_made, ended):
    """In the first steps of episodes as later, at all numbers of contacts; with its impulses the next step begins."""
    error, impulses = apart(all_made[0], ended[0]), impulses_apart(all_made, ended)
    assert len(error) > 300
    assert np.median(error) < 1e-5
    assert np.quantile(error, 0.98) < 2e-3
    assert error.max() < 0.02
    assert np.median(impulses) < 2e-5
    assert np.quantile(impulses, 0.98) < 5e-3
    assert impulses.max() < 0.06


def test_on_cpus_iterations_end_by_the_same_rule(problems, ended):
    """Whoever goes together with whom."""
    with computed_on(OnCPU()):
        have = jax.jit(lambda problem: solving.by_kinds(problem, TOLERANCE))(problems)
    assert np.quantile(apart(have[0], ended[0]), 0.99) < 1e-4
    assert np.quantile(impulses_apart(have, ended), 0.99) < 1e-4


def test_on_gpus_without_kernels_of_our_own_all_iterations_are_one_kernel(problems, all_made):
    """One of XLA's, which ends none of them."""
    with computed_on(OnGPU()):
        have = jax.jit(lambda problem: solving.all_in_one_kernel(problem, TOLERANCE))(problems)
    assert np.quantile(apart(have[0], all_made[0]), 0.99) < 1e-4
    assert np.quantile(impulses_apart(have, all_made), 0.99) < 1e-4


@pytest.mark.parametrize("walkers", [1, 8])
def test_in_kernels_iterations_end_by_the_same_rule(problems, ended, walkers):
    """One walker a program, with loops for each number of points, or several of a kind."""
    number, visited = (np.asarray(count(problems.contacts)) for count in (solving.number_of, solving.visited))
    kinds = [np.flatnonzero(number == k)[:walkers] for k in range(solving.POINTS + 1)]
    kinds += [np.flatnonzero((number > solving.POINTS) & few)[:walkers] for few in (visited <= 2, visited > 2)]
    seen = 0
    with computed_on(in_kernel(walkers)):
        few, crowded = map(jax.jit, kernels(walkers))
        for k, kind in enumerate(kinds):
            if len(kind) == walkers:
                some = partial(jax.tree.map, lambda x, kind=kind: x[..., kind])
                have, want = (few if k <= solving.POINTS else crowded)(some(problems)), some(ended)
                assert apart(have[0], want[0]).max() < 1e-4
                assert impulses_apart(have, want).max() < 2e-3
                seen += 1
    assert seen >= (5 if walkers == 1 else 3), "of each kind there were enough"


def kernels(walkers):
    """How kernels solve for walkers with few contacts, and for the others."""
    if walkers == 1:
        return (lambda problem: solving.alone(problem, TOLERANCE),) * 2
    return lambda problem: solving.of_few(problem, TOLERANCE), lambda problem: velocity.solve(problem, TOLERANCE)


def test_a_joint_is_solved_as_box2d_solves_it():
    """The motor first; then three equations, with the limit; and without, where it would have to pull."""
    rng = np.random.default_rng(0)
    n = 500
    draw = lambda: jnp.float32(rng.normal(size=n))  # noqa: E731
    bodies = tuple(Body(draw(), draw(), 0.5 * draw(), *[jnp.zeros(n)] * 3) for _ in range(5))
    velocities = tuple((draw(), draw(), draw()) for _ in range(5))
    place = rng.integers(0, 3, n)
    speed, most = jnp.float32(rng.choice([-4, 4], n)), jnp.float32(rng.uniform(0, 1.6, n))
    drive = velocity.Drive(speed, most, jnp.array(place == 1), jnp.array(place == 2))
    sign = np.where(place == 1, 1, np.where(place == 2, -1, 0))
    limit = jnp.float32(sign * rng.uniform(0, 0.5, n) * rng.integers(0, 2, n))
    held = velocity.JointImpulse(*[jnp.zeros(n)] * 2, jnp.float32(rng.uniform(-0.1, 0.1, n)), limit)
    for joint in JOINTS:
        hinge = velocity.hinge(joint, bodies)
        have = velocity._solve_joint(velocities, joint, velocity.Lock.of(hinge), drive, held)
        want = plain_joint(velocities, joint, hinge, drive, held)
        for a, b in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)
    assert (np.asarray(have[1].limit) != 0).sum() > n / 10, "some limits push"
    assert ((np.asarray(have[1].limit) == 0) & (place > 0)).sum() > n / 10, "some are let go"


def plain_joint(velocities, joint, k, drive, held):
    """One problem after the other, in double precision."""
    v = np.array(velocities, np.float64)
    ma, mb = INVERSE_MASS[joint.a], INVERSE_MASS[joint.b]
    ia, ib = INVERSE_INERTIA[joint.a], INVERSE_INERTIA[joint.b]
    out = np.array(held, np.float64)
    for n in range(v.shape[2]):
        a, b = v[joint.a, :, n], v[joint.b, :, n]
        ax, ay, bx, by, k11, k12, k13, k22, k23 = (float(x[n]) for x in k[:9])
        most = float(drive.impulse[n])
        motor = np.clip(out[2, n] - (b[2] - a[2] - float(drive.speed[n])) / k.k33, -most, most)
        turn = motor - out[2, n]
        a[2], b[2], out[2, n] = a[2] - ia * turn, b[2] + ib * turn, motor
        c = np.array([b[0] - b[2] * by - a[0] + a[2] * ay, b[1] + b[2] * bx - a[1] - a[2] * ax])
        matrix = np.array([[k11, k12, k13], [k12, k22, k23], [k13, k23, k.k33]])
        x, y, z = -np.linalg.solve(matrix, [*c, b[2] - a[2]])
        limit = out[3, n] + z
        if not ((drive.at_lower[n] and limit >= 0) or (drive.at_upper[n] and limit <= 0)):
            z = -out[3, n]
            x, y = np.linalg.solve(matrix[:2, :2], -c - z * matrix[:2, 2])
        out[:, n] += [x, y, 0, z]
        a -= [ma * x, ma * y, ia * (ax * y - ay * x + z)]
        b += [mb * x, mb * y, ib * (bx * y - by * x + z)]
    return tuple(map(tuple, v)), tuple(out)
