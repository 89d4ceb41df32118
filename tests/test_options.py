"""How words become a dataclass, what the help says of it, and how settings are changed."""

import io
import math
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import assume, given
from hypothesis import settings as limits
from hypothesis import strategies as st

import tutelage as tut
from tutelage import commands
from tutelage.commands.options import Shown, likely, negated, parse
from tutelage.errors import UserError
from tutelage.runs import presets
from tutelage.runs.settings import as_fields, as_options, changed, plain, read, sentences_of, settings

# Presets that have every setting between them: one of each env, and one of each method.
KINDS = {type(part): name for name, (_, config) in presets.PRESETS.items() for part in (config.env, config.method)}


@dataclass(frozen=True)
class Inner:
    """What holds a few things."""

    size: int = 3
    """How large it is."""
    open: bool = True
    """Whether it is open."""

    def __post_init__(self):
        if self.size < 1:
            raise ValueError(f"`size` must be at least 1, not {self.size}.")


@dataclass(frozen=True)
class Order:
    """Order something.

    It comes by itself.
    """

    what: Annotated[str, Shown("WHAT", by_place=True)]
    """What it is."""
    inner: Inner = Inner()
    """The inside."""
    shares: tuple[float, ...] = (0.5,)
    """Shares of 100 % in all,
    each of someone."""
    colour: Literal["red", "green"] = "red"
    """Its colour."""
    to: Path | None = None
    """Where it goes."""
    quickly: bool = False
    """Whether it is urgent."""


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def order(line: str) -> Order:
    return parse(Order, line.split(), "order")


def test_words_become_values():
    assert order("tea") == Order("tea")
    assert order("--colour green tea --quickly --to here") == Order(
        "tea", colour="green", quickly=True, to=Path("here")
    )
    assert order("tea --shares 0.25 .75").shares == (0.25, 0.75)
    assert order("tea --shares").shares == ()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "`tutelage order` wants WHAT; see `tutelage order --help`."),
        ("tea milk", "`tutelage order` has no place for 'milk'."),
        ("tea --color red", "`tutelage order` has no option --color; did you mean --colour?"),
        ("tea --colour blue", "--colour must be one of red, green, not 'blue'."),
        ("tea --shares half", "--shares must be a number, not 'half'."),
        ("tea --to", "--to wants a value."),
        ("tea --quickly=yes", "--quickly takes no value."),
        ("tea --no-quickly", "`tutelage order` has no option --no-quickly; did you mean --quickly?"),
        ("tea -x", "`tutelage order` has no option -x; `tutelage order --help` lists all."),
    ],
)
def test_what_cannot_be_understood_is_one_sentence(line, says):
    with pytest.raises(UserError) as refused:
        order(line)
    assert str(refused.value) == says


def test_the_help_says_what_fields_say():
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        order("--help")
    text = " ".join(out.getvalue().split())
    assert text.startswith("usage: tutelage order WHAT [OPTIONS] Order something. It comes by itself.")
    for said in (
        "WHAT What it is.",
        "--shares [FLOAT ...] Shares of 100 % in all, each of someone. (default: 0.5)",
        "--colour {red,green} Its colour. (default: red)",
        "--to PATH Where it goes. --quickly",  # what has no default is not said to have one
    ):
        assert said in text


@pytest.mark.parametrize("command", [*commands.COMMANDS, *(f"train {name}" for name in sorted(set(KINDS.values())))])
def test_help_fits_eighty_columns_and_speaks_english(command):
    out = io.StringIO()
    name, *words = command.split()
    with redirect_stdout(out), pytest.raises(SystemExit):
        commands.module(name).parse([*words, "--help"])
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if "None" in line or "STR" in line.split()]


@pytest.mark.parametrize("name", sorted(set(KINDS.values())))
def test_every_setting_is_explained_and_can_be_given(name):
    config = tut.preset(*name.split("/"))
    words = []
    for setting in settings(config):
        assert setting.help.endswith("."), f"{setting.name} wants a sentence"
        if plain(setting.kind) is bool:
            words.append(setting.option if setting.value else negated(setting.option))
        else:
            values = setting.value if isinstance(setting.value, tuple) else [setting.value]
            words += [setting.option, *map(str, values)]
    assert commands.module("train").parse([name, *words]).config == config


def test_options_may_be_typed_as_fields_are_written():
    config = commands.module("train").parse(["maze/accel", "--ppo.learning_rate=0.5", "--log_every", "7"]).config
    assert (config.ppo.learning_rate, config.log_every) == (0.5, 7)


def test_what_was_meant_is_found_by_name_initials_or_letters():
    options = ["--ppo.learning-rate", "--teacher.ppo.learning-rate", "--ppo.clip", "--seeds", "--student.no-memory"]
    assert likely("--learning-rate", options) == ["--ppo.learning-rate", "--teacher.ppo.learning-rate"]
    assert likely("--lr", options) == ["--ppo.learning-rate", "--teacher.ppo.learning-rate"]
    assert likely("--seed", options) == ["--seeds"]
    assert likely("--ppo.clipp", options) == ["--ppo.clip"]
    assert likely("--no-memori", options) == ["--student.no-memory"]
    assert likely("--moonlight", options) == []


# Settings


def test_settings_have_dotted_names_in_order():
    names = [setting.name for setting in settings(Order("tea"))]
    assert names == ["what", "inner.size", "inner.open", "shares", "colour", "to", "quickly"]
    parts = {setting.name: setting.part for setting in settings(Order)}
    assert parts["what"] == ""
    assert parts["inner.size"] == "The inside."


def test_a_change_reaches_inside_and_leaves_the_rest():
    before = Order("tea", colour="green")
    after = changed(before, {"inner.size": 5, "what": "milk"})
    assert after == replace(before, what="milk", inner=Inner(5))
    assert before.inner.size == 3


def test_what_cannot_be_is_named_by_its_option():
    with pytest.raises(UserError, match=r"^--inner\.size must be at least 1, not 0\.$"):
        changed(Order("tea"), {"inner.size": 0})
    assert as_options("`top_k` is more than `buffer.top_k`.", "a.") == "--a.top-k is more than --a.buffer.top-k."
    assert as_fields("`top_k` is more than `buffer.top_k`.", "a.") == "a.top_k is more than a.buffer.top_k."


def test_a_nested_mistake_in_a_file_is_named(tmp_path):
    out = io.StringIO()
    with redirect_stdout(out):
        commands.module("presets").run(commands.module("presets").parse(["maze", "accel"]))
    (tmp_path / "c.json").write_text(out.getvalue().replace('"capacity": 4000', '"capacity": 0'))
    with pytest.raises(UserError, match=r"c\.json: method\.buffer\.capacity must be at least 1, not 0\.$"):
        commands.module("train").parse(["--config", str(tmp_path / "c.json")])


@given(st.one_of(st.integers(), st.floats(), st.booleans()))
@limits(max_examples=30)
def test_numbers_are_read_as_they_are_written(value):
    found = read(type(value), [str(value)])
    assert found == value or math.isnan(found)
    assert type(found) is type(value)


@given(st.text(max_size=5))
@limits(max_examples=30)
def test_any_other_word_is_no_number(word):
    assume(not any(c.isdigit() for c in word))
    with pytest.raises(ValueError, match=r"^must be a whole number, not "):
        read(int, [word])


def test_sentences_are_those_of_bases_too():
    assert sentences_of(tut.ACCEL)["edits"] == "Edits between a parent and its child."
    assert sentences_of(tut.ACCEL)["score"].startswith("Estimate of regret")
