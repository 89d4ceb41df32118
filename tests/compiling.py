"""How programs are compiled in tests; to be imported before JAX is."""

import os
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# As environment variables, so that xdist's workers and the processes that tests start have
# them too: each program is compiled once, whichever of them comes first.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

# The programs of tests run for moments; XLA compiles them three times as fast if it does not optimise them, and in
# three quarters of that time if each is one module of LLVM. `XLA_FLAGS= make test` compiles as for a user.
# Two flags are given to JAX 0.10 alone: newer ones do not know the first of them, and an unknown one is fatal. The last
# flag is what XLA does by itself in JAX 0.10: so that no test's program depends on which tests came before it.
QUICK = ["--xla_backend_optimization_level=0"]
if version("jaxlib").startswith("0.10."):
    QUICK += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
QUICK.append("--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1024")
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK))
