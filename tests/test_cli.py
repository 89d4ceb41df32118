"""The command line as a person meets it: what it says, and what it refuses."""

import ast
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import tutelage as tut
from toys import jumper, tiny_maze
from tutelage import cli, commands
from tutelage.commands.options import free_path
from tutelage.console import StatusLine, levels_table
from tutelage.runs import config as configs
from tutelage.runs import evaluate, presets
from tutelage.runs import train as training
from tutelage.runs.browse import Found
from tutelage.runs.evaluations import Subject
from tutelage.runs.signals import Interrupted

SMALL = "--env.size 5 --env.max-steps 20 --student.no-memory --student.hidden 16 --student.head 8 --slots 8 --steps 24"
SHORT = "--method.buffer.capacity 24 --ppo.epochs 1 --updates 4 --log-every 2 --checkpoint-every 2 --eval-every 0"
TINY = [*SMALL.split(), *SHORT.split()]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "run"
    assert cli.main(["train", "maze", "accel", *TINY, "--seeds", "2", "--out", str(path)]) == 0
    return path


def call(capsys, *args):
    try:
        code = cli.main([str(a) for a in args])
    except SystemExit as stop:  # after --help
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


START = """
import sys
from tutelage import cli
code = cli.main(sys.argv[1:])
assert not {"jax", "numpy", "rich"} & set(sys.modules), "something large was imported"
sys.exit(code)
"""


@pytest.mark.parametrize(("arg", "code"), [("--help", 0), ("--version", 0), ("trian", 2)])
def test_what_needs_no_jax_does_not_wait_for_it(arg, code):
    assert subprocess.run([sys.executable, "-c", START, arg], check=False, capture_output=True).returncode == code


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "tutelage", "--version"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"tutelage {tut.__version__}\n"


