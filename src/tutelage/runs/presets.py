"""The one table of what there is: domains, methods, and presets with every hyperparameter of the paper.

A new domain or method is entered here and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tutelage.curricula.accel import ACCEL
from tutelage.curricula.accel_parallel import ParallelACCEL
from tutelage.curricula.alp_gmm import ALPGMM
from tutelage.curricula.buffer import BufferConfig
from tutelage.curricula.cenie import CENIE
from tutelage.curricula.classroom import Curriculum
from tutelage.curricula.dr import DR
from tutelage.curricula.learned_editor import LearnedEditor
from tutelage.curricula.minimax import Minimax
from tutelage.curricula.ncc import NCC
from tutelage.curricula.no_editor import NoEditor
from tutelage.curricula.paired import PAIRED
from tutelage.curricula.plr import PLR
from tutelage.curricula.plr_parallel import ParallelPLR
from tutelage.curricula.poet import POET
from tutelage.curricula.remidi import ReMiDi
from tutelage.curricula.repaired import REPAIRED
from tutelage.curricula.robust_plr import RobustPLR
from tutelage.curricula.sfl import SFL
from tutelage.curricula.teacher import Teacher
from tutelage.curricula.traced import TRACED
from tutelage.env import Domain
from tutelage.envs.bipedal import PoetDomain, WalkerDomain
from tutelage.envs.lava import LavaDomain
from tutelage.envs.maze import MazeDomain
from tutelage.errors import UserError, unknown
from tutelage.runs.config import Config
from tutelage.student.es import ES
from tutelage.student.nets import StudentConfig
from tutelage.student.ppo import PPO
from tutelage.student.prediction import Prediction

DOMAINS: dict[str, type[Domain]] = {
    "maze": MazeDomain,
    "lava": LavaDomain,
    "bipedal": WalkerDomain,
    "bipedal-poet": PoetDomain,
}

METHODS: dict[str, type[Curriculum]] = {
    "dr": DR,
    "plr": PLR,
    "robust-plr": RobustPLR,
    "accel": ACCEL,
    "no-editor": NoEditor,
    "learned-editor": LearnedEditor,
    "paired": PAIRED,
    "minimax": Minimax,
    "repaired": REPAIRED,
    "plr-parallel": ParallelPLR,
    "accel-parallel": ParallelACCEL,
    "sfl": SFL,
    "ncc": NCC,
    "traced": TRACED,
    "cenie": CENIE,
    "remidi": ReMiDi,
    "alp-gmm": ALPGMM,
    "poet": POET,
}

# Mazes: Table of hyperparameters of the ACCEL paper; fill ratio, temperature and staleness of PLR from its code.
_MAZE_BUFFER = BufferConfig(capacity=4000, temperature=0.3, staleness=0.3, min_fill=0.5, replay_rate=0.8)
_PLR_BUFFER = replace(_MAZE_BUFFER, replay_rate=0.5)
_RANDOM_MAZES = MazeDomain(generator="variable", blocks=60)
_EMPTY_MAZES = MazeDomain(generator="empty", blocks=0)

# What the reference implementation does otherwise, as far as its execution shows (docs/choices.md).
_SET_ORDER = replace(_EMPTY_MAZES, edit_order="set")
_RESET_MAZES = MazeDomain(generator="uniform", blocks=60)
_REFERENCE_SCORES: dict[str, Any] = {"score_over": "last", "admission": "first"}
_REFERENCE_ACCEL = ACCEL(_MAZE_BUFFER, parents="lowest", **_REFERENCE_SCORES)

# Learned teachers: the reference implementation's own settings, which are for 25 walls, always the same number. The
# paper took its PAIRED and Minimax columns from earlier work with such a design space, and its budget of 250M steps.
_25_WALLS = MazeDomain(generator="fixed", blocks=25)
_WITH_MEMORY = Teacher(StudentConfig(hidden=256, head=32))
_WITHOUT_MEMORY = Teacher(StudentConfig(memory=False, hidden=0, head=32))  # the map shows all there is to know
_REPAIRED_BUFFER = replace(_MAZE_BUFFER, temperature=0.1, replay_rate=0.95)

# Parallel variants and learnability: what their own papers' code sets for mazes. Every rollout of a parallel variant
# replays once it may.
_60_WALLS = MazeDomain(generator="fixed", blocks=60)
_PARALLEL_BUFFER = replace(_MAZE_BUFFER, staleness=0.5, replay_rate=1.0, gate="fixed")
_PARALLEL_PPO = PPO(learning_rate=3e-4, discount=0.999, bootstrap=True)
_SFL_UPDATES = 4577  # in which 300 million steps would be trained on; the code stops at the last whole search
_SFL_PPO = PPO(
    learning_rate=2.5e-4,
    decay=_SFL_UPDATES,
    discount=0.99,
    epochs=4,
    minibatches=4,
    clip=0.04,
    bootstrap=True,
    time_limit="end",
    normalise="minibatch",
)
_NCC_PPO = PPO(
    learning_rate=1.4658e-3,
    decay=_SFL_UPDATES,
    max_grad_norm=0.25,
    discount=0.995,
    gae_lambda=0.98,
    epochs=1,
    entropy_coef=1e-3,
    bootstrap=True,
    time_limit="end",
)  # and Adam with the power 0.6 of the second moment in place of its square root, which is not built
_SFL_MAZES = replace(_60_WALLS, redraw_direction=False)  # a level has a direction to start in

_DEMO = Config(
    env=MazeDomain(size=7, max_steps=64, generator="empty", blocks=0),
    method=ACCEL(buffer=BufferConfig(capacity=256, min_fill=0.5, replay_rate=0.8), edits=3),
    student=StudentConfig(hidden=64),
    ppo=PPO(learning_rate=1e-3, entropy_coef=1e-3, discount=0.98),
    slots=32,
    steps=64,
    updates=2500,
    log_every=25,
    eval_every=100,
    checkpoint_every=250,
    archive_every=750,
)

# Lava grids: the same table. It has no fill ratio: half of 10,000 slots, as for mazes, would never be filled from empty
# rooms, of which there are but 49·48 = 2,352. A tenth takes about 41 cycles of exploring.
_LAVA_BUFFER = BufferConfig(capacity=10_000, temperature=0.3, staleness=0.3, min_fill=0.1, replay_rate=0.9)
_LAVA_PLR_BUFFER = replace(_LAVA_BUFFER, replay_rate=0.5)
_LAVA = LavaDomain(generator="binomial", placements=20, eye="nethack")
_UNIFORM_LAVA = replace(_LAVA, generator="uniform")
_EMPTY_LAVA = replace(_LAVA, generator="empty", placements=0)
_NETHACK = StudentConfig(hidden=256, head=0)  # as in the NetHack baseline: actor and critic are one layer each
_NETHACK_CRITIC = replace(_NETHACK, critic="uniform")


def _lava(env: LavaDomain, method: Curriculum, student: StudentConfig = _NETHACK) -> Config:
    return Config(env, method, student, updates=1000)


# What may have kept the paper's students from learning lava within 1,000 updates, of which nothing is certain.
_LAVA_SUSPECTS: dict[str, tuple[str, dict[str, Any], StudentConfig]] = {
    "hero": ("the hero drawn anew in each game", {"hero": "drawn"}, _NETHACK),
    "penalty": ("every step costs", {"penalty": "every-step"}, _NETHACK),
    "hero-penalty": ("the hero drawn anew, and every step costs", {"hero": "drawn", "penalty": "every-step"}, _NETHACK),
    "crop": ("the NetHack network's own crop and critic", {"crop": "off-centre"}, _NETHACK_CRITIC),
}


def _lava_presets(name: str, what: str, env: LavaDomain, method: Curriculum) -> dict[str, tuple[str, Config]]:
    """A method on lava as MiniHack has it, and with each suspect."""
    found = {f"lava/{name}": (what, _lava(env, method))}
    for suspect, (how, changes, student) in _LAVA_SUSPECTS.items():
        found[f"lava/{name}-{suspect}"] = (f"lava/{name}, {how}", _lava(replace(env, **changes), method, student))
    return found


_LAVA_SMALL = Config(
    env=LavaDomain(generator="empty", placements=0),
    method=ACCEL(buffer=BufferConfig(capacity=1000, min_fill=0.5, replay_rate=0.8), edits=5),
    student=StudentConfig(memory=False, hidden=64),
    ppo=PPO(learning_rate=1e-3, entropy_coef=1e-2, discount=0.98),
    slots=32,
    steps=100,
    updates=1000,
    log_every=20,
    eval_every=100,
    checkpoint_every=200,
    archive_every=0,
)

# BipedalWalker: the same table, with the rollout, fill ratio and value loss of its code.
_WALKER_BUFFER = BufferConfig(capacity=1000, temperature=0.1, staleness=0.5, min_fill=0.5, replay_rate=0.9)
_WALKER_PLR_BUFFER = replace(_WALKER_BUFFER, replay_rate=0.5)
_WALKER_PPO = PPO(
    learning_rate=3e-4,
    discount=0.99,
    gae_lambda=0.9,
    minibatches=32,
    clip_value=False,
    entropy_coef=1e-3,
    normalise_returns=True,
)
_WALKER_STUDENT = StudentConfig(memory=False, hidden=64, separate=True)
_WALKER_TEACHER = Teacher(  # of which the paper's table says nothing: all from its code
    _WALKER_STUDENT,
    replace(_WALKER_PPO, epochs=8, minibatches=4, entropy_coef=0.01, normalise_returns=False),
    z=10,
)
_WALKER_TRACED: dict[str, Any] = {"prediction": 1.5, "co_learnability": 0.6, "model": Prediction("l2", steps=1)}


def _walker(env: WalkerDomain, method: Curriculum, updates: int = 30_000) -> Config:
    return Config(env, method, _WALKER_STUDENT, _WALKER_PPO, slots=16, steps=2048, updates=updates)


def _normalised(teacher: Teacher) -> Teacher:
    return replace(teacher, ppo=replace(teacher.ppo, normalise_returns=True))


def _walker_presets(name: str, domain: type[WalkerDomain], accel_updates: int) -> dict[str, tuple[str, Config]]:
    full, easy = domain(generator="full"), domain(generator="easy")
    accel = ACCEL(_WALKER_BUFFER, edits=3)
    return {
        f"{name}/dr": ("domain randomisation over the full ranges", _walker(full, DR(_WALKER_PLR_BUFFER))),
        f"{name}/robust-plr": ("PLR⊥ over the full ranges", _walker(full, RobustPLR(_WALKER_PLR_BUFFER))),
        f"{name}/accel": ("ACCEL from easy terrain (ACCEL of the paper)", _walker(easy, accel, accel_updates)),
        f"{name}/traced": (
            "TRACED: ACCEL by regret, prediction errors and what learning on a level does for others",
            _walker(easy, TRACED(_WALKER_BUFFER, edits=3, **_WALKER_TRACED), accel_updates),
        ),
        f"{name}/cenie": (
            "CENIE: ACCEL that replays levels for their novelty to the student too",
            _walker(easy, CENIE(replace(_WALKER_BUFFER, novelty=0.5), edits=3), accel_updates),
        ),
        f"{name}/accel-dr": ("ACCEL from random terrain", _walker(full, accel, accel_updates)),
        f"{name}/paired": (
            "PAIRED: the teacher learns to maximise the regret between two students",
            _walker(full, PAIRED(_WALKER_PLR_BUFFER, teacher=_normalised(_WALKER_TEACHER))),
        ),
        f"{name}/minimax": (
            "Minimax: the teacher learns to make the student fail",
            _walker(full, Minimax(_WALKER_PLR_BUFFER, teacher=_WALKER_TEACHER)),
        ),
        f"{name}/alp-gmm": ("ALP-GMM over the full ranges", _walker(full, ALPGMM(_WALKER_PLR_BUFFER))),
    }


# POET: the settings of its paper, where that and its code disagree; terrain in which a stump is one cell long.
_POETS = PoetDomain(stumps="shorten")
_CONTROLLER = StudentConfig(memory=False, hidden=40, separate=True, critic="none")


def _evolved(env: WalkerDomain, method: Curriculum, updates: int) -> Config:
    """A student, or many, that learn by evolution strategies from 512 walkers an update."""
    return Config(
        env, method, _CONTROLLER, ppo=None, es=ES(), slots=512, steps=2000, updates=updates, checkpoint_every=100
    )


PRESETS: dict[str, tuple[str, Config]] = {
    "maze/dr": ("domain randomisation, 0–60 blocks", Config(_RANDOM_MAZES, DR(_PLR_BUFFER))),
    "maze/plr": ("prioritised level replay, gradients on all levels", Config(_RANDOM_MAZES, PLR(_PLR_BUFFER))),
    "maze/robust-plr": ("PLR⊥, gradients on replayed levels only", Config(_RANDOM_MAZES, RobustPLR(_PLR_BUFFER))),
    "maze/accel": ("ACCEL from empty rooms (ACCEL‡ of the paper)", Config(_EMPTY_MAZES, ACCEL(_MAZE_BUFFER))),
    "maze/accel-dr": ("ACCEL from random levels (ACCEL† of the paper)", Config(_RANDOM_MAZES, ACCEL(_MAZE_BUFFER))),
    "maze/dr-reference": (
        "domain randomisation as released: the simulator's random resets, a new level after every episode",
        Config(_RESET_MAZES, DR(_PLR_BUFFER, new_level="episode")),
    ),
    "maze/robust-plr-reference": (
        "PLR⊥ as released: the first episode's score admits, the last one's stays",
        Config(_RANDOM_MAZES, RobustPLR(_PLR_BUFFER, **_REFERENCE_SCORES)),
    ),
    "maze/accel-reference": (
        "ACCEL from empty rooms as released: edits in a set's order, of four parents, scores as above",
        Config(_SET_ORDER, _REFERENCE_ACCEL),
    ),
    "maze/accel-reference-f32": (
        "the one before, with full float32 products",
        Config(_SET_ORDER, _REFERENCE_ACCEL, StudentConfig(products="float32")),
    ),
    "maze/no-editor": (
        "ablation: new random levels in place of edited ones, 10,000 updates",
        Config(_RANDOM_MAZES, NoEditor(replace(_MAZE_BUFFER, replay_rate=0.9)), updates=10_000),
    ),
    "maze/learned-editor": (
        "ablation: ACCEL from random levels with an editor that learns, 10,000 updates",
        Config(
            _RANDOM_MAZES,
            LearnedEditor(replace(_MAZE_BUFFER, replay_rate=0.9), editor=_WITHOUT_MEMORY),
            updates=10_000,
        ),
    ),
    "maze/paired": (
        "PAIRED: the teacher learns to maximise the regret between two students, 25 blocks",
        Config(_25_WALLS, PAIRED(_PLR_BUFFER, teacher=_WITH_MEMORY), updates=30_000),
    ),
    "maze/paired-stable": (
        "PAIRED with entropy bonuses, its two students imitating one another a little, 60 blocks",
        Config(
            _60_WALLS,
            PAIRED(_PLR_BUFFER, teacher=replace(_WITH_MEMORY, ppo=PPO(entropy_coef=0.05))),
            ppo=PPO(entropy_coef=0.005, imitation_coef=0.1),
            updates=30_000,
        ),
    ),
    "maze/paired-population": (
        "PAIRED with three antagonists, of which the best on a level counts, 25 blocks",
        Config(_25_WALLS, PAIRED(_PLR_BUFFER, teacher=_WITH_MEMORY, antagonists=3), updates=30_000),
    ),
    "maze/minimax": (
        "Minimax: the teacher learns to make the student fail, 25 blocks",
        Config(_25_WALLS, Minimax(_PLR_BUFFER, teacher=_WITHOUT_MEMORY), ppo=PPO(entropy_coef=0.01), updates=30_000),
    ),
    "maze/repaired": (
        "REPAIRED: PAIRED whose students learn from replayed levels only, 25 blocks",
        Config(_25_WALLS, REPAIRED(_REPAIRED_BUFFER, "maxmc", teacher=_WITHOUT_MEMORY), updates=30_000),
    ),
    "maze/plr-parallel": (
        "PLR‖: new and replayed levels in one rollout of 64 slots, 60 blocks",
        Config(_60_WALLS, ParallelPLR(_PARALLEL_BUFFER, "maxmc"), ppo=_PARALLEL_PPO, updates=30_000),
    ),
    "maze/accel-parallel": (
        "ACCEL‖: new, replayed and edited levels in one rollout of 96 slots, from empty rooms",
        Config(
            _EMPTY_MAZES,
            ParallelACCEL(_PARALLEL_BUFFER, "maxmc", edits=20),
            ppo=replace(_PARALLEL_PPO, learning_rate=1e-4, gae_lambda=0.98, entropy_coef=1e-3),
            updates=30_000,
        ),
    ),
    "maze/sfl": (
        "SFL: half the slots train on the most learnable of 25,000 random levels, 60 blocks",
        Config(_SFL_MAZES, SFL(), StudentConfig(activation="relu"), _SFL_PPO, slots=256, updates=4500),
    ),
    "maze/ncc": (
        "NCC: levels drawn from a distribution that climbs learnability, 60 blocks",
        Config(_SFL_MAZES, NCC(), StudentConfig(activation="relu"), _NCC_PPO, slots=256, updates=4577),
    ),
    "maze/traced": (
        "TRACED: ACCEL by regret, prediction errors and what learning on a level does for others",
        Config(_EMPTY_MAZES, TRACED(_MAZE_BUFFER, model=Prediction(scale=10.0))),
    ),
    "maze/cenie": (
        "CENIE: ACCEL that replays levels for their novelty to the student too",
        Config(_EMPTY_MAZES, CENIE(replace(_MAZE_BUFFER, novelty=0.5))),
    ),
    "maze/remidi": (
        "ReMiDi: robust PLR with four buffers one after another, each for what the ones before leave open, 60 blocks",
        Config(
            _SFL_MAZES,
            ReMiDi(replace(_MAZE_BUFFER, capacity=256, temperature=1.0), "maxmc"),
            ppo=PPO(learning_rate=1e-3, decay=24_000, bootstrap=True),
            updates=24_000,
        ),
    ),
    "maze/accel-diverse": (
        "ACCEL that replays levels for how unlike the others they are too",
        Config(_EMPTY_MAZES, ACCEL(replace(_MAZE_BUFFER, novelty=0.3))),
    ),
    "maze/accel-extinction": (
        "ACCEL that loses half of its levels every 1,000 student updates",
        Config(_EMPTY_MAZES, ACCEL(_MAZE_BUFFER, extinction_every=1000)),
    ),
    "maze/demo": ("ACCEL on 7×7 mazes, small enough for a laptop: what `tutelage demo` trains", _DEMO),
    **_lava_presets("dr", "domain randomisation, lava or not by a coin (†)", _LAVA, DR(_LAVA_PLR_BUFFER)),
    "lava/dr-uniform": ("domain randomisation, 0–20 lava tiles (‡)", _lava(_UNIFORM_LAVA, DR(_LAVA_PLR_BUFFER))),
    **_lava_presets("robust-plr", "PLR⊥, lava or not by a coin (†)", _LAVA, RobustPLR(_LAVA_PLR_BUFFER)),
    "lava/robust-plr-uniform": ("PLR⊥, 0–20 lava tiles (‡)", _lava(_UNIFORM_LAVA, RobustPLR(_LAVA_PLR_BUFFER))),
    "lava/paired": (
        "PAIRED: the teacher learns to maximise the regret between two students",
        _lava(_LAVA, PAIRED(_LAVA_PLR_BUFFER, teacher=_WITH_MEMORY)),
    ),
    "lava/minimax": (
        "Minimax: the teacher learns to make the student fail",
        _lava(_LAVA, Minimax(_LAVA_PLR_BUFFER, teacher=_WITHOUT_MEMORY)),
    ),
    **_lava_presets(
        "accel",
        "ACCEL from empty rooms, with an editor that learns (the paper's)",
        _EMPTY_LAVA,
        LearnedEditor(_LAVA_BUFFER, editor=_WITHOUT_MEMORY),
    ),
    "lava/accel-random": ("ACCEL from empty rooms, random edits", _lava(_EMPTY_LAVA, ACCEL(_LAVA_BUFFER))),
    "lava/traced": (
        "TRACED from empty rooms, random edits",
        _lava(_EMPTY_LAVA, TRACED(_LAVA_BUFFER, model=Prediction(scale=0.0))),
    ),
    "lava/cenie": (
        "CENIE from empty rooms, random edits",
        _lava(_EMPTY_LAVA, CENIE(replace(_LAVA_BUFFER, novelty=0.5))),
    ),
    "lava/small": ("ACCEL from empty rooms with a small student: minutes on a laptop's CPU", _LAVA_SMALL),
    **_walker_presets("bipedal", WalkerDomain, accel_updates=30_000),
    **_walker_presets("bipedal-poet", PoetDomain, accel_updates=50_000),
    "bipedal-poet/poet": (
        "POET: pairs of terrain and specialist, by evolution strategies",
        _evolved(_POETS, POET(), 25_200),
    ),
    "bipedal-poet/es": (
        "POET's control: one student by evolution strategies, on terrain of the full ranges or of your own",
        _evolved(_POETS, DR(BufferConfig(capacity=20), score="learnability"), 16_000),
    ),
}


def preset(env: str, method: str, /, **changes: Any) -> Config[Any, Any]:
    """The configuration called `env/method`, with any of its fields changed."""
    known = methods_of(env)
    name = f"{env}/{method}"
    if name not in PRESETS:
        if method in METHODS and not isinstance(DOMAINS[env]().design(), METHODS[method].needs):
            raise UserError(misfit(method, METHODS[method].needs, DOMAINS[env]()))
        raise UserError(unknown(f"method {method!r} for {env}", method, known))
    return replace(PRESETS[name][1], **changes)


def methods_of(env: str) -> list[str]:
    """The methods that there are presets of on an env, which must be one of the table."""
    if env not in DOMAINS:
        raise UserError(unknown(f"env {env!r}", env, DOMAINS))
    return [name.partition("/")[2] for name in PRESETS if name.startswith(f"{env}/")]


def misfit(name: str, needs: type | tuple[type, ...], env: Domain) -> str:
    """Why a method cannot run on an env, which methods can, and where this one could."""
    needs = needs if isinstance(needs, tuple) else (needs,)
    design = env.design()
    able = [n for n, m in METHODS.items() if isinstance(design, m.needs)]
    where = [n for n, domain in DOMAINS.items() if isinstance(domain().design(), needs)]
    return (
        f"{name} cannot run on {env.name}: it needs a design space of the kind "
        f"{' or '.join(kind.__name__ for kind in needs)}. {env.name} can be trained with {', '.join(able)}; "
        f"{name} runs on {', '.join(where) or 'no env of the table'}."
    )


def method_name(method: Curriculum) -> str:
    """The name under which a method stands in the table, or its class's for one of your own."""
    return next((name for name, cls in METHODS.items() if type(method) is cls), type(method).__name__)
