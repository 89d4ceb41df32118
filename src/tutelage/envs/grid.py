"""What grids of tiles share: rows of characters, plans of levels in the making, and a teacher's eye for them.

Tiles are numbered row by row. Some are blocked (by walls, or lava); one is the start and another the goal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from tutelage.env import TeacherObs

FLOOR, START, GOAL = ".", "S", "G"
UNPLACED = -1
KERNEL = 3

# MiniGrid's tile codes, type, colour and state, as the bytes of one number from the lowest.
UNSEEN_CODE, EMPTY_CODE, WALL_CODE, GOAL_CODE, LAVA_CODE, START_CODE = (
    kind + (colour << 8) for kind, colour in ((0, 0), (1, 0), (2, 5), (8, 1), (9, 0), (10, 0))
)
_BYTES = np.array([0, 8, 16], np.uint32)

Tiles = Bool[Array, "h w"]


def check_rows(rows: Any, *, kind: str, block: str, height: int, width: int) -> None:
    """Raises a `ValueError` that says what keeps `rows` from being a level with `block` as the mark of a block."""
    if not isinstance(rows, list | tuple) or not all(isinstance(row, str) for row in rows):
        raise ValueError(f"The rows of a {kind} level are a list of strings.")
    if len(rows) != height or any(len(row) != width for row in rows):
        raise ValueError(f"A {kind} level of this design space has {height} rows of {width} tiles each.")
    text = "".join(rows)
    if strange := set(text) - {block, FLOOR, START, GOAL}:
        raise ValueError(f"A {kind} level is written with {block!r}, '.', 'S' and 'G', not with {min(strange)!r}.")
    for mark, word in ((START, "start"), (GOAL, "goal")):
        if text.count(mark) != 1:
            raise ValueError(f"A {kind} level has exactly one {word} {mark!r}, not {text.count(mark)}.")


def read_rows(rows: Sequence[str], block: str) -> tuple[Bool[np.ndarray, "h w"], int, int]:
    """Blocks, start and goal. Everything but one `S`, one `G` and the blocks is floor."""
    text = np.array([list(row) for row in rows])
    start, goal = (int(np.flatnonzero(text == mark)[0]) for mark in (START, GOAL))
    return text == block, start, goal


def write_rows(blocks: ArrayLike, start: ArrayLike, goal: ArrayLike, block: str) -> list[str]:
    """The opposite of `read_rows`, one string a row."""
    text = np.where(np.asarray(blocks), block, FLOOR)
    text.flat[int(np.asarray(start))] = START
    text.flat[int(np.asarray(goal))] = GOAL
    return ["".join(row) for row in text]


class Plan(NamedTuple):
    """A level that may still lack its goal and its start, which are `UNPLACED` then."""

    blocks: Bool[Array, " tiles"]
    goal: Int[Array, ""]
    agent: Int[Array, ""]


class EditDraft(NamedTuple):
    """A level being edited, and the tiles that have been edited already."""

    plan: Plan
    edited: Bool[Array, " tiles"]


def empty_plan(tiles: int) -> Plan:
    """Floor without goal and start."""
    return Plan(jnp.zeros(tiles, bool), jnp.int32(UNPLACED), jnp.int32(UNPLACED))


def put(plan: Plan, loc: Int[Array, ""], block: Bool[Array, ""], goal: Bool[Array, ""], agent: Bool[Array, ""]) -> Plan:
    """Puts a block, the goal, the start or nothing on a tile. The start is not put on the goal."""
    blocks = plan.blocks.at[loc].set((plan.blocks[loc] | block) & ~(goal | agent))
    start = jnp.where(loc == plan.goal, UNPLACED, loc)
    return Plan(blocks, jnp.where(goal, loc, plan.goal), jnp.where(agent, start, plan.agent))


def edit_tile(
    draft: EditDraft, loc: Int[Array, ""], block: Bool[Array, ""], goal: Bool[Array, ""], agent: Bool[Array, ""]
) -> EditDraft:
    """Clears a tile and puts a block, the goal, the start or nothing there; a tile that comes again is left alone."""
    plan, fresh = draft.plan, ~draft.edited[loc]

    def after(old: Int[Array, ""], here: Bool[Array, ""]) -> Int[Array, ""]:
        return jnp.where(fresh & here, loc, jnp.where(fresh & (old == loc), UNPLACED, old))

    blocks = plan.blocks.at[loc].set(jnp.where(fresh, block, plan.blocks[loc]))
    return EditDraft(Plan(blocks, after(plan.goal, goal), after(plan.agent, agent)), draft.edited.at[loc].set(True))


def first_occurrences(values: Int[Array, " n"]) -> Bool[Array, " n"]:
    """Which values have not occurred before in the list."""
    earlier = np.tri(values.size, k=-1, dtype=bool)
    return ~jnp.any((values[:, None] == values[None, :]) & earlier, axis=1)


def random_tile(key: Key[Array, ""], among: Bool[Array, " tiles"]) -> Int[Array, ""]:
    """A uniformly random true tile of `among`, of which there must be one."""
    rank = jnp.cumsum(among)
    return jnp.argmax(rank > random.randint(key, (), 0, rank[-1])).astype(jnp.int32)


def shortest_path(free: Tiles, start: Int[Array, ""], goal: Int[Array, ""], spread: Callable[[Tiles], Tiles]) -> Tiles:
    """The tiles of one shortest path over free tiles, both ends included; none if there is no path.

    `spread` adds to tiles those that are one move away. Tiles are numbered by their moves from the start, and the path
    is gone back from the goal, each time to the first tile of the next smaller number.
    """
    moves = _moves_from(free, start, spread)
    end = _only(goal, free.shape)

    def back(path: tuple[Tiles, Tiles, Array]) -> tuple[Tiles, Tiles, Array]:
        passed, here, left = path
        near = spread(here) & (moves == left - 1)
        here = _only(jnp.argmax(near), free.shape)
        return passed | here, here, left - 1

    length = moves.reshape(-1)[goal]
    return lax.while_loop(lambda path: path[2] > 0, back, (end & (length >= 0), end, length))[0]


def _moves_from(free: Tiles, start: Int[Array, ""], spread: Callable[[Tiles], Tiles]) -> Int[Array, "h w"]:
    """How many moves each tile is away from the start; −1 where no path leads."""

    def flood(at: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        moves, n, _ = at
        new = spread(moves >= 0) & free & (moves < 0)
        return jnp.where(new, n, moves), n + 1, jnp.any(new)

    moves = jnp.where(_only(start, free.shape), 0, -1)
    return lax.while_loop(lambda at: at[2], flood, (moves, jnp.int32(1), jnp.bool_(True)))[0]


def _only(loc: Int[Array, ""], shape: tuple[int, ...]) -> Tiles:
    return (jnp.arange(shape[0] * shape[1]) == loc).reshape(shape)


def place(
    key: Key[Array, ""], blocks: Bool[Array, " tiles"], loc: Int[Array, ""], other: Int[Array, ""]
) -> tuple[Bool[Array, " tiles"], Int[Array, ""]]:
    """Puts an `UNPLACED` goal or start on a random free tile: no block, and not where the `other` of the two is.

    If blocks have left no tile free, a random one gives way.
    """
    apart = jnp.arange(blocks.size) != other
    free = apart & ~blocks
    found = random_tile(key, jnp.where(jnp.any(free), free, apart))
    loc = jnp.where(loc == UNPLACED, found, loc)
    return blocks.at[loc].set(False), loc


def place_both(key_goal: Key[Array, ""], key_agent: Key[Array, ""], plan: Plan) -> Plan:
    """`place`s the goal, then the start."""
    blocks, goal = place(key_goal, plan.blocks, plan.goal, plan.agent)
    blocks, agent = place(key_agent, blocks, plan.agent, goal)
    return Plan(blocks, goal, agent)


def picture(plan: Plan, height: int, width: int, block_code: int) -> UInt8[Array, "rows columns 3"]:
    """The whole map within a border of walls, in MiniGrid's tile codes."""
    tile = jnp.arange(height * width)
    code = jnp.where(plan.blocks, block_code, EMPTY_CODE)
    code = jnp.where(tile == plan.goal, GOAL_CODE, jnp.where(tile == plan.agent, START_CODE, code))
    return decode(jnp.pad(code.reshape(height, width), 1, constant_values=WALL_CODE))


