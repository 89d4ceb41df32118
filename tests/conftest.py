import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Before anything imports JAX. As environment variables, so that xdist's workers and the processes that tests start have
# them too: each program is compiled once, whichever of them comes first.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

from jaxtyping import install_import_hook  # noqa: E402

# Every shape and type in tutelage's signatures is checked at each call (at each trace, under jit).
install_import_hook("tutelage", "typechecker.check")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference data too large for the repository, in a folder `shared` beside it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder `shared` beside the repository")
    return folder
