"""Students as a folder in the layout of Hugging Face's model repositories.

    README.md            the model card: what they are, how they were trained, what they reach, how to use them
    config.json          the run's settings
    model.safetensors    the students of one checkpoint, of all seeds or of one
    evals/*.csv          what they reached, as far as the run was evaluated at that checkpoint

`tutelage eval FOLDER` and `tutelage.load_student(FOLDER)` read it. Nothing is uploaded here: `hf upload` would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import PyTree

from tutelage.env import Measure
from tutelage.errors import UserError, shown
from tutelage.runs import students as folders
from tutelage.runs.config import Config
from tutelage.runs.evaluate import Result, by_level, overall, read_csv, write_csv
from tutelage.runs.evaluations import Subject
from tutelage.runs.presets import method_name
from tutelage.runs.recipe import command
from tutelage.runs.run import Run
from tutelage.runs.storage import Damaged, make_folder, write_atomically

LICENCE = "apache-2.0"
Tables = Mapping[Subject, Sequence[Result]]


def export(
    run: Run,
    to: Path,
    *,
    updates: int | None = None,
    seed: int | None = None,
    half: bool = False,
    licence: str = LICENCE,
) -> None:
    """Writes the students of a checkpoint, the newest if none is named, of all seeds or of one, into a new folder."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UserError(f"{to} is not an empty folder; name another.")
    found, students = run.students_at(updates)
    config = run.config
    if seed is not None:
        config, students = folders.of_seed(config, students, seed)
    write(to, config, found, students, evaluations(run.path, config, found), half=half, licence=licence)


def write(
    to: Path,
    config: Config[Any, Any],
    updates: int,
    students: PyTree,
    tables: Tables,
    *,
    half: bool = False,
    licence: str = LICENCE,
) -> None:
    """Writes the folder, over one that is there."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", licence):
        raise UserError(f"A licence is named as on Hugging Face, such as {LICENCE} or cc-by-4.0, not {shown(licence)}.")
    folders.write(to, config, updates, students, half=half)
    for subject, results in tables.items():
        make_folder(to / "evals")
        write_csv(to / "evals" / subject.file_name, results)
    write_atomically(to / "README.md", card(config, updates, tables, half=half, licence=licence).encode())


def evaluations(run: Path, config: Config[Any, Any], updates: int) -> Tables:
    """What the students of a checkpoint reached, by the tables in a run's `evals/` that can be read."""
    found = {}
    for path in sorted((run / "evals").glob("*.csv")):
        subject = Subject.of(path.name)
        if subject is None or subject.updates != updates:
            continue
        try:
            results = [r for r in read_csv(path) if r.seed in config.all_seeds]
        except Damaged:
            continue
        if results:
            found[subject] = results
    return found


# The model card


def card(config: Config[Any, Any], updates: int, tables: Tables, *, half: bool, licence: str) -> str:
    """The text of README.md: metadata in YAML, then Markdown."""
    env, method = config.env.name, method_name(config.method)
    metadata = [
        f"license: {licence}",
        "library_name: tutelage",
        "pipeline_tag: reinforcement-learning",
        "tags:",
        *(f"- {tag}" for tag in ("reinforcement-learning", "unsupervised-environment-design", "jax", method, env)),
        *_index(f"{env}-{method}", config.env.measure, env, tables),
    ]
    parts = [_what(config, updates, half), _use(config), _training(config, updates), _results(config, tables)]
    return "\n".join(["---", *metadata, "---", f"# {env}, {method}", "", *parts, _licence(licence)]) + "\n"


def _index(name: str, measure: Measure, env: str, tables: Tables) -> list[str]:
    """The results as Hugging Face reads them: a suite's mean over levels, of seeds."""
    entries = []
    for subject, results in tables.items():
        value = overall(results)[measure.column].mean
        entries += [
            "  - task: {type: reinforcement-learning, name: reinforcement-learning}",
            f"    dataset: {{type: {json.dumps(env)}, name: {json.dumps(_title(subject))}}}",
            f"    metrics: [{{type: {measure.column}, name: {json.dumps(measure.name)}, value: {value:.4g}}}]",
        ]
    return ["model-index:", f"- name: {json.dumps(name)}", "  results:", *entries] if entries else []


def _what(config: Config[Any, Any], updates: int, half: bool) -> str:
    seeds = config.all_seeds
    which = f"The student of seed {seeds[0]}" if len(seeds) == 1 else f"The students of seeds {seeds[0]} to {seeds[-1]}"
    exactness = "Weights are rounded to 16 bits; results were found with 32. " if half else ""
    return (
        f"{which} after {updates:,} student updates on the env `{config.env.name}` with the method "
        f"`{method_name(config.method)}`: the levels that they learned on were chosen by unsupervised environment "
        f"design. {exactness}Every array in `model.safetensors` has the seeds as its first axis.\n"
    )


def _use(config: Config[Any, Any]) -> str:
    own = "" if command(config) else " The env is none of Tutelage's own: give it as `domain`."
    return f"""\
## Use

With `pip install tutelage`, and this folder as `FOLDER`:{own}

```python
import tutelage as tut

student = tut.load_student("FOLDER", seed={config.seed})
for result in tut.Run("FOLDER").evaluate(episodes=20):
    print(result.level, result.seed, result.solved_rate, result.mean_return)
```

`tutelage eval FOLDER` does the same on the command line.
"""


def _training(config: Config[Any, Any], updates: int) -> str:
    again = command(config)
    how = f"```sh\n{again}\n```\n" if again else "Trained from Python, not from a preset.\n"
    unfinished = f"The training that this checkpoint is from was to make {config.updates:,} student updates.\n"
    return f"## Training\n\n{how}{unfinished if updates != config.updates else ''}\n`config.json` has every setting.\n"


def _results(config: Config[Any, Any], tables: Tables) -> str:
    if not tables:
        return "## Results\n\nThese students were not evaluated.\n"
    lead = "Mean over seeds and its standard error." if config.seeds > 1 else "One seed, which tells no error."
    return "\n".join(["## Results", "", lead, "", *(_table(s, r, config.env.measure) for s, r in tables.items())])


def _table(subject: Subject, results: Sequence[Result], measure: Measure) -> str:
    digits = {"solved_rate": 2, "mean_return": 2, "mean_length": 0, measure.column: measure.digits}
    rows = {**by_level(results), **({"**mean**": overall(results)} if subject.kind != "worst" else {})}
    lines = [
        f"{_title(subject)}, {results[0].episodes} episodes on each level:",
        "",
        "| level | solved rate | mean return | mean length |",
        "|---|---|---|---|",
        *(f"| {name} | " + " | ".join(row[k].text(digits[k]) for k in digits) + " |" for name, row in rows.items()),
    ]
    return "\n".join([*lines, ""])


def _title(subject: Subject) -> str:
    """What was played, and how."""
    if subject.kind == "worst":
        what = f"the worst of {subject.count:,} random levels" + (f" of {subject.name}" if subject.name else "")
    else:
        what = f"{'suite' if subject.kind == 'suite' else 'file of levels'} {subject.name}"
    manner = ", most probable actions" * subject.greedy + ", in the original env" * subject.real
    return f"{what[0].upper()}{what[1:]}{manner}"


def _licence(licence: str) -> str:
    return f"## Licence\n\n{licence}"