def decode(codes: Int[Array, "*tiles"]) -> UInt8[Array, "*tiles 3"]:
    """MiniGrid's three numbers of each tile."""
    return (codes.astype(jnp.uint32)[..., None] >> _BYTES).astype(jnp.uint8)


class TeacherEye(eqx.Module):
    """Concatenates relu(conv(map / 10)), 128 filters of 3×3 without padding, an embedding of the step, and z as it is.

    The map of h×w tiles, border included, gives 128·(h − 2)·(w − 2) features.
    """

    kernel: Float[Array, "patch filters"]
    bias: Float[Array, " filters"]
    clock: Float[Array, "times features"]
    clock_bias: Float[Array, " features"]
    size: int = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, int],
        steps: int,
        z: int,
        *,
        filters: int = 128,
        features: int = 10,
        key: Key[Array, ""],
    ) -> None:
        """Xavier-uniform filters without bias; the embedding is U(±1/√n) throughout, with n = steps + 1 the times."""
        key_kernel, key_clock, key_bias = random.split(key, 3)
        bound = (steps + 1) ** -0.5
        self.kernel = xavier_kernel(key_kernel, filters)
        self.bias = jnp.zeros(filters)
        self.clock = random.uniform(key_clock, (steps + 1, features), minval=-bound, maxval=bound)
        self.clock_bias = random.uniform(key_bias, (features,), minval=-bound, maxval=bound)
        self.size = (shape[0] - KERNEL + 1) * (shape[1] - KERNEL + 1) * filters + features + z

    def __call__(self, obs: TeacherObs) -> Float[Array, " size"]:
        seen = jax.nn.relu(patches(obs.map / 10.0) @ self.kernel + self.bias)
        time = jax.nn.one_hot(obs.step, self.clock.shape[0]) @ self.clock + self.clock_bias
        return jnp.concatenate([seen.reshape(-1), time, obs.z])


