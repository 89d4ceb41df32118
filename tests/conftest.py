import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import config, install_import_hook

from compiling import ROOT  # before anything imports JAX

# Every shape and type in tutelage's signatures is checked at each call (at each trace, under jit).
install_import_hook("tutelage", "typechecker.check")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first: `make test` deals them out in this order, and one at the end would keep it waiting."""
    items.sort(key=lambda item: item.path.parent.name not in ("bipedal", "curricula", "runs", "tests"))


def pytest_collection_finish() -> None:
    """Python looks through all that is there for garbage, which takes a third of tracing: here it does so rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """JAX keeps all that it has compiled, gigabytes of a folder's programs, of which the next folder uses few."""
    import jax

    if nextitem is not None and nextitem.path.parent != item.path.parent:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def unchecked() -> Iterator[None]:
    """For tests that trace so much that checking types takes half of their time, which other tests check as well."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference data too large for the repository, in a folder `shared` beside it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder `shared` beside the repository")
    return folder
