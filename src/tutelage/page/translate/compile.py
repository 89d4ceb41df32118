"""From C to WebAssembly, by the C compiler that comes with Zig: it is a Python package and needs nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tutelage.errors import UserError

STACK = 1 << 18  # bytes; below everything else, so that a function that needs more stops rather than writes over it
FEATURES = "+nontrapping_fptoint+sign_ext+bulk_memory+bulk_memory_opt"
EXACT = (  # each operation as it is written: nothing contracted, nothing assumed
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv"),
    "-fno-sanitize=undefined",
)
LINKED = ("--no-entry", "--export=__heap_base", "--export=frame", "--strip-all", f"-z,stack-size={STACK}")


def compiled(text: str, *, simd: bool) -> bytes:
    """The WebAssembly of a C text, with or without instructions on four numbers at once."""
    if find_spec("ziglang") is None:
        raise UserError("To make an engine takes a compiler: pip install 'tutelage[page]'.")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "engine.c"), Path(folder, "engine.wasm")
        source.write_text(text)
        target = ("-target", "wasm32-freestanding", f"-mcpu=generic{'+simd128' if simd else ''}{FEATURES}")
        linked = [f"-Wl,{option}" for option in LINKED]
        zig = [sys.executable, "-m", "ziglang", "cc", *target, "-O3", *EXACT, "-w", "-nostdlib", *linked]
        environment = {"ZIG_LOCAL_CACHE_DIR": folder, "ZIG_GLOBAL_CACHE_DIR": folder}
        run = subprocess.run(
            [*zig, "-o", str(made), str(source)],
            capture_output=True,
            text=True,
            check=False,
            env=_environment() | environment,
        )
        if run.returncode:
            raise RuntimeError(f"The C compiler refuses an engine: {run.stderr[:2000]}")
        return made.read_bytes()


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)
