"""The numbers that the ACCEL paper prints: mean and standard error by env, preset and level.

Tables "Zero-Shot transfer to human-designed environments" (20,000 student updates; PAIRED and Minimax about 30,000),
its ablations (10,000 updates), the lava grids (1,000) and BipedalWalker (returns, 30,000) of Parker-Holder et al.
(2022), "Evolving Curricula with Regret-Based Environment Design".
"""

from __future__ import annotations

import re

from tutelage.statistics import Summary

MEAN = "mean"

# The paper's PLR is robust PLR. Its ACCEL† starts from random levels (accel-dr), its ACCEL‡ from empty rooms (accel).
_MAZE = """
    level           paired   minimax  dr       robust-plr accel-dr accel
    16Rooms         .63±.14  .01±.01  .87±.06  .95±.03    1.0±.00  1.0±.00
    16Rooms2        .53±.15  .00±.00  .53±.18  .49±.17    .62±.22  .92±.06
    SimpleCrossing  .55±.11  .11±.04  .57±.15  .87±.05    .92±.08  .84±.16
    FourRooms       .46±.06  .14±.03  .77±.10  .64±.04    .90±.08  .72±.07
    SmallCorridor   .37±.09  .14±.09  1.0±.00  .89±.05    .88±.11  1.0±.00
    LargeCorridor   .27±.08  .14±.09  .64±.05  .79±.13    .94±.05  1.0±.00
    Labyrinth       .45±.14  .00±.00  .45±.23  .55±.23    .97±.03  .86±.14
    Labyrinth2      .38±.12  .00±.00  .54±.18  .66±.18    1.0±.01  1.0±.00
    Maze            .02±.01  .00±.00  .43±.23  .54±.19    .52±.26  .72±.24
    Maze2           .37±.13  .00±.00  .49±.16  .74±.13    .93±.04  1.0±.00
    Maze3           .30±.12  .00±.00  .69±.19  .75±.12    .94±.06  .80±.10
    PerfectMazeM    .32±.06  .01±.00  .45±.10  .62±.09    .88±.12  .93±.07
    mean            .39±.03  .05±.01  .62±.05  .71±.04    .88±.04  .90±.03
"""

# At replay rate 0.9 and 10,000 updates; accel-dr-10k is ACCEL from random levels under these settings.
_MAZE_ABLATIONS = """
    level           accel-dr-10k  learned-editor  no-editor
    16Rooms         1.0±.00       .90±.07         .84±.06
    16Rooms2        .51±.28       .41±.19         .68±.18
    SimpleCrossing  .80±.05       .90±.10         .75±.05
    FourRooms       .85±.05       .88±.04         .88±.05
    SmallCorridor   .72±.10       .60±.17         .70±.18
    LargeCorridor   .91±.05       .56±.18         .63±.18
    Labyrinth       .98±.02       .99±.01         .67±.19
    Labyrinth2      .97±.03       .70±.15         .48±.20
    Maze            .78±.21       .57±.18         .15±.08
    Maze2           .50±.24       .65±.15         .23±.15
    Maze3           .79±.14       .95±.05         .56±.17
    mean            .79±.04       .74±.04         .58±.05
"""

# The paper's † draws each tile by itself; its ‡ (here -uniform) first draws the number of lava tiles.
_LAVA = """
    level             paired   minimax  dr       robust-plr  dr-uniform  robust-plr-uniform  accel
    Empty             .77±.03  .76±.02  .81±.03  .97±.03     .89±.05     .96±.04             1.0±.00
    10Tiles           .12±.03  .05±.01  .12±.02  .35±.18     .33±.15     .30±.05             .49±.07
    20Tiles           .06±.01  .11±.04  .06±.01  .15±.09     .23±.12     .25±.06             .35±.08
    LavaCrossingS9N1  .00±.00  .00±.00  .00±.00  .01±.01     .05±.05     .01±.00             .05±.04
"""

_BIPEDAL = """
    level      paired       minimax      alp-gmm      dr          robust-plr  accel-dr    accel
    Basic      206.5±30.3   154.3±59.2   301.5±11.6   261.9±19.3  304.1±1.8   316.9±2.1   318.1±1.0
    Hardcore   -47.2±10.6   -44.3±1.6    29.7±9.9     23.8±8.3    82.6±8.5    163.3±30.9  236.0±8.9
    Stairs     -27.4±12.1   -2.6±2.6     22.1±6.3     23.3±4.4    48.0±4.3    59.4±10.5   91.7±8.9
    PitGap     -68.2±9.7    -79.3±0.5    98.8±24.9    11.0±7.6    46.2±11.3   49.6±12.6   133.3±39.1
    Stump      -76.0±10.3   -65.0±18.4   -22.4±17.2   -5.4±5.5    7.5±6.4     44.6±49.8   188.8±10.9
    Roughness  -5.1±25.9    -1.2±7.7     44.7±11.6    52.3±9.0    126.7±7.3   211.7±21.5  248.9±12.3
    mean       -2.9±14.5    -6.3±24.6    79.1±17.5    61.1±12.6   102.5±13.0  140.9±23.0  202.8±13.6
"""


def _read(env: str, text: str) -> dict[str, dict[str, Summary]]:
    head, *rows = (line.split() for line in text.split("\n") if line.strip())
    columns = {f"{env}/{method}": {} for method in head[1:]}
    for name, *cells in rows:
        for column, cell in zip(columns.values(), cells, strict=True):
            column[_plain(name)] = Summary(*(float(x) for x in cell.split("±")))
    return columns


def _plain(level: str) -> str:
    """A level's name without what authors write differently: case, spaces, brackets."""
    return re.sub(r"[^a-z0-9]", "", level.lower())


PUBLISHED = _read("maze", _MAZE) | _read("maze", _MAZE_ABLATIONS) | _read("lava", _LAVA) | _read("bipedal", _BIPEDAL)


def published(preset: str | None, level: str) -> Summary | None:
    """What the paper prints for a preset (`maze/accel`) on a level, or on the `MEAN` of them."""
    return PUBLISHED.get(preset or "", {}).get(_plain(level))
