"""The door to GPU kernels: what is behind it is used when it is asked for, and done without where it is missing."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from bipedal.gpu import some_gpu
from tutelage import gpu

NAMES = [(module, name) for module, names in gpu.PRIVATE.items() for name in names]
ONE = jax.ShapeDtypeStruct((8,), jnp.float32)
DOUBLE = gpu.kernel_call(lambda x, out: out.__setitem__(..., 2 * x[...]), "double", 1, [ONE])


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_private_name_is_there(module, name) -> None:
    assert hasattr(gpu.private(module), name), f"JAX {jax.__version__} has no {module}.{name}: see tutelage/gpu.py"


def test_others_are_not_taken_unsaid() -> None:
    with pytest.raises(AssertionError, match="not said"):
        gpu.private("jax.interpreters.mlir")


def test_pallas_calls_kernels_by_the_name_that_is_used_here() -> None:
    with some_gpu():
        text = jax.jit(DOUBLE).trace(ONE).lower(lowering_platforms=("cuda",)).as_text()
    assert f"custom_call @{gpu.TARGET}" in text, f"XLA calls kernels by another name than {gpu.TARGET}"
    assert gpu.CONFIG in text, f"Pallas hands kernels on elsewhere than in {gpu.CONFIG}"


def test_a_kernel_is_found_and_can_be_read() -> None:
    with some_gpu():
        code = gpu.text(DOUBLE, [ONE])
    with gpu.parsed(code) as module:
        assert "tt.func public @double" in str(module.operation)


def test_what_is_traced_once_stays_so() -> None:
    """Whatever types numbers have where it is called."""
    doubled = gpu.traced(lambda x: [2 * x], [jax.ShapeDtypeStruct((), jnp.float32)])
    with jax.enable_x64(True):
        assert doubled(jnp.float32(3))[0].dtype == jnp.float32


def test_whether_kernels_can_be_compiled_is_known_while_tracing(monkeypatch) -> None:
    """Which is when an env asks."""
    answers = []

    def ask(x):
        answers.append(gpu.refusal())
        return x

    def refused(*_, **__):
        raise NotImplementedError("an unknown GPU\nand more of it")

    with some_gpu():
        jax.eval_shape(ask, jax.ShapeDtypeStruct((), jnp.float32))
        monkeypatch.setattr(gpu.pallas(), "pallas_call", lambda *_, **__: refused)
        jax.eval_shape(ask, jax.ShapeDtypeStruct((1,), jnp.float32))
    assert answers == ["", "an unknown GPU"]


@pytest.mark.parametrize("missing", gpu.PRIVATE)
def test_without_a_module_xla_does_the_work_and_one_sentence_says_so(monkeypatch, capsys, missing) -> None:
    monkeypatch.setitem(sys.modules, missing, None)  # as if it could not be imported
    gpu.kernels_run_here.cache_clear()
    with some_gpu():
        assert [gpu.kernels_run_here() for _ in range(2)] == [missing == gpu.CORE] * 2
    gpu.kernels_run_here.cache_clear()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (missing != gpu.CORE)
    assert all("XLA does their work" in line and missing.rpartition(".")[2] in line for line in lines)


PLAYS = """
import sys
import jax
import tutelage
from tutelage.envs.bipedal import WalkerDomain
from tutelage.envs.maze import MazeDomain

config = tutelage.Config(
    MazeDomain(size=5, max_steps=8), tutelage.DR(), ppo=tutelage.PPO(epochs=1, minibatches=1),
    slots=2, steps=8, updates=1, eval_every=0,
)
tutelage.train(config, sys.argv[1])
domain, key = WalkerDomain(), jax.random.key(0)
env = domain.env()
state, _ = env.reset(key, domain.design().sample(key))
jax.eval_shape(env.step, key, state, jax.numpy.zeros(4))
behind = ("jax.experimental.pallas", "jax._src.pallas.triton", "jaxlib.triton", "jaxlib.mlir.dialects.gpu")
print([name for name in sys.modules if name.startswith(behind)])
"""


def test_nothing_behind_the_door_is_imported_on_a_cpu(tmp_path) -> None:
    """Not even after a maze's training and a walker's step."""
    command = [sys.executable, "-c", PLAYS, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
