"""Where arrays lie: small ones in C's own variables, large ones in static places that several share.

A place is shared by arrays that are not needed at the same time: none is read after another's first line. Every
function of a module uses the same places, since no two of them run at once. So an engine needs as much memory as the
largest moment of its functions, and next to no stack.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tutelage.page.translate.program import Declared, Line, Loop, Step
from tutelage.page.translate.values import IN_MEMORY

SMALL = 256  # bytes of an array that the compiler may keep in registers

_NAME = re.compile(r"\ba\d+\b")


class Places:
    """The static places of a module, the largest first."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def use(self, sizes: Sequence[int]) -> None:
        """Makes room for a function that needs places of these sizes, the largest first."""
        count = max(len(sizes), len(self.sizes))
        padded = [[*s, *[0] * (count - len(s))] for s in (list(sizes), self.sizes)]
        self.sizes = [max(a, b) for a, b in zip(*padded, strict=True)]

    def text(self) -> str:
        """Their declarations."""
        return "\n".join(f"static _Alignas(16) unsigned char m{k}[{size}];" for k, size in enumerate(self.sizes))


@dataclass
class _Life:
    """From which line to which an array is needed."""

    declared: Declared
    first: int
    last: int


def written(lines: Sequence[Line], places: Places) -> str:
    """A function's lines as text, with its arrays in their places."""
    lines = _without_unread(lines)
    text = [_text(line) for line in lines]
    place = _shared([life for life in _lives(lines, text) if life.declared.bytes > SMALL], places)
    out = []
    for line, words in zip(lines, text, strict=True):
        if not isinstance(line, Declared):
            out.append(words)
        elif line.array in place:
            out.append(f"{IN_MEMORY[line.dtype]}*const {line.array}=({IN_MEMORY[line.dtype]}*)m{place[line.array]};")
        else:
            out.append(f"{IN_MEMORY[line.dtype]} {line.array}[{line.length}];")
    return "\n".join(out)


def _text(line: Line) -> str:
    if isinstance(line, str):
        return line
    if isinstance(line, Declared):
        return ""
    loops = "".join(f"for(int {i}=0;{i}<{n};{i}++)" for i, n in zip(line.index, line.lengths, strict=True))
    return f"{loops}{{{' '.join(f'{step.found} {step.kept}' for step in line.steps)}}}"


def _without_unread(lines: Sequence[Line]) -> list[Line]:
    """Without what a loop keeps in an array that no other line reads."""
    mentions = Counter(name for line in lines for name in set(_NAME.findall(_text(line))))

    def needed(step: Step) -> Step:
        return step if mentions[step.array] > 1 else replace(step, kept="")

    kept = [Loop(line.lengths, [*map(needed, line.steps)]) if isinstance(line, Loop) else line for line in lines]
    left = {name for line in kept for name in _NAME.findall(_text(line))}
    return [line for line in kept if not isinstance(line, Declared) or line.array in left]


def _lives(lines: Sequence[Line], text: Sequence[str]) -> list[_Life]:
    """The arrays' lives. What is needed in a loop that began after its declaration is needed until the loop's end."""
    lives: dict[str, _Life] = {}
    blocks = _blocks(text)
    for at, (line, words) in enumerate(zip(lines, text, strict=True)):
        if isinstance(line, Declared):
            lives[line.array] = _Life(line, at, at)
        for name in set(_NAME.findall(words)) & lives.keys():
            life = lives[name]
            around = [end for begin, end in blocks[at] if begin > life.first]
            life.last = max(life.last, at, *around)
    return list(lives.values())


def _blocks(text: Sequence[str]) -> list[tuple[tuple[int, int], ...]]:
    """The first and the last line of each block of braces that a line is in."""
    opened: list[int] = []
    within: list[tuple[int, ...]] = []
    ends: dict[int, int] = {}
    for at, words in enumerate(text):
        for brace in re.findall(r"[{}]", words):
            if brace == "{":
                opened.append(at)
            else:
                ends[opened.pop()] = at
        within.append(tuple(opened))
    return [tuple((begin, ends[begin]) for begin in set(begins)) for begins in within]


def _shared(lives: Sequence[_Life], places: Places) -> dict[str, int]:
    """The place of each array: the largest first, in a place where all are that live at other times."""
    taken: list[list[_Life]] = []
    found: dict[str, int] = {}
    for life in sorted(lives, key=lambda life: (-life.declared.bytes, life.first)):
        free = (k for k, others in enumerate(taken) if all(_apart(life, other) for other in others))
        k = next(free, len(taken))
        taken[k : k + 1] = [[*(taken[k] if k < len(taken) else []), life]]
        found[life.declared.array] = k
    places.use([max(life.declared.bytes for life in others) for others in taken])
    return found


def _apart(a: _Life, b: _Life) -> bool:
    return a.last < b.first or b.last < a.first
