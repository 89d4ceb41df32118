"""What a room of a page holds, as plain data: rules of play, students, suites, buffers, lineages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import jax
import numpy as np

from tutelage.env import DesignSpace, Level, TestLevel, bits_of
from tutelage.envs.bipedal import WalkerDesign, WalkerDomain
from tutelage.envs.lava import LavaDomain
from tutelage.envs.maze import MazeDomain
from tutelage.errors import UserError
from tutelage.page import engines
from tutelage.page.catalogue import described, student_of
from tutelage.page.engines import Found, Shipped
from tutelage.page.records import Layout
from tutelage.page.students import Guest, Learned, Place, fitting, halved, invited, learned
from tutelage.page.translate.module import free_name
from tutelage.runs.browse import Found as FoundLevel
from tutelage.runs.browse import Holdings, best_of
from tutelage.runs.config import Config
from tutelage.student.ppo import PPO

BEST, STRIP = 24, 16  # levels of a buffer, and of a line of descent
DRAWS = 3  # levels of a suite's distribution, where the page cannot draw from it itself
SIZES = (5, 7, 9, 11, 13, 15, 17, 19, 49, 99)  # of mazes that may be drawn
LAVA = 7  # tiles a side
ALIKE = ("view", "see_through", "reward", "redraw_direction")
OWN = "own"

Facts = dict[str, Any]


@dataclass
class Cargo:
    """What a page carries: the manifests of its engines, and blocks of bytes by name."""

    manifests: dict[str, Any] = field(default_factory=dict)
    blocks: dict[str, bytes] = field(default_factory=dict)

    def rules(self, found: Found) -> Facts:
        """How levels are played, with the engine taken aboard."""
        return {"engine": self.engine(found.engine), "functions": dict(found.functions), "limit": found.limit}

    def engine(self, engine: Shipped) -> str:
        """Takes an engine aboard."""
        if engine.name not in self.manifests:
            self.manifests[engine.name] = {key: engine.manifest[key] for key in ("name", "records", "functions")}
            self.blocks[engine.name] = engine.wasm()
        return engine.name

    def student(self, weights: bytes) -> str:
        """Takes a student's weights aboard."""
        name = f"student-{len(self.blocks)}"
        self.blocks[name] = weights
        return name


def ready(config: Config) -> bool:
    """Whether the package itself holds the engines that a room for this run needs."""
    if not isinstance(config.env, tuple(ROOMS)):
        return False
    wanted = {"domain": described(config.env)}, {"student": described(student_of(config))}
    return all(engines.if_shipped(one) for one in wanted)


def room_of(guests: Sequence[Guest], most: int | None, cargo: Cargo) -> Facts:
    """The room of some runs on one domain, with at most so many students; all it needs goes into the cargo."""
    config = guests[0].run.config
    domain = config.env
    own = next((facts for kind, facts in ROOMS.items() if isinstance(domain, kind)), None)
    if own is None:
        raise UserError(f"There is no room for {domain.name} on a page; there are rooms for maze, lava and bipedal.")
    design = _written_by(domain)
    places = invited(guests, fitting(guests) if most is None else most)
    return {
        "kind": domain.name,
        "edits": getattr(config.method, "edits", 1),
        "students": _students(guests, places, cargo),
        "buffers": [entry for guest in guests for entry in _buffers(guest, design)],
        "lineages": [entry for guest in guests for entry in _lineages(guest, design)],
        **own(domain, cargo),
    }


def _maze(domain: MazeDomain, cargo: Cargo) -> Facts:
    sizes = {domain.size: engines.for_domain(domain)} | {n: _sized(domain, n) for n in SIZES if n != domain.size}
    here = {str(size): found for size, found in sorted(sizes.items()) if found is not None}
    rules = {size: cargo.rules(found) | _manner(domain) for size, found in here.items()}
    return {"size": domain.size, "sizes": rules, **_held_out(domain, rules, cargo)}


def _manner(maze: Any) -> Facts:
    """What tells a student's lot in mazes of one size from another's, besides the time it has."""
    return {"blind": not maze.see_through, "random": maze.redraw_direction}


