"""Held-out mazes: the zero-shot test suite of the ACCEL paper, its larger perfect mazes, and a small one of our own."""

from __future__ import annotations

from tutelage.env import Suite, TestLevel
from tutelage.envs.maze.draws import FourRooms, Layout, PerfectMaze, SimpleCrossing
from tutelage.envs.maze.env import Maze, Reward

PAPER = (
    *("16Rooms", "16Rooms2", "SimpleCrossing", "FourRooms", "SmallCorridor", "LargeCorridor"),
    *("Labyrinth", "Labyrinth2", "Maze", "Maze2", "Maze3", "PerfectMazeM"),
)
LARGER = ("PerfectMazeS", "PerfectMazeL", "PerfectMazeXL")
VALIDATION = ("16Rooms", "Labyrinth", "Maze")

PERFECT_SIDES = {"PerfectMazeS": 9, "PerfectMazeM": 19, "PerfectMazeL": 49, "PerfectMazeXL": 99}

LAYOUTS = {
    "16Rooms": """
        ...#..#..#...
        .S.......#...
        ...#..#......
        #.###.##.###.
        ...#.........
        ......#..#...
        ##.#.##.###.#
        ...#.....#...
        ...#..#......
        .####.##.#.##
        ...#..#..#...
        ......#....G.
        ...#.....#...
    """,
    "16Rooms2": """
        ...#.....#...
        .S....#..#...
        ...#..#..#...
        ####.##.###.#
        ...#..#......
        ......#..#...
        #.#####.#####
        ...#..#..#...
        ...#.........
        ##.##.##.####
        ...#..#..#...
        ......#....G.
        ...#..#..#...
    """,
    "Labyrinth": """
        .............
        .###########.
        .#.........#.
        .#.#######.#.
        .#.#.....#.#.
        .#.#.###.#.#.
        .#.#.#G#.#.#.
        .#.#.#.#.#.#.
        .#...#...#.#.
        .#########.#.
        .....#.....#.
        ####.#.#####.
        S....#.......
    """,
    "Labyrinth2": """
        S#...........
        .#.#########.
        .#.#.......#.
        .#.#.#####.#.
        .#.#.#...#.#.
        ...#.#.#.#.#.
        ####.#G#.#.#.
        ...#.###.#.#.
        .#.#.....#.#.
        .#.#######.#.
        .#.........#.
        .###########.
        .............
    """,
    "Maze": """
        .....#S...#..
        .###.####.##.
        .#...........
        .########.###
        ........#....
        ######.#####.
        ....#..#.....
        .##...##.####
        ..#.#..#...#.
        #.#.##.###.#.
        #.#..#...#...
        #.##.###.###.
        ...#..G#.#...
    """,
    "Maze2": """
        ...#.#....#..
        .#.#.####...#
        .#........#..
        .########.###
        ...#..#.#.#.G
        ##.#.##.#.#..
        S#.#....#.##.
        .#.##.###..#.
        .#..#..###.#.
        .##.##.#.#.#.
        .#...#.#.#.#.
        .#.#.#.#.#.#.
        ...#...#.....
    """,
    "Maze3": """
        ...S#.#......
        .####.#.####.
        .#....#.#....
        ...####.#.#.#
        ##.#....#.#..
        ...#.##.#.##.
        .#.#.#..#..#G
        .#.#.#.###.##
        .#...#.#.#...
        .###.#.#.###.
        .#...#.#...#.
        .#.###.#.#.#.
        .#...#...#...
    """,
    "SmallCorridor": """
        .............
        .#.#.#.#.#.#.
        .#.#.#.#.#.#.
        .#.#.#.#.#.#.
        .#.#.#.#.#.#.
        .#g#g#g#g#g#.
        S###########.
        .#g#g#g#g#g#.
        .#.#.#.#.#.#.
        .#.#.#.#.#.#.
        .#.#.#.#.#.#.
        .#.#.#.#.#.#.
        .............
    """,
    "LargeCorridor": """
        ...................
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#g#g#g#g#g#g#g#g#.
        S#################.
        .#g#g#g#g#g#g#g#g#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        .#.#.#.#.#.#.#.#.#.
        ...................
    """,
}

SMALL_LAYOUTS = {
    "SBend": """
        S......
        ######.
        .......
        .......
        .######
        .......
        ......G
    """,
    "Spiral": """
        S......
        ######.
        .....#.
        .###.#.
        .#G..#.
        .#####.
        .......
    """,
    "FourSmallRooms": """
        ...#...
        .S.....
        ...#...
        #.###.#
        ...#...
        .....G.
        ...#...
    """,
    "Choice": """
        ...#...
        .#.#.#.
        .#...#.
        S###.#.
        .#.#.#.
        .#.#.#.
        ...#G#.
    """,
    "Zigzag": """
        S#...#.
        .#.#.#.
        .#.#.#.
        .#.#.#.
        .#.#.#.
        .#.#.#.
        ...#..G
    """,
    "SmallLabyrinth": """
        .......
        .#####.
        .#...#.
        .#.#G#.
        .#.###.
        .#.....
        S######
    """,
}


def suites(view: int = 5, reward: Reward = "minigrid") -> dict[str, Suite]:
    """The suites by name; in all of them the student has the `view` and the `reward` it was trained with."""
    levels = {level.name: level for level in _levels(view, reward)}
    names = {"maze": PAPER + LARGER, "maze-12": PAPER, "validation": VALIDATION, "small": tuple(SMALL_LAYOUTS)}
    return {suite: tuple(levels[name] for name in members) for suite, members in names.items()}


def _levels(view: int, reward: Reward) -> Suite:
    """Every test level, with its time limit: 2·(side + 2)² unless its MiniGrid original has another."""

    def env(side: int, max_steps: int | None = None, see_through: bool = True) -> Maze:
        return Maze(side, side, view, max_steps or 2 * (side + 2) ** 2, see_through, reward, redraw_direction=False)

    layouts = {name: Layout(tuple(text.split())) for name, text in (LAYOUTS | SMALL_LAYOUTS).items()}
    crossing, rooms = SimpleCrossing(), FourRooms()
    return (
        *(TestLevel(name, env(len(layout.rows)), layout) for name, layout in layouts.items()),
        *(TestLevel(name, env(side), PerfectMaze(side)) for name, side in PERFECT_SIDES.items()),
        TestLevel("SimpleCrossing", env(crossing.side, 4 * (crossing.side + 2) ** 2, see_through=False), crossing),
        TestLevel("FourRooms", env(rooms.side, 100, see_through=False), rooms),
    )
