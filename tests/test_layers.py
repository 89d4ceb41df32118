"""What may know of what: each package of the library imports from those before it alone."""

import ast
from pathlib import Path

import pytest

import tutelage

SOURCES = Path(tutelage.__file__).parent
LAYERS = (
    {"errors", "gpu", "statistics"},
    {"env"},
    {"student"},
    {"envs"},
    {"curricula"},
    {"runs"},
    {"__init__"},  # the library's face
    {"page", "console"},
    {"report"},
    {"interop"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def package(path: Path) -> str:
    return path.relative_to(SOURCES).with_suffix("").parts[0]


def imported(path: Path) -> set[str]:
    """Packages of the library that a file imports from, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "tutelage":
            found |= {name.name if name.name in LEVEL else "__init__" for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tutelage."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {n.name.split(".")[1] for n in node.names if n.name.startswith("tutelage.")}
    return found


@pytest.mark.parametrize("name", sorted({package(path) for path in SOURCES.rglob("*.py")}))
def test_no_package_imports_upwards(name):
    assert name in LEVEL, "a new package has its place in LAYERS"
    for path in SOURCES.rglob("*.py"):
        if package(path) == name:
            beside_or_above = {other for other in imported(path) - {name} if LEVEL[other] >= LEVEL[name]}
            assert not beside_or_above, f"{path} imports {sorted(beside_or_above)}"


def defined(path: Path) -> set[str]:
    """Names that a module defines at its top."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def test_a_name_of_the_walkers_means_one_thing():
    """Its modules share too many words to define one of them twice."""
    names = [name for path in (SOURCES / "envs" / "bipedal").rglob("*.py") for name in defined(path) - {"__all__"}]
    assert {name for name in names if names.count(name) > 1} == set()
