"""Which engines there are: one for each shape of env among the domains, and one for each kind of student.

An env engine holds all envs, design spaces and held-out levels whose levels, states and observations lie in memory in
one way. What several of them have in common it holds once.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Key, PyTree

from tutelage.curricula.buffer import BufferConfig
from tutelage.env import Domain, Env, TestLevel
from tutelage.envs.maze import MazeDomain
from tutelage.page import exports
from tutelage.page.exports import KEY, Exports
from tutelage.page.records import Layout
from tutelage.runs.config import Config
from tutelage.runs.presets import DOMAINS, PRESETS
from tutelage.student.nets import Student

LARGEST_KEPT = 1000  # numbers of a level, for an engine to have a buffer of such
SIDES = (7, 9, 13, 17, 19, 49, 99)  # of mazes: those of the suites


class Use(NamedTuple):
    """Who uses an engine, as it stands in a manifest, and the functions that it asks for."""

    by: dict[str, Any]
    functions: Exports


@dataclass(frozen=True)
class Plan:
    """What an engine is to hold."""

    name: str
    uses: tuple[Use, ...]


def plans() -> list[Plan]:
    """All that are shipped."""
    return [*env_plans(domains()), *student_plans({name: config for name, (_, config) in PRESETS.items()})]


def domains() -> list[Domain]:
    """The domains of all presets, and mazes of the sizes of all suites, with as many walls for their size or none."""
    of_presets = [domain() for domain in DOMAINS.values()] + [config.env for _, config in PRESETS.values()]
    sizes = []
    for side in SIDES:
        sized = MazeDomain(size=side, max_steps=2 * (side + 2) ** 2, blocks=60 * side**2 // 169)
        sizes += [sized, replace(sized, generator="empty", blocks=0)]
    return list(dict.fromkeys([*of_presets, *sizes]))


def env_plans(domains: Iterable[Domain], *, suites: bool = True) -> list[Plan]:
    """Engines for these domains and, if so asked, for the held-out levels of their suites."""
    groups: dict[str, list[_Member]] = defaultdict(list)
    of: dict[TestLevel, tuple[str, set[str]]] = {}
    for domain in domains:
        member = _of_domain(domain)
        groups[member.shape].append(member)
        for suite, tests in domain.suites().items() if suites else ():
            for test in tests:
                of.setdefault(test, (domain.name, set()))[1].add(suite)
    for test, (name, members) in of.items():
        member = _of_level(test, name, sorted(members))
        groups[member.shape].append(member)
    names = Counter(group[0].name for group in groups.values())
    return [_env_plan(_label(group[0], names), group) for group in groups.values()]


def student_plans(configs: Mapping[str, Config]) -> list[Plan]:
    """Engines for the students of these configs, each named after the first that has it."""
    found: dict[str, Plan] = {}
    for name, config in configs.items():
        student = student_of(config)
        env, design = config.env.env(), config.env.design()
        _, obs = jax.eval_shape(env.reset, KEY, jax.eval_shape(design.sample, KEY))
        use = Use({"student": described(student)}, exports.of_student(student, env.actions, obs))
        label = f"student-{name.replace('/', '-')}"
        found.setdefault(json.dumps(use.by), Plan(label, (use,)))
    return list(found.values())


def student_of(config: Config) -> Student:
    """A student of this config that is ready to act, with shapes for weights."""
    return jax.eval_shape(lambda key: built(config, key), KEY)


def built(config: Config, key: Key[Array, ""]) -> Student:
    """A fresh student of this config that is ready to act, without a say on how precise its products are."""
    env, student = config.env, config.student  # an engine's products are in float32
    student = replace(student, products="default") if hasattr(student, "products") else student
    return student.build(env.encoder(key), env.env().actions, key=key).ready()


class _Member(NamedTuple):
    """An env of an engine, in whose place the same with another time limit may stand."""

    name: str  # its domain's
    by: dict[str, Any]
    env: Env
    level: PyTree
    own: Exports  # besides those of the env

    @property
    def shape(self) -> str:
        """What must be equal for envs to be in one engine: how levels, states and observations lie in memory."""
        trees = (self.level, *jax.eval_shape(self.env.reset, KEY, self.level))
        return json.dumps([Layout.of(tree).to_json() for tree in trees])

    @property
    def size(self) -> str:
        """The size of its levels, in words."""
        sides = next((x.shape for x in jax.tree.leaves(self.level) if x.shape), ())
        return "x".join(map(str, sides[:1] if len(set(sides)) == 1 else sides))


def _label(member: _Member, names: Counter[str]) -> str:
    """The name of an engine: if others have the domain's name too, with the size of its levels."""
    return f"{member.name}-{member.size}" if names[member.name] > 1 else member.name


def _of_domain(domain: Domain) -> _Member:
    env, design = domain.env(), domain.design()
    by = {"domain": described(domain), "limit": env.max_steps}
    level = jax.eval_shape(design.sample, KEY)
    own = exports.of_design(design, _edits(domain))
    if sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(level)) <= LARGEST_KEPT:
        own |= _keeping(tuple(jax.tree.leaves(level)), jax.tree.structure(level), _buffer(domain))
    return _Member(domain.name, by, env, level, own)


def _of_level(test: TestLevel, name: str, suites: list[str]) -> _Member:
    by = {"level": test.name, "suites": suites, "limit": test.env.max_steps}
    by |= {"draw": described(test.draw), "env": described(test.env)}
    return _Member(name, by, test.env, jax.eval_shape(test.draw, KEY), {"draw": exports.of_draw(test)})


def _edits(domain: Domain) -> set[int]:
    """How many edits in a row the presets of this domain make; and one."""
    methods = [config.method for _, config in PRESETS.values() if config.env.name == domain.name]
    return {1, *(getattr(method, "edits", 1) for method in methods)}


@lru_cache
def _keeping(leaves: tuple[Any, ...], structure: Any, config: BufferConfig) -> Exports:
    """For levels like this, once for all domains with these rules."""
    return exports.of_keeping(jax.tree.unflatten(structure, leaves), config)


def _buffer(domain: Domain) -> BufferConfig:
    """The buffer's rules in the presets of this domain."""
    methods = [config.method for _, config in PRESETS.values() if config.env.name == domain.name]
    return next((method.buffer for method in methods if hasattr(method, "buffer")), BufferConfig())


def _env_plan(name: str, members: list[_Member]) -> Plan:
    longest = max(member.env.max_steps for member in members)
    made: dict[Env, Exports] = {}

    def functions(member: _Member) -> Exports:
        env = _with_limit(member.env, longest)
        if env not in made:
            made[env] = exports.of_env(env, member.level) | exports.of_scores(env, longest) | exports.of_keys()
        return member.own | made[env]

    return Plan(name, tuple(Use(member.by, functions(member)) for member in members))


def _with_limit(env: Env, limit: int) -> Env:
    """The env with this time limit, if engines are given it at each step."""
    if not exports.has_limit(env):
        return env
    return replace(env, max_steps=limit)  # pyright: ignore[reportArgumentType]


def described(x: Any) -> Any:
    """A dataclass, or a pytree of them, as JSON that tells it from others; of arrays their types and shapes."""
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return [str(x.dtype), *x.shape]
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = {f.name: described(getattr(x, f.name)) for f in dataclasses.fields(x)}
        return {"type": type(x).__name__, **fields}
    if isinstance(x, tuple | list):
        return [described(y) for y in x]
    return x
