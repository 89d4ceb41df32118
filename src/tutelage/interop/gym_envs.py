"""Gymnasium environments of mazes, lava and the walker, for agents of other libraries; a step needs no JAX.

    import gymnasium
    import tutelage.interop.gym_envs  # registers them

    env = gymnasium.make("tutelage/Maze-v0", size=13, render_mode="human")
    obs, info = env.reset(seed=0, options={"suite_level": "Labyrinth"})

Each step is a call of an engine: the domain's own functions as WebAssembly (`tutelage.page`). `make` takes the domain's
fields by name, such as `size` for mazes. Which levels are played is said once for all episodes, to `make`, or for one,
in the options of `reset`, by one of

- `level`: a level as JSON, as `tutelage levels` writes it; a walker's may be without a seed, and draws one;
- `suite_level`: a held-out level by name, in its own env with its own time limit;
- `parameters`: for the walker, some of its parameters by name, the others making no obstacles, and a random seed.

Without, each episode has a new level of the domain's generator. `info` of `reset` holds the level as JSON, that of a
last step whether the episode counts as solved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from tutelage.env import Box, DesignSpace, Discrete, Domain
from tutelage.envs.bipedal import PoetDomain, WalkerDomain
from tutelage.envs.bipedal import render as walker_pictures
from tutelage.envs.bipedal.level import NAMES
from tutelage.envs.bipedal.physics.ground import unpaved
from tutelage.envs.lava import LavaDomain, LavaLevel, LavaState
from tutelage.envs.lava import render as lava_pictures
from tutelage.envs.maze import MazeDomain, MazeState
from tutelage.envs.maze import render as maze_pictures
from tutelage.errors import UserError, shown
from tutelage.page import engines
from tutelage.page.engines import Found
from tutelage.page.runtime import Record

Choice = Mapping[str, Any]  # one of the options
OPTIONS = ("level", "suite_level", "parameters")
SEEDS = 2**32
FLAT = dict.fromkeys(NAMES, 0.0) | {"stair_steps": 1.0}  # parameters without obstacles


class Play:
    """An env of an engine, with the records of one episode."""

    def __init__(self, found: Found) -> None:
        self._engine, self._functions = found.engine.open(), found.functions
        self.records: dict[str, Record] = {}
        self.reset, self.step = self.ready("reset"), self.ready("step")
        if "limit" in self.records:
            self.records["limit"][""] = found.limit

    def __getitem__(self, record: str) -> Record:
        return self.records[record]

    def ready(self, role: str) -> Callable[[], None]:
        """A function, ready to be called, of the records that are called as its arguments and results."""
        name = self._functions[role]
        function = self._engine.manifest["functions"][name]
        pairs = [*function["in"], *function["out"]]
        self.records |= {record: self._engine.make(kind) for record, kind in pairs if record not in self.records}
        return self._engine.bound(name, *(self.records[record] for record, _ in pairs))


class EngineEnv(gymnasium.Env[Any, Any]):
    """A domain as Gymnasium has environments; what is seen and shown is a subclass's matter."""

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 10}  # noqa: RUF012, as its base has
    domain: ClassVar[type[Domain]]

    def __init__(self, render_mode: str | None = None, **chosen: Any) -> None:
        self._choice = {name: chosen.pop(name) for name in OPTIONS if chosen.get(name) is not None}
        self._domain = self.domain(**chosen)
        self._design: DesignSpace = self._domain.design()
        self._suites = {test.name: test for suite in self._domain.suites().values() for test in suite}
        self._level = jax.eval_shape(self._design.sample, jax.random.key(0))
        self._own = self._play = Play(engines.for_domain(self._domain))
        self._held_out: dict[str, Play] = {}
        self._return = 0.0
        self._window = Window(type(self).__name__, self.metadata["render_fps"]) if render_mode == "human" else None
        self.render_mode = render_mode
        actions = self._domain.env().actions
        self.action_space = _space_of(actions)
        self.observation_space = self.seeing()

    def seeing(self) -> spaces.Space[Any]:
        """The space of observations."""
        raise NotImplementedError

    def seen(self, obs: Record) -> Any:
        """An observation, in copies."""
        raise NotImplementedError

    def picture(self, play: Play) -> np.ndarray:
        """What this moment looks like."""
        raise NotImplementedError

    def reset(self, *, seed: int | None = None, options: Choice | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode on the level that the options choose, or those that `make` was given."""
        super().reset(seed=seed)
        choice = dict(options or self._choice)
        if len(choice) > 1 or choice.keys() - set(OPTIONS):
            raise UserError(f"An episode is chosen by one of {', '.join(OPTIONS)}, not by {shown(choice)}.")
        self._play = self._chosen(choice)
        self._draw_key()
        self._play.reset()
        self._return = 0.0
        self._show()
        level = jax.tree.unflatten(jax.tree.structure(self._level), self._play["level"].values())
        return self.seen(self._play["obs"]), {"level": self._design.to_json(level)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step."""
        play = self._play
        play["action"][""] = action
        play.step()
        outcome = play["outcome"]
        reward = float(outcome["reward"])
        terminated, truncated = (bool(outcome[name]) for name in ("terminated", "truncated"))
        self._return += reward
        self._show()
        info = {"solved": self._is_solved()} if terminated or truncated else {}
        return self.seen(play["obs"]), reward, terminated, truncated, info

    def render(self) -> np.ndarray | None:
        """A picture of this moment, or, for a human, a window with it."""
        return self.picture(self._play) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Closes the window."""
        if self._window:
            self._window.close()

    def _is_solved(self) -> bool:
        """Whether the episode counts as solved."""
        judge = self._play.ready("solved")
        self._play["return"][""] = self._return
        judge()
        return bool(self._play["solved"][""])

    def _chosen(self, choice: Choice) -> Play:
        """The play of an episode, with its level."""
        if "suite_level" in choice:
            play = self._of_suite(choice["suite_level"])
            self._draw_key(play)
            play.ready("draw")()
            return play
        play = self._own
        if choice:
            play["level"].load(self.level_of(choice))
        else:
            self._draw_key(play)
            play.ready("sample")()
        return play

    def level_of(self, choice: Choice) -> Any:
        """The level that is given as JSON."""
        if "parameters" in choice:
            raise UserError(
                f"The levels of {self._domain.name} have no parameters: choose one by level or suite_level."
            )
        return self._read(choice["level"])

    def _read(self, data: Any) -> Any:
        try:
            return self._design.from_json(data)
        except ValueError as error:
            raise UserError(str(error)) from None

    def _of_suite(self, name: str) -> Play:
        if name not in self._suites:
            raise UserError(
                f"{self._domain.name} has no held-out level {shown(name)}; it has {', '.join(self._suites)}."
            )
        if name not in self._held_out:
            self._held_out[name] = Play(engines.for_level(self._suites[name], self._domain))
        return self._held_out[name]

    def _draw_key(self, play: Play | None = None) -> None:
        (play or self._play)["key"][""] = self.np_random.integers(SEEDS, size=2, dtype=np.uint32)

    def _show(self) -> None:
        if self._window:
            self._window.show(self.picture(self._play))


class MazeEnv(EngineEnv):
    """Mazes; the student sees the tiles before it, as MiniGrid encodes them, and which way it faces."""

    domain = MazeDomain

    def seeing(self) -> spaces.Space[Any]:
        """`image` `[column, row, channel]` and `direction`."""
        shape = self._own["obs"]["image"].shape
        return spaces.Dict({"image": spaces.Box(0, 10, shape, np.uint8), "direction": spaces.Discrete(4)})

    def seen(self, obs: Record) -> Any:
        """Copies of both."""
        return {"image": obs["image"].copy(), "direction": np.int64(obs["direction"])}

    def picture(self, play: Play) -> np.ndarray:
        """The maze, lit where the student looks."""
        play.ready("scene")()
        state = MazeState(*play["state"].values())
        tile = max(4, min(24, 480 // (2 + max(state.walls.shape))))
        return maze_pictures.draw_state(state, seen=play["scene"]["seen"], tile=tile)


class LavaEnv(EngineEnv):
    """Lava grids; the student sees what NetHack shows: glyphs of the room and around itself, and the status line."""

    domain = LavaDomain

    def seeing(self) -> spaces.Space[Any]:
        """`glyphs`, `crop` and `blstats`."""
        leaves = self._own["obs"].layout.leaves
        return spaces.Dict({x.path: spaces.Box(*_ends(x.dtype), x.shape, np.dtype(x.dtype).type) for x in leaves})

    def seen(self, obs: Record) -> Any:
        """Copies of all three."""
        return {leaf.path: obs[leaf.path].copy() for leaf in obs.layout.leaves}

    def picture(self, play: Play) -> np.ndarray:
        """The room in its stone."""
        states = jax.tree.map(lambda x: x[None], LavaState(*play["state"].values()))
        return lava_pictures.film(LavaLevel(*play["level"].values()), states)[0]


class WalkerEnv(EngineEnv):
    """Terrains; the student sees the 24 numbers of gymnasium's BipedalWalker."""

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 50}  # noqa: RUF012, as its base has
    domain = WalkerDomain

    def seeing(self) -> spaces.Space[Any]:
        """24 numbers, all of which stay far within these ends."""
        return spaces.Box(-50.0, 50.0, self._own["obs"][""].shape, np.float32)

    def seen(self, obs: Record) -> Any:
        """All of them."""
        return obs[""].copy()

    def picture(self, play: Play) -> np.ndarray:
        """The walker on its terrain."""
        state = play["state"]
        pose = np.stack([state["bodies.x"], state["bodies.y"], state["bodies.angle"]], axis=-1)
        lidar = play["obs"][""][None, -10:]
        return walker_pictures.film(unpaved(jnp.asarray(state["ground"])), pose[None], lidar=lidar)[0]

    def level_of(self, choice: Choice) -> Any:
        """A level that may be without a seed; or parameters."""
        given = choice.get("parameters", choice.get("level"))
        if not isinstance(given, Mapping):
            raise UserError(f"A walker's level is a mapping of parameters by name, not {shown(given)}.")
        names = self._design.names  # pyright: ignore[reportAttributeAccessIssue]
        flat = {name: FLAT[name] for name in names} if "parameters" in choice else {}
        seed = int(self.np_random.integers(SEEDS))
        return self._read(flat | {"seed": seed} | dict(given))