def test_every_public_name_is_found_and_typed():
    """The names that are imported when they are asked for, those that type checkers see, and `__all__` are one list."""
    tree = ast.parse(Path(tut.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {name.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert typed == {name: f"tutelage.{home}" for name, home in tut._HOMES.items()}
    assert set(typed) == set(tut.__all__) <= set(dir(tut))
    for name in tut.__all__:
        assert getattr(tut, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        tut.magic  # noqa: B018


def test_alone_it_says_what_it_can_do(capsys):
    code, out, _ = call(capsys)
    assert code == 0
    for command in commands.COMMANDS:
        assert f"tutelage {command}" in out
    assert call(capsys, "--version")[1].strip() == f"tutelage {tut.__version__}"


@pytest.mark.parametrize("command", list(commands.COMMANDS))
def test_every_command_explains_itself(capsys, command):
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    assert f"tutelage {command}" in out


def test_the_help_of_train_explains_every_setting(capsys):
    _, out, _ = call(capsys, "train", "maze", "accel", "--help")
    plain = re.sub(r"\s+", " ", out.replace("│", " "))
    for sentence in (
        "--method.edits INT Edits between a parent and its child. (default: 5)",
        "--updates INT Student updates to train for. (default: 20000)",
        "--method.buffer.capacity INT Number of slots K. (default: 4000)",
        "--ppo.gae-lambda FLOAT λ of generalised advantage estimation. (default: 0.95)",
        "much faster on a CPU. (default: on; off with --student.no-memory)",
    ):
        assert sentence in plain


BAD = {
    "unknown command": ("trin", "Unknown command 'trin'; did you mean 'train'?"),
    "no method": ("train maze", "`tutelage train maze` wants a method too: dr, plr"),
    "no env": ("train", "wants an env and a method, as in `tutelage train maze accel`"),
    "unknown env": ("train moon accel", "Unknown env 'moon'; known: maze"),
    "unknown method": ("train maze magic", "Unknown method 'magic' for maze; known: dr, plr"),
    "unknown field": ("train maze accel --method.edit 3", "no option --method.edit; did you mean --method.edits?"),
    "not a number": ("train maze accel --seeds many", "--seeds must be a whole number, not 'many'"),
    "not finite": ("train maze demo --ppo.learning-rate nan", "--ppo.learning-rate must be a finite number"),
    "a mistyped method": ("train maze acel", "Unknown method 'acel' for maze; did you mean 'accel'?"),
    "a mistyped env": ("train maz/accel", "Unknown env 'maz'; did you mean 'maze'?"),
    "a mistyped option": ("train maze accel --ppo.learning-rat 1", "did you mean --ppo.learning-rate?"),
    "an abbreviation": ("train maze accel --lr 1", "has no option --lr; did you mean --ppo.learning-rate?"),
    "an option without its part": ("train maze accel --clip 1", "did you mean --ppo.clip?"),
    "an option of nothing": ("train maze accel --moonlight", "`tutelage train maze accel --help` lists all"),
    "no value": ("train maze accel --seeds", "--seeds wants a value"),
    "a value too many": ("train maze accel --student.no-memory=1", "--student.no-memory takes no value"),
    "a word too many": ("train maze accel please", "has no place for 'please'"),
    "a wrong choice": (
        "train maze accel --method.parents x",
        "--method.parents must be one of replayed, lowest, not 'x'",
    ),
    "a field that cannot be": (
        "train maze accel --method.buffer.capacity=0",
        "tutelage: --method.buffer.capacity must be at least 1, not 0.",
    ),
    "a project of nothing": ("train maze accel --track.project x", "--track.project goes with wandb alone"),
    "no argument": ("eval", "`tutelage eval` wants RUN"),
    "no config of a domain": ("train maze accel --domain own:DOMAIN", "--domain goes with --config"),
    "no domain": ("eval nowhere --domain tutelage.envs.own", "--domain wants a module and a name in it"),
    "no module": ("eval nowhere --domain moonlight:DOMAIN", "moonlight cannot be imported"),
    "no name": ("eval nowhere --domain tutelage.envs.own:OwnDomai", "did you mean 'OwnDomain'?"),
    "not a domain": ("eval nowhere --domain tutelage.envs.own:SOLVABLE", "not a `tutelage.Domain`"),
    "zero seeds": ("train maze accel --seeds 0", "--seeds must be at least 1, not 0"),
    "lava without end": ("train lava accel --env.placements 1000000000", "--env.placements must be at most 1,000"),
    "a maze too large": ("train maze accel --env.size 100", "3 to 99 tiles"),
    "rollout too short": ("train maze accel --steps 100", "set --steps to 250 or more"),
    "uneven minibatches": ("train maze accel --ppo.minibatches 5", "--ppo.minibatches = 5 does not divide 32 slots"),
    "no run": ("eval nowhere", "nowhere is not a run: it has no config.json"),
    "no run to resume": ("resume nowhere", "nowhere is not a run"),
    "no run to browse": ("levels nowhere", "nowhere is not a run"),
    "a name of no characters": ("train maze accel --out \ud800", "holds what is no character"),
    "no preset": ("presets maze/magic", "Unknown method 'magic'"),
    "no env of presets": ("presets mase", "Unknown env 'mase'; did you mean 'maze'?"),
    "no config": ("train --config nowhere.json", "nowhere.json cannot be read"),
    "no envs to time": ("bench maze --envs 0", "--envs must be at least 1, not 0"),
    "no updates to time": ("bench maze --updates -4", "--updates must be at least 1, not -4"),
    "a number beyond all arrays": ("bench maze --envs 99999999999", "--envs must be at most 2,147,483,647"),
    "too many processes": ("sweep maze --methods demo --local.side-by-side 61", "side-by-side must be from 1 to 60"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence_and_exit_code_2(capsys, tmp_path, case):
    line, says = BAD[case]
    code, out, err = call(capsys, *line.split())
    assert code == 2
    assert says in err
    assert err.startswith("tutelage: ")
    assert len(err.splitlines()) == 1, "one sentence, and no traceback"
    assert out == "", "nothing is announced"
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("text", ["", "{", "[]", '"config"', '{"format": 1}', "\x00\x01"])
def test_a_file_that_is_no_config_is_refused(capsys, tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    code, _, err = call(capsys, "train", "--config", "c.json")
    assert code == 2
    assert "c.json" in err


@pytest.mark.parametrize("where", ["/", ".", "..", "", "folder", "pipe", "link to a pipe"])
def test_a_folder_or_a_pipe_is_not_replaced_by_a_file(capsys, tmp_path, run, where):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to a pipe").symlink_to("pipe")
    there = sorted(tmp_path.iterdir())
    code, _, err = call(capsys, "levels", run, "--json", where)
    assert code == 2
    assert re.fullmatch(r"tutelage: .*(Is a directory|this is no plain file, and is left as it is)\.\n", err)
    assert sorted(tmp_path.iterdir()) == there
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("to", ["tensorboard", "wandb"])
def test_what_is_not_installed_is_said_before_a_directory_is_made(capsys, tmp_path, monkeypatch, to):
    monkeypatch.setattr("tutelage.runs.metrics.find_spec", lambda name: None)
    code, out, err = call(capsys, "train", "maze", "accel", *TINY, "--track", to)
    assert code == 2
    assert (out, err) == ("", f"tutelage: --track {to} needs the extra: pip install 'tutelage[track]'.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_used_directory_is_refused_and_left_alone(capsys, run):
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    code, _, err = call(capsys, "train", "maze", "accel", *TINY, "--out", run)
    assert code == 2
    assert f"{run} is already in use: go on with `tutelage resume {run}`" in err
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before


def test_a_broken_config_of_a_run_is_said(capsys, tmp_path, run):
    (tmp_path / "config.json").write_text((run / "config.json").read_text()[:50])
    code, _, err = call(capsys, "eval", tmp_path)
    assert code == 2
    assert "cannot be read as a run configuration" in err


def test_evaluation_writes_a_row_for_each_level_and_seed(capsys, run):
    code, out, _ = call(capsys, "eval", run, "--suite", "small", "--episodes", 3)
    assert code == 0
    assert "±" in out
    results = evaluate.read_csv(run / "evals" / "small-00000004.csv")
    levels = [level.name for level in tiny_maze().env.suites()["small"]]
    assert [(r.level, r.seed) for r in results] == [(name, seed) for name in levels for seed in (0, 1)]
    assert all(r.episodes == 3 for r in results)
    assert all(name in out for name in levels)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--suite", "moon"], "Unknown suite 'moon' of maze; known: maze, maze-12, validation, small"),
        (["--checkpoint", 3], "no checkpoint 3; there are"),
        (["--episodes", 0], "--episodes must be at least 1"),
        (["--levels", "l.json", "--suite", "small"], "--levels does not go with --suite"),
    ],
)
def test_an_evaluation_that_cannot_be_is_refused(capsys, run, args, says):
    code, _, err = call(capsys, "eval", run, *args)
    assert code == 2
    assert says in err


def test_levels_are_listed_drawn_and_written(capsys, run, tmp_path):
    code, out, _ = call(capsys, "levels", run, "--top", 3, "--png", tmp_path / "png", "--json", tmp_path / "l.json")
    assert code == 0
    assert "gen" in out
    assert "blocks" in out
    assert len(list((tmp_path / "png").glob("*.png"))) == 3
    levels = json.loads((tmp_path / "l.json").read_text())
    design = tut.Run(run).config.env.design()
    assert len(levels) == 3
    for level in levels:
        design.from_json(level["level"])
    code, out, _ = call(capsys, "levels", run, "--lineage", levels[0]["id"], "--seed", levels[0]["seed"])
    assert code == 0
    code, _, err = call(capsys, "levels", run, "--lineage", 10**6)
    assert code == 2
    assert "has no level 1000000" in err


@pytest.mark.parametrize(("width", "columns"), [(120, 9), (60, 7)])
def test_levels_are_listed_as_the_terminal_is_wide(width, columns):
    """Where metrics do not all fit beside each other, they are named one after the other, no word broken."""
    metrics = {"pit_gap_high": 2.0, "roughness": 0.30131, "stump_height_low": -2.9e-8}
    found = Found(level=None, seed=0, id=7, parent=-1, generation=3, birth=12, score=0.18812, metrics=metrics)
    table = levels_table("run", [found], width)
    with Console(width=width, record=True, file=io.StringIO()) as console:
        console.print(table)
    text = " ".join(console.export_text().split())
    assert len(table.columns) == columns
    for shown in ("pit gap high", "roughness", "stump height low", "0.301"):
        assert shown in text
    assert "e-" not in text


def test_what_is_being_done_is_said_now_and_then_where_there_is_no_terminal(monkeypatch):
    """Not of every little thing, and of nothing that is over soon."""
    now = iter([0.0, 1.0, 40.0, 40.0, 41.0, 80.0, 80.0])
    monkeypatch.setattr("tutelage.console.time.monotonic", lambda: next(now))
    out = io.StringIO()
    with StatusLine(Console(file=out, force_terminal=False)) as status:
        for text in ("Basic", "Hardcore", "Stairs", "PitGap"):
            status.update(text)
    assert out.getvalue() == "Hardcore …\nPitGap …\n"


def test_levels_of_ones_own_are_played(capsys, run, tmp_path):
    rows = ["S....", ".....", "..#..", ".....", "....G"]
    (tmp_path / "mine.json").write_text(json.dumps([{"rows": rows, "direction": 0}]))
    code, out, _ = call(capsys, "eval", run, "--levels", tmp_path / "mine.json", "--episodes", 2)
    assert code == 0
    assert "mine.json[0]" in out
    (table,) = (run / "evals").glob("file-mine-*-00000004.csv")
    assert Subject.of(table.name).kind == "levels"
    assert [r.level for r in evaluate.read_csv(table)] == ["mine.json[0]"] * 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read as JSON"),
        ("{}", "must hold a list of levels"),
        ("[3]", "bad.json[0] does not fit"),
        ('[{"rows": ["S.G"], "direction": 0}]', "has 5 rows of 5 tiles each"),
        ('[{"level": {"rows": [".....", ".....", ".....", ".....", "....."], "direction": 0}}]', "exactly one start"),
    ],
)
def test_a_level_that_does_not_fit_is_refused(capsys, run, tmp_path, text, says):
    (tmp_path / "bad.json").write_text(text)
    code, _, err = call(capsys, "eval", run, "--levels", tmp_path / "bad.json")
    assert code == 2
    assert says in err


def test_the_presets_of_one_env_are_listed(capsys):
    code, out, _ = call(capsys, "presets", "lava")
    assert code == 0
    assert "lava/small" in out
    assert "maze/" not in out


def test_presets_are_listed_and_printed_as_configs(capsys, tmp_path):
    _, out, _ = call(capsys, "presets")
    for name in ("maze/dr", "maze/plr", "maze/robust-plr", "maze/accel", "maze/accel-dr", "maze/no-editor"):
        assert name in out
    _, out, _ = call(capsys, "presets", "maze/accel")
    (tmp_path / "mine.json").write_text(out)
    assert configs.load(tmp_path / "mine.json", presets.DOMAINS, presets.METHODS) == tut.preset("maze", "accel")


def test_any_field_of_a_preset_can_be_changed():
    config = tut.preset("maze", "accel", method=tut.DR(), env=tut.preset("lava", "dr").env, seeds=3)
    assert (config.method, config.env.name, config.seeds) == (tut.DR(), "lava", 3)


def test_a_finished_run_says_so(capsys, run):
    """Whichever way it is resumed: one sentence, and nothing else."""
    for command in (["resume", run], ["train", "maze", "accel", *TINY, "--seeds", 2, "--out", run, "--resume"]):
        code, out, _ = call(capsys, *command)
        assert code == 0
        assert out == f"{run} is finished, after 4 student updates; `--updates` makes it go on.\n"


def test_one_command_begins_and_goes_on_but_not_with_other_settings(capsys, run):
    code, _, err = call(
        capsys, "train", "maze", "accel", *TINY, "--seeds", 2, "--out", run, "--resume", "--ppo.clip", 0.3
    )
    assert code == 2
    assert f"{run} is a run with another config: ppo.clip is 0.2 there and 0.3 here" in err


def test_ctrl_c_says_how_to_go_on(capsys, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupted)
    code, _, err = call(capsys, "train", "maze", "accel", *TINY)
    assert code == 130
    assert "tutelage resume" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
def test_a_run_that_a_signal_stopped_says_how_it_goes_on_and_exits_as_the_signal_would(capsys, monkeypatch, number):
    sentence = "runs/x stopped at 3 of 10 student updates: `tutelage resume runs/x` goes on with it."

    def stopped(*args, **options):
        raise Interrupted(number, 3, sentence)

    monkeypatch.setattr(training, "train", stopped)
    code, out, err = call(capsys, "train", "maze", "accel", *TINY)
    assert code == 128 + number
    assert (out, err) == ("", f"{sentence}\n")


def test_the_demo_ends_with_a_page(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "preset", lambda env, method: tiny_maze(updates=4))
    code, out, _ = call(capsys, "demo", "--out", tmp_path / "demo")
    assert code == 0
    page = (tmp_path / "demo" / "index.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "index.html" in out


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("maze accel", "runs/maze-accel"),
        ("maze/accel --seeds 2", "runs/maze-accel"),
        ("maze demo", "runs/maze-demo"),
        ("maze/demo --out here", "here"),
    ],
)
def test_runs_are_named_by_their_preset(words, folder):
    command = commands.module("train").parse(words.split())
    assert str(command.out) == folder
    env, method = words.split(" --")[0].replace("/", " ").split()
    assert command.config.method == tut.preset(env, method).method


def test_what_is_to_be_resumed_is_found_again(tmp_path):
    (tmp_path / "runs" / "maze-demo").mkdir(parents=True)
    parse = commands.module("train").parse
    assert str(parse(["maze", "demo"]).out) == "runs/maze-demo-2"
    assert str(parse(["maze", "demo", "--resume"]).out) == "runs/maze-demo"


def test_a_config_is_printed_and_read_from_a_pipe(capsys, tmp_path, monkeypatch):
    code, out, _ = call(capsys, "train", "maze", "accel", "--seeds", 3, "--ppo.clip", 0.3, "--print-config")
    assert code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(out))
    code, again, _ = call(capsys, "train", "--seed", 7, "--config", "-", "--print-config")
    assert code == 0
    config = configs.parse(again, "it", presets.DOMAINS, presets.METHODS)
    assert config == tut.preset("maze", "accel", seeds=3, seed=7, ppo=tut.PPO(clip=0.3))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("sys.stdin", io.StringIO("{"))
    code, _, err = call(capsys, "train", "--config", "-")
    assert code == 2
    assert "What was piped in cannot be read as a run configuration" in err


def test_a_run_is_extended(capsys, run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    code, out, _ = call(capsys, "resume", tmp_path / "copy", "--updates", 6)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith(f"accel on maze, 2 seeds → {tmp_path / 'copy'}, on cpu")
    assert len(set(lines)) == len(lines), "nothing is said twice"
    assert tut.Run(tmp_path / "copy").checkpoints[-1] == 6
    code, _, err = call(capsys, "resume", tmp_path / "copy", "--updates", 5)
    assert code == 2
    assert "has done 6 student updates already" in err


def test_a_suite_is_listed_and_one_of_its_levels_played(capsys, run):
    code, out, _ = call(capsys, "eval", run, "--list")
    assert code == 0
    for name in ("maze-12", "validation", "small", "Labyrinth", "SBend"):
        assert name in out
    before = sorted((run / "evals").iterdir())
    code, out, _ = call(capsys, "eval", run, "--level", "Spiral", "--episodes", 3)
    assert code == 0
    assert "Spiral" in out
    assert "SBend" not in out
    assert sorted((run / "evals").iterdir()) == before
    code, _, err = call(capsys, "eval", run, "--level", "Labyrint")
    assert code == 2
    assert "did you mean 'Labyrinth'?" in err


def test_one_level_is_played_as_in_its_suite(run):
    opened = tut.Run(run)
    name, suite = opened.suite_with("Spiral")
    whole = evaluate.evaluate(opened.students(), [0, 1], suite[:2], 2)
    alone = evaluate.evaluate(opened.students(), [0, 1], suite[:2], 2, only="Spiral")
    assert name == "validation"
    assert alone == [r for r in whole if r.level == "Spiral"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run on an env of one's own, with a module beside it that has the env."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mygame.py").write_text("from toys import jumper\n\nDOMAIN = jumper().env\n")
    tut.train(jumper(updates=5), folder / "run")
    return folder


def test_a_run_on_an_env_of_ones_own_is_told_its_env(capsys, own, monkeypatch):
    monkeypatch.chdir(own)
    monkeypatch.setattr("sys.path", list(sys.path))
    for line in ("levels run --top 2", "resume run", "eval run --levels l.json --episodes 2", "report run --out page"):
        if line.startswith("eval"):
            Path("l.json").write_text('[{"pits": [3, 6]}]')
        code, out, err = call(capsys, *line.split())
        assert code == 2, line
        assert "unknown env 'jumper'" in err
        assert "--domain MODULE:NAME" in err
        code, out, err = call(capsys, *line.split(), "--domain", "mygame:DOMAIN")
        assert code == 0, err
    code, out, _ = call(capsys, "train", "--config", "run/config.json", "--domain", "mygame:DOMAIN", "--print-config")
    assert code == 0
    assert json.loads(out) == json.loads(Path("run/config.json").read_text())
    code, _, err = call(capsys, "levels", "run", "--domain", "tutelage.envs.maze:MazeDomain")
    assert code == 2


def test_the_default_directory_is_the_first_free_one(tmp_path):
    assert str(free_path("x")) == "runs/x"
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x-2").mkdir()
    assert str(free_path("x")) == "runs/x-3"
