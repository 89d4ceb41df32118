"""Making levels step by step: as the generator and the random editor make them, if the actions are theirs."""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from scipy import stats

import tutelage as tut
from toys import jumper
from tutelage.curricula.drafting import BoxDesigning, Drafting, designing, editing
from tutelage.env import BoxDesign, DesignSpace, StepDesign, StepEdit
from tutelage.envs.bipedal import WalkerDomain
from tutelage.envs.lava import LavaDesign
from tutelage.envs.maze import MazeDesign
from tutelage.envs.maze.level import level_from_rows

MAZES = [MazeDesign(4, 5, "variable", 9), MazeDesign(3, 4, "fixed", 6), MazeDesign(3, 3, "empty", 0)]
LAVAS = [LavaDesign("binomial", 8), LavaDesign("uniform", 8), LavaDesign("empty", 0)]


def perform(procedure, key, actions, level=None):
    """The level that an action string makes; begun and finished with the same key."""
    env = Drafting(procedure, 0)
    state, _ = env.reset(key, level)
    state, _ = jax.lax.scan(lambda s, a: (env.step(key, s, a)[0], None), state, actions)
    return procedure.finish(key, state.draft)


def assert_same(a, b):
    for x, y in zip(a, b, strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("design", MAZES, ids=lambda d: d.generator)
def test_a_maze_made_step_by_step_is_the_one_built_at_once(design):
    keys = random.split(random.key(0), 500)
    locs = random.randint(random.key(1), (500, design.design_steps), 0, design.tiles)
    step_by_step = jax.jit(jax.vmap(lambda key, locs: perform(design.designing(), key, locs)))(keys, locs)
    assert_same(step_by_step, jax.jit(jax.vmap(design.build))(keys, locs))


@pytest.mark.parametrize("design", LAVAS, ids=lambda d: d.generator)
def test_a_lava_grid_made_step_by_step_is_the_one_built_at_once(design):
    keys = random.split(random.key(0), 500)
    procedure = design.designing()
    actions = random.randint(random.key(1), (500, design.design_steps), 0, procedure.actions.n)

    def at_once(key, actions):
        chosen = actions[:-2] // 49 == 1
        drawn = design.draw_lava(random.split(key)[0])  # the first of the two keys that a reset makes begins the draft
        return design.build(key, actions % 49, chosen if design.generator == "binomial" else drawn)

    step_by_step = jax.jit(jax.vmap(lambda key, a: perform(procedure, key, a)))(keys, actions)
    assert_same(step_by_step, jax.jit(jax.vmap(at_once))(keys, actions))


@pytest.mark.parametrize("edits", [("wall", "empty", "goal"), ("agent", "wall", "goal", "empty"), ("empty",)])
def test_edits_of_a_maze_one_by_one_are_the_edits_at_once(edits):
    design = MazeDesign(3, 3, "fixed", 5, edits)  # so small that tiles come again, and goal and start are hit
    keys = random.split(random.key(0), 500)
    levels = jax.vmap(design.sample)(keys)
    actions = random.randint(random.key(1), (500, 6), 0, len(edits) * 9)
    procedure = design.editing(6)
    assert procedure.actions.n == len(edits) * 9
    child = jax.jit(jax.vmap(lambda key, a, level: perform(procedure, key, a, level)))(keys, actions, levels)
    assert_same(child, jax.jit(jax.vmap(design.apply_edits))(keys, levels, actions % 9, actions // 9))


def test_edits_of_a_lava_grid_one_by_one_are_the_edits_at_once():
    design = LavaDesign("uniform", 30)
    keys = random.split(random.key(0), 500)
    levels = jax.vmap(design.sample)(keys)
    actions = random.randint(random.key(1), (500, 20), 0, 98)
    child = jax.jit(jax.vmap(lambda key, a, level: perform(design.editing(20), key, a, level)))(keys, actions, levels)
    assert_same(child, jax.jit(jax.vmap(design.apply_edits))(keys, levels, actions % 49, actions // 49 == 1))


N = 5_000
SEES_LITTLE = tut.Teacher(tut.StudentConfig(memory=False, hidden=0, head=4), z=1)


def uniform_teacher(procedure):
    """One that gives every action the same probability."""
    learner = SEES_LITTLE.new(random.key(0), procedure, 8)
    return eqx.tree_at(lambda x: x.student.actor.output, learner, replace_fn=lambda x: jax.tree.map(jnp.zeros_like, x))


def differ(a: np.ndarray, b: np.ndarray) -> float:
    """The p-value of two samples of numbers coming from one distribution."""
    values = np.union1d(a, b)
    table = np.stack([[(x == v).sum() for v in values] for x in (a, b)])
    common = table.sum(axis=0) >= 20
    table = np.concatenate([table[:, common], table[:, ~common].sum(axis=1, keepdims=True)], axis=1)
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


def facts(level) -> dict[str, np.ndarray]:
    blocks = np.asarray(level[0]).reshape(N, -1)
    goal, agent = np.asarray(level.goal), np.asarray(level.agent)
    tiles = blocks.shape[1]
    corner = blocks[:, 0] * 2 + blocks[:, tiles // 2]
    out = {"blocks": blocks.sum(1), "goal": goal, "agent": agent, "tiles": corner, "apart": (goal - agent) % tiles}
    return out | ({"direction": np.asarray(level.direction)} if hasattr(level, "direction") else {})


@pytest.mark.parametrize("design", [*MAZES, *LAVAS], ids=lambda d: f"{type(d).__name__}-{d.generator}")
def test_a_uniform_teacher_is_the_generator(design):
    procedure = designing(design)
    teacher = uniform_teacher(procedure)
    made = jax.jit(lambda key: SEES_LITTLE.make(key, teacher, procedure, N).levels)(random.key(1))
    sampled = jax.jit(jax.vmap(design.sample))(random.split(random.key(2), N))
    expected = facts(sampled)
    for name, values in facts(made).items():
        assert differ(values, expected[name]) > 1e-4, name


@pytest.mark.parametrize("design", [MAZES[1], LAVAS[1]], ids=["maze", "lava"])
def test_a_uniform_editor_is_the_random_editor(design):
    procedure = editing(design, 4)
    parents = jax.vmap(design.sample)(random.split(random.key(3), N))
    editor = uniform_teacher(procedure)
    made = jax.jit(lambda key: SEES_LITTLE.make(key, editor, procedure, N, parents).levels)(random.key(1))
    edited = jax.jit(jax.vmap(lambda key, level: design.edit(key, level, 4)))(random.split(random.key(2), N), parents)
    expected = facts(edited)
    for name, values in facts(made).items():
        assert differ(values, expected[name]) > 1e-4, name


def test_the_statistics_tell_generators_apart():
    """That the tests above can fail."""
    few, many = (jax.vmap(MazeDesign(3, 4, "fixed", n).sample)(random.split(random.key(n), N)) for n in (5, 6))
    assert differ(facts(few)["blocks"], facts(many)["blocks"]) < 1e-6


class Point(NamedTuple):
    vector: jax.Array
    luck: jax.Array


@dataclass(frozen=True)
class Points:
    """A box design space: a level is a vector, and something left to chance."""

    low: tuple[float, ...] = (0.0, -2.0, 10.0)
    high: tuple[float, ...] = (1.0, 2.0, 20.0)

    def from_vector(self, key, vector):
        return Point(vector, random.uniform(key))

    def sample(self, key):
        key_vector, key_rest = random.split(key)
        return self.from_vector(key_rest, random.uniform(key_vector, (3,), minval=jnp.array(self.low), maxval=20.0))

    def edit(self, key, level, n): ...
    def describe(self, level): ...
    def render(self, level): ...
    def to_json(self, level): ...
    def from_json(self, data): ...


def test_a_box_design_is_set_parameter_by_parameter():
    procedure = designing(Points())
    assert isinstance(procedure, BoxDesigning)
    assert procedure.steps == 3
    draft = procedure.begin(random.key(0), None)
    middle = procedure.finish(random.key(0), draft)
    assert middle.vector.tolist() == [0.5, 0.0, 15.0]
    draft = procedure.act(draft, jnp.int32(1), jnp.array([np.arctanh(0.5)]))
    assert np.allclose(procedure.look(draft), [0, 0.5, 0])
    assert np.allclose(procedure.finish(random.key(0), draft).vector, [0.5, 1.0, 15.0])
    assert middle.luck == Points().from_vector(random.key(0), middle.vector).luck


def test_parameters_uniform_in_their_ranges_come_of_uniform_squashed_actions():
    u = random.uniform(random.key(0), (1000, 3), minval=-0.999, maxval=0.999)
    keys = random.split(random.key(1), 1000)
    levels = jax.vmap(lambda key, a: perform(BoxDesigning(Points()), key, a))(keys, jnp.arctanh(u)[..., None])
    expected = np.array(Points().low) + (np.asarray(u) + 1) / 2 * (np.array(Points().high) - np.array(Points().low))
    assert np.allclose(levels.vector, expected, atol=1e-4)


def test_the_walker_is_a_box_design():
    design = WalkerDomain().design()
    u = random.uniform(random.key(0), (design.parameters,), minval=-0.99, maxval=0.99)
    level = perform(designing(design), random.key(1), jnp.arctanh(u)[:, None])
    expected = design.from_vector(random.key(1), design.low + (u + 1) / 2 * (design.high - design.low))
    for made, given in zip(jax.tree.leaves(level), jax.tree.leaves(expected), strict=True):
        assert np.allclose(made, given, atol=1e-4)


def test_a_box_design_never_leaves_its_box():
    extreme = jnp.array([[1e9], [-1e9], [0.0]])
    assert np.allclose(perform(BoxDesigning(Points()), random.key(0), extreme).vector, [1.0, -2.0, 15.0])


def test_the_teacher_sees_map_step_and_fresh_random_numbers():
    design = MazeDesign(3, 3, "fixed", 2)
    env = Drafting(design.designing(), 4)
    state, obs = env.reset(random.key(0), None)
    seen = [obs]
    for i, tile in enumerate((1, 1, 8, 0)):
        state, step = env.step(random.key(i), state, jnp.int32(tile))
        seen.append(step.obs)
        assert float(step.reward) == 0
        assert not step.done
    assert [int(o.step) for o in seen] == [0, 1, 2, 3, 4]
    z = np.array([o.z for o in seen])
    assert z.shape == (5, 4)
    assert len(np.unique(z)) == z.size
    assert ((z >= 0) & (z < 1)).all()
    kinds = np.asarray(seen[-1].map)[..., 0]
    assert kinds.tolist() == [[2, 2, 2, 2, 2], [2, 10, 2, 1, 2], [2, 1, 1, 1, 2], [2, 1, 1, 8, 2], [2, 2, 2, 2, 2]]
    assert np.asarray(seen[0].map)[1:-1, 1:-1, 0].tolist() == [[1] * 3] * 3
    assert np.asarray(seen[-1].map)[0, 0].tolist() == [2, 5, 0]
    assert np.asarray(seen[-1].map)[3, 3].tolist() == [8, 1, 0]


def test_an_editor_sees_the_parent_first():
    level = level_from_rows(["S#.", ".#.", "..G"])
    _, obs = Drafting(MazeDesign(3, 3).editing(2), 0).reset(random.key(0), level)
    assert np.asarray(obs.map)[1:-1, 1:-1, 0].tolist() == [[10, 2, 1], [1, 2, 1], [1, 1, 8]]


def test_lava_looks_like_lava_to_its_teacher():
    design = LavaDesign("uniform", 2)
    procedure = design.designing()
    draft = procedure.begin(random.key(0), None)
    draft = (draft[0], jnp.array([True, False]))  # chance makes the first placement count
    for step, tile in enumerate((3, 4, 48, 0)):
        draft = procedure.act(draft, jnp.int32(step), jnp.int32(tile))
    kinds = np.asarray(procedure.look(draft))[1:-1, 1:-1, 0]
    assert kinds[0].tolist() == [10, 1, 1, 9, 1, 1, 1]
    assert kinds[6, 6] == 8


def test_design_spaces_say_what_they_can():
    for design in (MazeDesign(), LavaDesign()):
        assert isinstance(design, StepDesign)
        assert isinstance(design, StepEdit)
        assert not isinstance(design, BoxDesign)
    assert isinstance(Points(), BoxDesign)
    strips = jumper().env.design()
    assert isinstance(strips, DesignSpace)
    assert not isinstance(strips, StepDesign | StepEdit | BoxDesign)
