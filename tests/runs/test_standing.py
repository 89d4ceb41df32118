"""What may be gone on with: nothing that would be lost, and no checkpoint of another training."""

import dataclasses
import json
import os

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tutelage as tut
from toys import jumper
from tutelage.errors import UserError
from tutelage.runs import checkpoint, presets
from tutelage.runs import config as configs
from tutelage.runs.run import initial_state

PRESETS = {name: config for name, (_, config) in presets.PRESETS.items()}


def written(config: tut.Config) -> dict:
    return configs.to_json(config, presets.method_name(config.method))


def places(data: dict, where: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where plain data has values that hold no others."""
    return [p for k, v in data.items() for p in (places(v, (*where, k)) if isinstance(v, dict) else [(*where, k)])]


def with_change(data: dict, place: tuple[str, ...], *value: object) -> dict:
    """Plain data with another value in a place, or without that place."""
    (name, *rest), inner = place, dict(data)
    if rest:
        inner[name] = with_change(data[name], tuple(rest), *value)
    elif value:
        inner[name] = value[0]
    else:
        del inner[name]
    return inner


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_the_first_setting_in_which_a_checkpoint_is_of_another_training_is_named(data):
    """Whatever the setting, and whatever stands there; what decides no number so far may differ."""
    config = PRESETS[data.draw(st.sampled_from(sorted(PRESETS)))]
    here = written(config)
    place = data.draw(st.sampled_from(places(here)))
    other = data.draw(st.sampled_from([1, 7, -1, 0.5, "x", None, True, [], [1], {}, "gone"]))
    there = with_change(here, place) if other == "gone" else with_change(here, place, other)
    found = configs.difference(there, config, here["method"]["name"])
    if there == here or (place[0] in configs.FREE and place[0] in there):
        assert found is None
    elif found is None:
        assert other == "gone" or config == configs.from_json(there, presets.DOMAINS, presets.METHODS), "it is the same"
    elif place[0] != "format":
        assert found.split()[0].split(".")[0] == place[0]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_field_that_is_missing_is_named(data):
    """But for those that older versions did not have."""
    name = data.draw(st.sampled_from(sorted(PRESETS)))
    here = written(PRESETS[name])
    place = data.draw(st.sampled_from([p for p in places(here) if p[-1] not in configs.LATER and p != ("format",)]))
    if place[0] in configs.LATER:
        return
    with pytest.raises(UserError, match=rf"{place[-1]} is missing|unknown (env|method)"):
        configs.from_json(with_change(here, place), presets.DOMAINS, presets.METHODS)


@pytest.fixture
def run(tmp_path):
    """A run of which everything is there but what a test takes away."""
    config = jumper()
    for folder in ("checkpoints", "levels", "evals"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config.json").write_text(json.dumps(written(config)))
    return tmp_path


@pytest.mark.parametrize(
    "kept", ["metrics.jsonl", "levels/00000005.safetensors", "evals/held-out-00000005.csv", "checkpoints/notes.txt"]
)
def test_a_run_without_checkpoints_is_not_begun_anew_where_anything_would_be_lost(run, kept):
    (run / kept).write_bytes(b"something")
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    with pytest.raises(UserError, match=r"holds .*, but no checkpoint to go on from: start the run again"):
        tut.resume(run, domain=jumper().env)
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file() and p.name != ".lock"} == before


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (dict(seed=7), "seed is 7 there and 0 here"),
        (dict(ppo=tut.PPO(learning_rate=9e-3, entropy_coef=0.01, epochs=2)), "ppo.learning_rate is 0.009 there"),
        (dict(slots=16), "slots is 16 there and 8 here"),
        (dict(method=tut.DR()), "method"),
    ],
)
def test_a_checkpoint_of_another_training_is_not_gone_on_with(run, other, says):
    config = jumper(**other)
    state = jax.device_get(initial_state(jumper()))
    checkpoint.save(run / "checkpoints", 5, state, written(config))
    before = {p: p.read_bytes() for p in run.rglob("*.*") if p.is_file()}
    with pytest.raises(UserError, match=f"was made with another config: .*{says}"):
        tut.resume(run, domain=jumper().env)
    assert {p: p.read_bytes() for p in run.rglob("*.*") if p.is_file() and p.name != ".lock"} == before
    assert tut.Run(run, dataclasses.replace(config.env)).checkpoints == [5]


@pytest.mark.parametrize("terabyte", [False, True], ids=["folder", "terabyte"])
def test_a_run_whose_history_cannot_be_read_is_refused_as_it_was(run, terabyte):
    state = jax.device_get(initial_state(jumper()))
    checkpoint.save(run / "checkpoints", 5, state, written(jumper()))
    (run / "metrics.jsonl").write_text('{"updates": 5, "seed": 0}\n{"updates": 9, "seed": 0}\n')
    if terabyte:
        (run / "history.jsonl").touch()
        os.truncate(run / "history.jsonl", 2**40)
    else:
        (run / "history.jsonl").mkdir()
    before = {p: p.read_bytes() for p in run.rglob("*.*") if p.is_file() and p.name != "history.jsonl"}
    with pytest.raises(UserError, match=r"history\.jsonl"):
        tut.resume(run, domain=jumper().env)
    after = [p for p in run.rglob("*.*") if p.is_file() and p.name not in ("history.jsonl", ".lock")]
    assert {p: p.read_bytes() for p in after} == before
