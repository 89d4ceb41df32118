"""Who descends from whom: ancestors, branches and family trees of a seed's levels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from tutelage.runs.archive import Admitted


@dataclass(frozen=True, eq=False)
class Pedigree:
    """All levels that one seed ever kept, 0 … N − 1 by admission; a parent of −1 is the generator."""

    admitted: Admitted
    seed: int

    @cached_property
    def places(self) -> Int[np.ndarray, " N"]:
        """Where they stand in the archive."""
        return np.flatnonzero(self.admitted.seed == self.seed)

    @cached_property
    def parent(self) -> Int[np.ndarray, " N"]:
        """Each level's parent."""
        return np.array([self._levels.get(i, -1) for i in self.admitted.parent[self.places].tolist()], int)

    @cached_property
    def _levels(self) -> dict[int, int]:
        """The level of each id."""
        return {i: n for n, i in enumerate(self.admitted.id[self.places].tolist())}

    @cached_property
    def root(self) -> Int[np.ndarray, " N"]:
        """Each level's first ancestor, by jumps that double in length."""
        root = np.where(self.parent < 0, np.arange(len(self.parent)), self.parent)
        while not np.array_equal(further := root[root], root):
            root = further
        return root

    def numbers(self, ids: Sequence[int] | np.ndarray) -> Int[np.ndarray, " n"]:
        """The levels of some ids, without those that are not on record."""
        return np.array([self._levels[i] for i in np.asarray(ids, int).tolist() if i in self._levels], int)

    def line(self, level: int) -> list[int]:
        """From the first ancestor to the level itself."""
        line = [level]
        while (parent := int(self.parent[line[-1]])) >= 0:
            line.append(parent)
        return line[::-1]


def concentration(pedigree: Pedigree, ids: np.ndarray, ancestors: int = 10) -> float:
    """The share of some levels that descends from their `ancestors` most fertile first ancestors; NaN of none."""
    levels = pedigree.numbers(ids)
    counts = np.sort(np.unique(pedigree.root[levels], return_counts=True)[1])[::-1]
    return float(counts[:ancestors].sum() / len(levels)) if len(levels) else float("nan")


@dataclass(frozen=True, eq=False)
class Tree:
    """The ancestors of some related levels (`leaves`, best first), from the first one that all share."""

    pedigree: Pedigree
    leaves: tuple[int, ...]

    @cached_property
    def lines(self) -> list[list[int]]:
        """The line of descent of each leaf."""
        return [self.pedigree.line(leaf) for leaf in self.leaves]

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """The children of every level in the tree that are in it too."""
        found: defaultdict[int, dict[int, None]] = defaultdict(dict)
        for line in self.lines:
            for parent, child in pairwise(line):
                found[parent][child] = None
        return {parent: list(children) for parent, children in found.items()}

    def generation(self, level: int) -> int:
        """How many edits a level is away from the generator."""
        return int(self.pedigree.admitted.generation[self.pedigree.places[level]])

    @cached_property
    def deepest(self) -> int:
        """The leaf of highest generation, the better one of equals."""
        return max(self.leaves, key=self.generation)

    def rows(self) -> dict[int, float]:
        """A height for every level: leaves one apart, a parent in the middle of its children."""
        heights: dict[int, float] = {}
        taken = 0
        for line in sorted(self.lines, key=lambda line: line):
            if line[-1] not in self.children:
                heights[line[-1]] = float(taken)
                taken += 1
        depth = {level: n for line in self.lines for n, level in enumerate(line)}
        for level in sorted(self.children, key=lambda level: depth[level], reverse=True):
            heights[level] = float(np.mean([heights[child] for child in self.children[level]]))
        return heights

    def siblings(self, n: int = 3) -> tuple[int, list[int]] | None:
        """The earliest ancestor with `n` surviving branches, and the deepest leaf of each of the `n` deepest."""
        lines = sorted(self.lines, key=len, reverse=True)
        for ancestor in sorted(self.children, key=self.generation):
            branches: dict[int, int] = {}
            for line in lines:
                if ancestor in line[:-1]:
                    branches.setdefault(line[line.index(ancestor) + 1], line[-1])
            if len(branches) >= n:
                return ancestor, list(branches.values())[:n]
        return None


def largest_family(pedigree: Pedigree, ids: np.ndarray, most: int = 24) -> Tree | None:
    """Those of some levels, best first, that share the most common first ancestor; at most so many.

    None if none of them was edited.
    """
    levels = pedigree.numbers(ids)
    edited = levels[pedigree.parent[levels] >= 0]
    if not len(edited):
        return None
    roots, counts = np.unique(pedigree.root[edited], return_counts=True)
    family = edited[pedigree.root[edited] == roots[np.argmax(counts)]]
    return Tree(pedigree, tuple(int(level) for level in family[:most]))
