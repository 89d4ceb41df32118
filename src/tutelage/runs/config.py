"""A run's configuration: one dataclass, which is the command line, its documentation and `config.json`."""

from __future__ import annotations

import dataclasses
import math
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import jax

from tutelage.curricula.accel import ACCEL
from tutelage.curricula.classroom import Classroom, Curriculum
from tutelage.curricula.scores import SCORES, ScoreName
from tutelage.env import Domain, HasFormerFields
from tutelage.errors import UserError, one_line, reason, shown
from tutelage.runs.metrics import Track
from tutelage.runs.settings import as_fields, as_options
from tutelage.runs.storage import Damaged, parse_json, read_json
from tutelage.student.es import ES
from tutelage.student.learning import Learning
from tutelage.student.nets import StudentConfig
from tutelage.student.ppo import PPO

FORMAT = 1

# Fields that came later than others: a config without one of them is older, and means its default.
LATER = frozenset(
    {
        "activation",
        "admission",
        "antagonists",
        "start",
        "start_with",
        "cell",
        "compass",
        "critic",
        "crop",
        "decay",
        "edit_order",
        "es",
        "extinction_every",
        "hero",
        "imitation_coef",
        "layers",
        "new_level",
        "novelty",
        "normalise",
        "products",
        "score_memory",
        "survivors",
        "terrain",
        "terrain_seed",
        "time_limit",
        "tolerance",
        "widest_pit",
        "window",
    }
)

# What may differ between a run's config and the checkpoints it goes on from, since it decides no number so far.
FREE = frozenset({"updates", "log_every", "eval_every", "eval_episodes", "checkpoint_every", "archive_every", "track"})

LARGEST = 2**31 - 1  # integers on the device have 32 bits
LARGEST_FLOAT = 3.4e38
MOST_SEEDS = 2**20

E = TypeVar("E", bound=Domain)
M = TypeVar("M", bound=Curriculum)


@dataclass(frozen=True)
class Config(Generic[E, M]):
    """Everything that decides a run's numbers."""

    env: E
    """The domain: env, design space, held-out levels."""
    method: M = field(default_factory=ACCEL)  # pyright: ignore[reportAssignmentType]
    """The curriculum."""
    student: StudentConfig = StudentConfig()
    """The student's network."""
    ppo: PPO | None = PPO()
    """How the student learns."""
    es: ES | None = None
    """How the student learns, if by evolution strategies; then there is no `ppo`."""
    slots: int = 32
    """Levels played side by side in a rollout."""
    steps: int = 256
    """Steps of a rollout; at least as many as an episode may last, so that every level can be scored."""
    updates: int = 20_000
    """Student updates to train for."""
    seeds: int = 1
    """Seeds trained together in one program."""
    seed: int = 0
    """The first seed; the others follow it."""
    log_every: int = 25
    """Student updates between two rows of metrics."""
    eval_every: int = 250
    """Student updates between two looks at the validation levels; 0 for none."""
    eval_episodes: int = 10
    """Episodes on each validation level at each look."""
    checkpoint_every: int = 250
    """Student updates between checkpoints; the last two are kept."""
    archive_every: int = 5_000
    """Student updates between checkpoints that are kept for good; 0 for none but the final one."""
    start: str = ""
    """A checkpoint of another run to begin from, as a file; from nothing if not given."""
    start_with: Literal["state", "students"] = "state"
    """What is taken over from it: the whole state, buffer and number of student updates included, or the students."""
    track: Track = Track()
    """Where metrics go besides `metrics.jsonl`."""

    def __post_init__(self):
        _check_numbers(self)
        if (self.ppo is None) == (self.es is None):
            raise UserError("A student learns by ppo or by es: one of them must be given, and the other be none.")
        for name in ("slots", "steps", "updates", "seeds", "log_every", "checkpoint_every", "eval_episodes"):
            if getattr(self, name) < 1:
                raise UserError(f"{_flag(name)} must be at least 1, not {getattr(self, name)}.")
        for name in ("seed", "eval_every", "archive_every"):
            if getattr(self, name) < 0:
                raise UserError(f"{_flag(name)} must not be negative.")
        if self.seeds > MOST_SEEDS:
            raise UserError(f"--seeds must be at most {MOST_SEEDS:,}, not {self.seeds:,}.")
        if self.slots * self.steps > LARGEST:
            raise UserError(f"--slots times --steps must be at most {LARGEST:,}, not {self.slots * self.steps:,}.")
        if self.seed + self.seeds - 1 > LARGEST:
            raise UserError(f"--seed and --seeds must not lead beyond seed {LARGEST:,}.")

    @property
    def learning(self) -> Learning:
        """How the student learns, whichever way that is."""
        found = self.es if self.ppo is None else self.ppo
        assert found is not None, "one of them is given"
        return found

    def classroom(self) -> Classroom:
        """The surroundings of the curriculum; refuses what cannot be trained."""
        try:
            env, design = self.env.env(), self.env.design()
        except ValueError as error:
            raise UserError(as_options(str(error), "env.")) from error
        if not isinstance(design, self.method.needs):
            raise UserError(_misfit(self.method, self.env))
        if not isinstance(self.learning, self.method.teaches):
            raise UserError(_untaught(self.method, self.learning))
        if self.steps < env.max_steps:
            raise UserError(
                f"A rollout of {self.steps} steps is shorter than an episode may last ({env.max_steps}), so levels "
                f"could go unscored: set --steps to {env.max_steps} or more."
            )

        def new_student(key: Any) -> Any:
            key_encoder, key_rest = jax.random.split(key)
            return self.student.build(self.env.encoder(key_encoder), env.actions, key=key_rest)

        room = Classroom(env, design, self.learning, new_student, self.slots, self.steps)
        try:
            self.learning.check(jax.eval_shape(new_student, jax.random.key(0)), self.steps, self.slots)
            jax.eval_shape(lambda key: self.method.init(room, key), jax.random.key(0))
        except ValueError as error:
            raise UserError(as_options(str(error))) from error
        return room

    @property
    def all_seeds(self) -> range:
        """The seeds of the run, in order."""
        return range(self.seed, self.seed + self.seeds)


