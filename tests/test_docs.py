"""The documentation says what is so: names, links, commands and options exist, figures show today's tables.

`make docs` checks the built site besides; `make slow` runs every command and every notebook.
"""

import dataclasses
import importlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tutelage as tut
from toys import ROOT
from tutelage import cli, commands
from tutelage.commands.sweep import Sweep
from tutelage.curricula.scores import SCORES
from tutelage.runs import presets

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
RESULTS = sorted((ROOT / "results").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.md"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module(path: str):
    """A program of the repository, not run."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


notebook = module("docs/notebook.py")


# Names and links


def names_shown() -> list[str]:
    text = "\n".join(page.read_text() for page in PAGES)
    blocks = re.findall(r"```source\n(.*?)```", text, re.DOTALL)
    return sorted({*"\n".join(blocks).split(), *re.findall(r"^::: (\S+)", text, re.MULTILINE)})


@pytest.mark.parametrize("name", names_shown())
def test_what_is_included_from_the_source_is_there(name):
    if name.endswith(".py"):
        assert (ROOT / name).is_file()
        return
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        if importlib.util.find_spec(".".join(parts[:n])) if n == 1 else _is_module(parts[:n]):
            break
    thing = importlib.import_module(".".join(parts[:n]))
    for part in parts[n:]:
        thing = getattr(thing, part)


def _is_module(parts: list[str]) -> bool:
    try:
        return importlib.util.find_spec(".".join(parts)) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=named)
def test_files_that_are_linked_are_there(page):
    without_code = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", without_code):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_contents_and_nothing_else():
    listed = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert all((ROOT / path).is_file() for path in listed)
    missing = {named(page) for page in (*PAGES, *RESULTS)} - set(listed)
    assert not missing, f"in mkdocs.yml's nav, add {missing}"


def test_every_method_has_a_page_with_its_curve_and_its_command():
    for method in presets.METHODS:
        text = (ROOT / "docs" / "methods" / f"{method}.md").read_text()
        assert re.search(rf"^tutelage train \S+ {method}\b", text, re.MULTILINE), method
        assert f"images/curves/{method}.svg" in text or "There is none yet" in text, method


def test_every_score_has_a_row():
    rows = re.findall(r"^\| `([\w-]+)`", (ROOT / "docs" / "scores.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(SCORES)


def test_learning_curves_show_the_table_that_is_there():
    pictures = module("docs/pictures.py")
    files = sorted((ROOT / "docs" / "images" / "curves").glob("*.svg"))
    assert {file.stem for file in files} == set(pictures.curves())
    for file in files:
        assert f"data: {pictures.digest()}" in file.read_text(), "results/methods.csv is newer: python docs/pictures.py"


def test_on_a_package_index_every_link_of_the_readme_is_an_address():
    pytest.importorskip("hatchling", reason="the package is not built here")
    absolute = module("hatch_build.py").absolute
    text = absolute((ROOT / "README.md").read_text(), "https://example.org/tutelage", "v1.2.3")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert "https://example.org/tutelage/raw/v1.2.3/docs/images/lineage.png" in targets
    assert "https://example.org/tutelage/blob/v1.2.3/results/maze.md" in targets
    assert all(target.startswith("https://") for target in targets)


def test_docstrings_stand_alone():
    """None leans on what stands before it."""
    for file in (ROOT / "src").rglob("*.py"):
        leaning = re.findall(r'"""(?:The same|Of|Whom)\b.*', file.read_text())
        assert not leaning, f"{file}: {leaning}"


# Commands and options


def typed(page: Path) -> list[str]:
    """What a page tells one to type, in order: lines of sh blocks, and indented ones that begin like a command."""
    text = page.read_text()
    lines = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ").splitlines()
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines += re.findall(r"^    ((?:tutelage|make|python|pip) .*)", outside, re.MULTILINE)
    lines = [re.sub(r"\s+# .*", "", line).strip() for line in lines]
    return [line for line in lines if line]


ALL_COMMANDS = sorted({line for page in (*PAGES, *RESULTS) for line in typed(page)})


@pytest.mark.parametrize("line", [line for line in ALL_COMMANDS if line.startswith("tutelage ")])
def test_every_command_is_understood(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    name, *args = shlex.split(_usable(line).split(" > ")[0])[1:]
    if "--help" in args:
        with pytest.raises(SystemExit, match="0"):
            commands.module(name).parse(args)
    elif "--config" not in args:
        commands.module(name).parse(args)


def _usable(line: str) -> str:
    """With an example in the place of each word that stands for something."""
    for word, example in (("RUN", "runs/maze-accel"), ("METHOD", "accel"), ("OUT", "out"), ("FILE", "best.json")):
        line = re.sub(rf"\b{word}\b", example, line)
    return line


@pytest.mark.parametrize("line", [line for line in ALL_COMMANDS if not line.startswith("tutelage ")])
def test_every_other_command_names_what_is_there(line):
    program, *args = shlex.split(line)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert args[0] in targets
    elif program == "python":
        assert (ROOT / args[0]).is_file()
        options = [arg for arg in args[1:] if arg.startswith("--")]
        assert all(f'"{option}"' in (ROOT / args[0]).read_text() for option in options)
    elif program == "pip":
        extras = re.findall(r"\[(\w+)\]", line)
        assert all(f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text() for extra in extras)
    else:
        assert program in ("cp", ".", ".ci/run"), f"a kind of command that no test knows: {line}"


def settings(cls: type, prefix: str = "") -> set[str]:
    """The options that the fields of a config become."""
    found = set()
    for field in dataclasses.fields(cls):
        name = prefix + field.name.replace("_", "-")
        found |= {name}
        value = field.default if field.default is not dataclasses.MISSING else None
        if dataclasses.is_dataclass(value):
            found |= settings(type(value), name + ".")
    return found


def test_every_setting_that_is_named_exists():
    known = settings(tut.Config) | settings(Sweep)
    known |= {option for method in presets.METHODS.values() for option in settings(method, "method.")}
    known |= {option for domain in presets.DOMAINS.values() for option in settings(domain, "env.")}
    for page in PAGES:
        for option in re.findall(r"`--([a-z-]+\.[a-z.-]+)", page.read_text()):
            assert option.replace(".no-", ".") in known, f"{named(page)}: --{option}"


# Python


def test_the_python_of_the_readme_is_under_ten_lines():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(code.splitlines()) < 10
    assert tut.preset("maze", "accel", seeds=5, updates=1000).seeds == 5


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_on_pages_compiles(page):
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        compile(code, named(page), "exec")


@pytest.mark.parametrize("page", NOTEBOOKS, ids=named)
def test_notebooks_are_offered_as_ipynb(page):
    cells = json.loads(notebook.as_ipynb(page))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code == [cell.rstrip("\n") for cell in notebook.cells(page)]
    assert "".join(cells[0]["source"]).startswith("# ")
    assert not any(sign in "".join(cell["source"]) for cell in cells for sign in ("```", "!["))


def test_a_notebook_is_one_program_and_its_output_is_renewed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nx = 2\n```\n\nAnd\n\n```python\nprint(x + 1)\n```\n\n```text\nold\n```\n")
    printed = notebook.run(page)
    assert printed == ["", "3\n"]
    assert notebook.with_outputs(page.read_text(), printed) == page.read_text().replace("old", "3")


# Everything for real


@pytest.mark.slow
@pytest.mark.parametrize("page", NOTEBOOKS, ids=named)
def test_notebooks_run_and_print_where_the_page_says(page, tmp_path):
    """In a process of its own, as a reader would run it, without the checks of types that tests have."""
    if "results" in page.read_text() and not (ROOT / "results" / "bipedal-accel").is_dir():
        pytest.skip("the run of the walker is not part of this copy")
    copy = tmp_path / "docs" / "notebooks" / page.name
    copy.parent.mkdir(parents=True)
    copy.write_text(page.read_text())
    (tmp_path / "results").symlink_to(ROOT / "results")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "error::FutureWarning", str(ROOT / "docs" / "notebook.py"), str(copy)]
    subprocess.run(command, check=True, env=environment)
    shown, renewed = (notebook.CELL.findall(path.read_text()) for path in (page, copy))
    assert [bool(output) for _, output in renewed] == [bool(output) for _, output in shown]


SMALL = {
    "any": "--updates 2 --slots 4 --seeds 1 --eval-every 0 --log-every 1 --checkpoint-every 2"
    " --student.hidden 8 --student.head 8",
    "maze": "--env.max-steps 16 --steps 16",
    "lava": "--env.max-steps 16 --steps 16 --env.eye small",
    "bipedal": "--env.max-steps 32 --steps 32",
    "bipedal-poet": "--env.max-steps 32 --steps 32",
    "cenie": "--method.window 32 --method.taken 8 --method.components 2",
    "sfl": "--method.scout-batches 1 --method.scout-levels 16",
}
"""What makes a training of the documentation one of seconds: options that come after its own."""


SMALL_SWEEP = "env.max_steps=16 steps=16 slots=4 student.hidden=8 student.head=8 eval_episodes=1 checkpoint_every=2"


def shrunk(line: str) -> list[str]:
    """The words of a command, with settings that make it quick."""
    line = re.sub(r" --devices \d+", "", line)
    line = re.sub(r"--checkpoint \d+", "--checkpoint 2", re.sub(r"--lineage \d+", "--lineage 0", line))
    line = re.sub(r"checkpoints/\d+", "checkpoints/00000002", line)
    words = [found for word in shlex.split(line) for found in (sorted(map(str, Path().glob(word))) or [word])][1:]
    if words[0] == "train" and "--help" not in words:
        kinds = ["any", *words[1:3]] if not words[1].startswith("-") else ["any"]
        few = "--method.capacity 2 --method.children 2" if "poet" in kinds else "--method.buffer.capacity 8"
        more = "--updates 3" if "--start" in words else ""
        return words + shlex.split(" ".join([few, *(SMALL.get(kind, "") for kind in kinds), more]))
    if words[0] == "resume":
        return [re.sub(r"^\d{3,}$", "3", word) for word in words]
    if words[0] == "sweep" and not Path(words[1]).is_dir():
        looks = "eval_every=1" if "ray" in words else "eval_every=0"
        words = [re.sub(r"^\d{3,}$", "1", word) for word in words]
        return [*words, "--updates", "2", "--seeds", "1", "--set", *SMALL_SWEEP.split(), looks]
    if words[0] == "eval":
        return [*words, "--episodes", "2", *(["--levels", "20"] if "--cvar" in words else [])]
    if words[0] == "demo":
        return [*words, "--updates", "50"]
    if words[0] == "bench":
        return [*words, "--envs", "4", "--seeds", "1", "--updates", "1"]
    return words


@pytest.mark.filterwarnings("ignore:os.fork")  # by Ray, which does not go on with JAX in the new process
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_runs(page, tmp_path, monkeypatch, capsys):
    """In one folder a page, in the order in which they stand; what stands for something is left out."""
    lines = [_usable(line) for line in typed(page) if line.startswith("tutelage ")]
    if not lines:
        pytest.skip("no command of tutelage")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    for line in lines:
        if "mygame" in line:
            continue
        command, _, file = line.partition(" > ")
        try:
            code = cli.main(shrunk(command))
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        assert code == 0, f"{line}: {printed.err}"
        if file:
            Path(file).write_text(printed.out)