class OnGrid:
    """What a teacher sees of a level that is drawn on a grid; the first part of a draft is its `Plan`."""

    height: int
    width: int
    steps: int
    block_code: int

    def look(self, draft: tuple[Any, ...]) -> UInt8[Array, "rows columns 3"]:
        """The whole map with its border."""
        return picture(draft[0], self.height, self.width, self.block_code)

    def encoder(self, key: Key[Array, ""], z: int) -> TeacherEye:
        """A convolution over the map, and the time step."""
        return TeacherEye((self.height + 2, self.width + 2), self.steps, z, key=key)


def xavier_kernel(key: Key[Array, ""], filters: int, channels: int = 3) -> Float[Array, "patch filters"]:
    """U(±√(6 / (fan in + fan out))) for a convolution of 3×3."""
    patch = KERNEL * KERNEL * channels
    bound = (6 / (patch + KERNEL * KERNEL * filters)) ** 0.5
    return random.uniform(key, (patch, filters), minval=-bound, maxval=bound)


def patches(image: Float[Array, "height width channels"]) -> Float[Array, "rows columns patch"]:
    """Every 3×3 patch of the image, flattened in the order row, column, channel of the kernel."""
    rows, columns = (n - KERNEL + 1 for n in image.shape[:2])
    shifted = [image[i : i + rows, j : j + columns] for i in range(KERNEL) for j in range(KERNEL)]
    return jnp.concatenate(shifted, axis=-1)