def _held_out(domain: Any, own: Mapping[str, Facts], cargo: Cargo) -> Facts:
    """The suites, and the rules by which their levels are played where those are not the room's own for their size.

    A level that is drawn anew for each episode names the function that draws it.
    """
    rules: dict[str, Facts] = {}

    def under(test: TestLevel) -> Facts:
        played = {"draw": described(test.draw), "env": described(test.env)}
        side, found = _side(test), engines.if_shipped(played)
        if found is None or found.engine.name != own[side]["engine"]:
            return {}
        facts = cargo.rules(found) | {"functions": own[side]["functions"] | dict(found.functions)}
        facts |= {"size": int(side), **(_manner(test.env) if isinstance(domain, MazeDomain) else {})}
        alike = next((name for name, x in rules.items() if _steps(x) == _steps(facts)), test.name)
        named = {} if _steps(facts) == _steps(own[side]) else {"rules": alike}
        rules.update({alike: facts} if named and alike not in rules else {})
        return named | {"draw": found.functions["draw"]}

    suites = _suites(domain, lambda test: _side(test) in own, under)
    return {"rules": rules, "suites": suites}


def _side(test: TestLevel) -> str:
    """The size of its level."""
    return str(getattr(test.env, "height", LAVA))


def _sized(domain: MazeDomain, size: int) -> Found | None:
    """The engine of mazes of another size in which students see and earn alike, if one is shipped."""
    alike = {"type": "MazeDomain", "size": size} | {name: getattr(domain, name) for name in ALIKE}
    uses = [(engine, use) for engine in engines.shipped().values() for use in engine.manifest["uses"]]
    fitting = [(engine, use) for engine, use in uses if alike.items() <= use.get("domain", {}).items()]
    fitting.sort(key=lambda found: found[1]["domain"]["generator"] != domain.generator)
    return next((Found(engine, use["functions"], use["limit"]) for engine, use in fitting), None)


def _lava(domain: LavaDomain, cargo: Cargo) -> Facts:
    rules = {str(LAVA): cargo.rules(engines.for_domain(domain))}
    return {"size": LAVA, "sizes": rules, **_held_out(domain, rules, cargo)}


def _walker(domain: WalkerDomain, cargo: Cargo) -> Facts:
    rules = {OWN: cargo.rules(engines.for_domain(domain)) | _shape(domain.env())}

    def under(test: TestLevel) -> Facts:
        found = engines.if_shipped({"env": described(test.env)})
        assert found is not None
        facts = cargo.rules(found) | _shape(test.env)
        alike = next((name for name, x in rules.items() if _steps(x) == _steps(facts)), free_name(test.name, rules))
        rules.setdefault(alike, facts)
        return {"rules": alike}

    suites = _suites(domain, lambda test: engines.if_shipped({"env": described(test.env)}) is not None, under)
    return {"parameters": domain.parameters, "rules": rules, "suites": suites}


def _shape(env: Any) -> Facts:
    """Whether a level's parameters make its obstacles."""
    return {"shaped": env.rules != "hardcore"}


def _steps(facts: Facts) -> tuple[Any, ...]:
    """What tells rules of walking from others: how an episode begins, goes on and is cut off."""
    return facts["functions"]["reset"], facts["functions"]["step"], facts["limit"]


ROOMS: Mapping[type, Callable[[Any, Cargo], Facts]] = {MazeDomain: _maze, LavaDomain: _lava, WalkerDomain: _walker}


def _students(guests: Sequence[Guest], places: Sequence[Place], cargo: Cargo) -> list[Facts]:
    listed = []
    for place, one in zip(places, learned(places), strict=True):
        config = place.guest.run.config
        found = engines.for_student(config)
        engine = cargo.engine(found.engine)
        layout = Layout.from_json(found.engine.manifest["records"]["params"])
        weights, half = halved(engines.weights(one.student, layout))
        label, *seed = names = _names(guests, place)
        detail = ", ".join([*seed, f"update {place.updates:,}"])
        facts = {"name": ", ".join(names), "label": label, "detail": detail}
        facts |= {"run": place.guest.name}
        facts |= {"seed": place.seed, "updates": place.updates, "newest": place.updates == place.guest.checkpoints[-1]}
        facts |= {"engine": engine, "block": cargo.student(weights), "half": half}
        listed.append(facts | _learning(config.ppo or PPO(), one))
    return listed


def _learning(ppo: PPO, one: Learned) -> Facts:
    """What scores depend on: how the student learns from an episode."""
    scale = float(one.scale)
    known = {"discount": ppo.discount, "lambda": ppo.gae_lambda, "bootstrap": ppo.bootstrap}
    return known | {"scale": scale if math.isfinite(scale) else None}