class PoetEnv(WalkerEnv):
    """Terrains of POET's five parameters."""

    domain = PoetDomain


class Window:
    """A window that shows one picture after another at their pace."""

    def __init__(self, title: str, pace: int) -> None:
        self._title, self._pace, self._screen = title, pace, None

    def show(self, picture: np.ndarray) -> None:
        """The next picture."""
        pygame = _pygame()
        size = picture.shape[1::-1]
        if self._screen is None or self._screen.get_size() != size:
            pygame.display.init()
            self._screen, self._clock = pygame.display.set_mode(size), pygame.time.Clock()
            pygame.display.set_caption(self._title)
        self._screen.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._pace)

    def close(self) -> None:
        """The end."""
        if self._screen is not None:
            _pygame().quit()
            self._screen = None


def _pygame() -> Any:
    try:
        import pygame
    except ImportError as error:
        raise gymnasium.error.DependencyNotInstalled("To watch takes pygame: pip install 'tutelage[gym]'.") from error
    return pygame


def _space_of(actions: Discrete | Box) -> spaces.Space[Any]:
    if isinstance(actions, Discrete):
        return spaces.Discrete(actions.n)
    return spaces.Box(actions.low, actions.high, (actions.size,), np.float32)


def _ends(dtype: str) -> tuple[int, int]:
    kind = np.iinfo(dtype)
    return int(kind.min), int(kind.max)


ENVS: dict[str, type[EngineEnv]] = {"Maze": MazeEnv, "Lava": LavaEnv, "Walker": WalkerEnv, "PoetWalker": PoetEnv}


def register() -> None:
    """Makes them known to Gymnasium as `tutelage/Maze-v0` and so on; to import this module does."""
    for name, env in ENVS.items():
        id_ = f"tutelage/{name}-v0"
        if id_ not in gymnasium.registry:
            gymnasium.register(id_, entry_point=f"{env.__module__}:{env.__name__}")


register()