def _check_numbers(config: Config[Any, Any]) -> None:
    """Every number of a config must be one that the device can hold."""
    for name, value in numbers(config):
        if isinstance(value, float) and not (math.isfinite(value) and abs(value) < LARGEST_FLOAT):
            raise UserError(f"{_flag(name)} must be a finite number, not {value}.")
        if isinstance(value, int) and abs(value) > LARGEST:
            raise UserError(f"{_flag(name)} must be at most {LARGEST:,}, not {shown(value)}.")


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, int | float]]:
    """The numbers in a dataclass and in those that it is made of, by dotted name."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value
    elif isinstance(value, tuple):
        for part in value:
            yield from numbers(part, name)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name), f"{name}.{field.name}".lstrip("."))


def _misfit(method: Curriculum, env: Domain) -> str:
    from tutelage.runs import presets  # the tables, which hold configs in their turn

    return presets.misfit(presets.method_name(method), method.needs, env)


def _untaught(method: Curriculum, learning: Learning) -> str:
    from tutelage.runs import presets

    ways = " or ".join(f"`{way.name}`" for way in method.teaches)
    able = [name for name, m in presets.METHODS.items() if isinstance(learning, m.teaches)]
    return (
        f"{presets.method_name(method)} teaches students that learn by {ways}, not by `{learning.name}`; "
        f"those are taught by {', '.join(able)}."
    )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def starting(config: Config[Any, Any], start: str | Path | None) -> Config[Any, Any]:
    """The config with a checkpoint to begin from, if one is given; by its whole path, which holds wherever one is."""
    start = start or config.start
    return dataclasses.replace(config, start=str(Path(start).absolute())) if start else config


def to_json(config: Config[Any, Any], method_name: str) -> dict[str, Any]:
    """The config as plain data. Env and method carry their names."""
    data = {f.name: _plain(getattr(config, f.name)) for f in dataclasses.fields(config)}
    data["env"] = {"name": config.env.name, **data["env"]}
    data["method"] = {"name": method_name, **data["method"]}
    if config.es is None:  # as in configs that were written before there was another way to learn
        del data["es"]
    return {"format": FORMAT, **data}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__qualname__", type(value).__qualname__)


def difference(data: Any, config: Config[Any, Any], method_name: str) -> str | None:
    """The first setting in which a config as plain data, such as a checkpoint's header holds, is not this one.

    Settings that decide no number so far may differ. Data of an older version of this program is brought up to date
    first, where it can be read.
    """
    from tutelage.runs import presets

    here = to_json(config, method_name)
    if data == here:
        return None
    try:
        there = to_json(from_json(data, presets.DOMAINS, presets.METHODS, config.env), data["method"]["name"])
    except UserError:
        there = data if isinstance(data, dict) else {}
    return _first_difference(there, here, "")


def _first_difference(there: Any, here: Any, where: str) -> str | None:
    if isinstance(there, dict) and isinstance(here, dict):
        names = [name for name in [*here, *(n for n in there if n not in here)] if where or name not in FREE]
        found = (_first_difference(there.get(n), here.get(n), f"{where}.{n}".lstrip(".")) for n in names)
        return next((text for text in found if text is not None), None)
    return None if there == here else f"{where} is {shown(there)} there and {shown(here)} here"


def from_json(data: Any, domains: Mapping[str, type], methods: Mapping[str, type], own: Domain | None = None) -> Config:
    """The config that `to_json` wrote. A domain that is in no table must be given as `own`, and be the same."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UserError(f"this is not a run configuration of format {FORMAT}.")
    if own is not None and own.name not in domains:
        # A field that the run's config does not have has come since.
        recorded, given = data.get("env"), {"name": own.name, **_plain(own)}
        if not isinstance(recorded, dict) or recorded != {k: given.get(k) for k in recorded} or "name" not in recorded:
            raise UserError(f"the run was made with an env that is not this {own.name!r}.")
        env: Any = own
    else:
        env = _named(_of_today(data.get("env"), domains), domains, "env")
    method = _named(data.get("method"), methods, "method")
    rest = {k: v for k, v in data.items() if k not in ("format", "env", "method")}
    if isinstance(rest.get("track"), str):  # as it was while nothing else could be said of it
        rest["track"] = {**_plain(Track()), "to": rest["track"]}
    return _build(Config, {"env": env, "method": method, **rest}, "")