def _names(guests: Sequence[Guest], place: Place) -> list[str]:
    """What tells a student from the others, but for its checkpoint: one or both of run and seed."""
    seeded = place.guest.run.config.seeds > 1
    return [place.guest.name] * (len(guests) > 1 or not seeded) + [f"seed {place.seed}"] * seeded


def _suites(
    domain: Any,
    fits: Callable[[Any], bool] = lambda test: True,
    under: Callable[[TestLevel], Facts] = lambda test: {},
) -> list[Facts]:
    """The levels of the suites that fit a page, with what `under` says of the rules they are played by."""
    suites = {name: [test for test in suite if fits(test)] for name, suite in domain.suites().items()}
    entries = {test: list(_drawn(domain, test, under)) for test in dict.fromkeys(chain(*suites.values()))}
    found = {name: [entry for test in suite for entry in entries[test]] for name, suite in suites.items()}
    return [{"name": name, "levels": levels} for name, levels in found.items() if levels]


def _drawn(domain: Any, test: TestLevel, under: Callable[[TestLevel], Facts]) -> Iterator[Facts]:
    """The one level that there is; of a distribution its first draw, if the page can go on drawing, or else a few."""
    draws = [test.draw(jax.random.key(n)) for n in range(DRAWS)]
    levels = list({bits_of(level): level for level in draws}.values())
    facts = under(test)
    if len(levels) == 1:
        facts.pop("draw", None)
    for n, level in enumerate(levels[: 1 if "draw" in facts else DRAWS]):
        name = test.name if len(levels) == 1 or "draw" in facts else f"{test.name}, draw {n + 1}"
        yield {"name": name, "of": test.name, **facts, "level": _written_by(domain, level).to_json(level)}


def _written_by(domain: Any, level: Level | None = None) -> DesignSpace:
    """The design space that writes levels for a page: of mazes one of the level's size, of walkers all parameters."""
    design = domain.design()
    if isinstance(domain, WalkerDomain):
        return WalkerDesign(8, rules=domain.rules)
    if isinstance(domain, MazeDomain) and level is not None:
        height, width = level.walls.shape
        return replace(design, height=height, width=width)
    return design


def _buffers(guest: Guest, design: DesignSpace) -> Iterator[Facts]:
    """The best levels of each seed's buffer, for methods that keep one and runs that have theirs."""
    config = guest.run.config
    if guest.state is None:
        return
    for place, seed in enumerate(config.all_seeds):
        found = best_of(guest.state.buffer, place, seed, config.env.design(), BEST)
        if len(found):
            name = f"{guest.name}, seed {seed}" if config.seeds > 1 else guest.name
            yield {"name": name, "levels": [_level(f, design) for f in found]}


def _lineages(guest: Guest, design: DesignSpace) -> Iterator[Facts]:
    """The longest ancestry among the first seed's best levels; where there is no archive, among all of its buffer."""
    config = guest.run.config
    if guest.state is None:
        return
    buffer = guest.state.buffer
    try:
        admitted = guest.run.levels()
        best = best_of(buffer, 0, config.seed, config.env.design(), BEST)
        lines = [admitted.lineage(config.seed, int(level)) for level in best.record.id]
    except UserError:
        admitted = buffer.record.at((0, slice(int(buffer.filled[0]))))
        lines = _lines_within(admitted)
    line = max(lines, key=len, default=[])
    if len(line) > 1:
        shown = sorted({line[round(k * (len(line) - 1) / (STRIP - 1))] for k in range(STRIP)}, key=line.index)
        strip = Holdings.of(admitted.record.at(np.array(shown)), config.seed, config.env.design())
        yield {"name": guest.name, "run": guest.name, "seed": config.seed, "levels": [_level(f, design) for f in strip]}


def _lines_within(records: Any) -> list[list[int]]:
    """The positions of each record and of its ancestors as far as they are among the others, the oldest first."""
    where = {int(name): n for n, name in enumerate(records.id)}
    lines: dict[int, list[int]] = {-1: []}
    for n in np.argsort(records.id):  # a parent's name is smaller than its child's
        lines[n] = [*lines[where.get(int(records.parent[n]), -1)], int(n)]
    return list(lines.values())


def _level(found: FoundLevel, design: DesignSpace) -> Facts:
    return {**found.facts(), "level": design.to_json(found.level)}