def load(path: Path, domains: Mapping[str, type], methods: Mapping[str, type], own: Domain | None = None) -> Config:
    """Reads a `config.json`."""
    try:
        data = read_json(path)
    except Damaged as error:
        raise UserError(f"{path} cannot be read as a run configuration ({error}).") from error
    return _understood(data, str(path), domains, methods, own)


def parse(
    text: str, name: str, domains: Mapping[str, type], methods: Mapping[str, type], own: Domain | None = None
) -> Config:
    """The config in a text that `config.json` could hold; `name` is what errors call it."""
    try:
        data = parse_json(text)
    except ValueError as error:
        raise UserError(f"{name} cannot be read as a run configuration ({reason(error)}).") from error
    return _understood(data, name, domains, methods, own)


def _understood(
    data: Any, name: str, domains: Mapping[str, type], methods: Mapping[str, type], own: Domain | None
) -> Config:
    try:
        return from_json(data, domains, methods, own)
    except (UserError, ValueError) as error:
        raise UserError(f"{name}: {error}") from error


def _of_today(data: Any, domains: Mapping[str, type]) -> Any:
    """A domain's fields as it has them now; says so where they cannot mean quite the same."""
    domain = domains.get(str(data.get("name"))) if isinstance(data, dict) else None
    if domain is None or not issubclass(domain, HasFormerFields):
        return data
    fields, sentence = domain.from_former(data)
    if sentence:
        _say_once(sentence)
    return fields


@cache
def _say_once(sentence: str) -> None:
    print(f"tutelage: {sentence}", file=sys.stderr)


def _named(data: Any, table: Mapping[str, type], what: str) -> Any:
    name = data.get("name") if isinstance(data, dict) else data
    if not isinstance(data, dict) or not isinstance(name, str) or name not in table:
        own = "; one of your own is given as `domain`, or with --domain MODULE:NAME" if what == "env" else ""
        raise UserError(f"unknown {what} {shown(name)}; known: {', '.join(table)}{own}.")
    return _build(table[name], {k: v for k, v in data.items() if k != "name"}, what + ".")


def _build(cls: type, data: Any, where: str) -> Any:
    """A dataclass from plain data, which must have every field and no other, of the right types."""
    if dataclasses.is_dataclass(data):
        return data
    if not isinstance(data, dict):
        raise UserError(f"{where.rstrip('.')} must be an object.")
    fields = {f.name for f in dataclasses.fields(cls) if f.init}
    unknown = set(data) - fields
    if unknown:
        raise UserError(f"unknown field {where}{one_line(min(unknown), 80)}; known: {', '.join(sorted(fields))}.")
    missing = {name for name in fields - set(data) if name not in LATER}
    if missing:
        raise UserError(f"the field {where}{min(missing)} is missing.")
    hints = get_type_hints(cls)
    values = {k: typed(hints[k], v, where + k) for k, v in data.items()}
    try:
        return cls(**values)
    except ValueError as error:
        raise UserError(as_fields(str(error), where)) from error


def typed(hint: Any, value: Any, where: str) -> Any:
    """Plain data as a value of this type; refuses what is of another. `where` is the field it is for."""
    if isinstance(hint, TypeVar):
        return value
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, where + ".")  # type: ignore[arg-type]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else typed(next(a for a in args if a is not type(None)), value, where)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(typed(args[0], v, where) for v in value)
    if origin is Literal:
        known = SCORES if hint == ScoreName else args  # a score of one's own is known once it is entered
        accepted = isinstance(value, str | int | bool) and value in known
    elif hint is float:
        accepted = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_FLOAT
        value = float(value) if accepted else value
    else:
        accepted = type(value) is hint
    if not accepted:
        raise UserError(f"{where} cannot be {shown(value)}.")
    return value
