"""Random spanning trees of a square lattice, on the device."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int


def lattice_edges(side: int) -> Int[np.ndarray, "edges 2"]:
    """The pairs of neighbouring nodes of a side × side lattice, nodes numbered row by row."""
    nodes = np.arange(side * side).reshape(side, side)
    across = np.stack([nodes[:, :-1], nodes[:, 1:]], axis=-1).reshape(-1, 2)
    down = np.stack([nodes[:-1], nodes[1:]], axis=-1).reshape(-1, 2)
    return np.concatenate([across, down])


def kruskal(edges: Int[Array, "edges 2"], nodes: int) -> Bool[Array, " edges"]:
    """Which edges Kruskal's algorithm keeps, taking them in the given order and skipping those that close a loop.

    These are the minimum spanning tree for the edges' positions as weights. Weights being distinct, that tree is
    unique, and Borůvka's algorithm finds it in at most log₂ nodes rounds: every component takes its first outgoing
    edge, and the components so joined become one.
    """
    position = jnp.arange(edges.shape[0])
    none = position.size

    def unfinished(carry: tuple[Array, Array]) -> Bool[Array, ""]:
        component, _ = carry
        return jnp.any(component != component[0])

    def join(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        component, tree = carry
        a, b = component[edges[:, 0]], component[edges[:, 1]]
        outgoing = jnp.where(a != b, position, none)
        first = jnp.full(nodes, none).at[a].min(outgoing).at[b].min(outgoing)
        neighbour = jnp.where(first < none, (a + b)[first] - jnp.arange(nodes), jnp.arange(nodes))
        return _roots(neighbour)[component], tree.at[first].set(True, mode="drop")

    start = jnp.arange(nodes), jnp.zeros(none, bool)
    return lax.while_loop(unfinished, join, start)[1]


def _roots(neighbour: Int[Array, " nodes"]) -> Int[Array, " nodes"]:
    """One representative for each group of nodes that point at one another.

    Following first edges ends in a pair that point at each other; the smaller of the pair is the root.
    """
    node = jnp.arange(neighbour.size)
    mutual = neighbour[neighbour] == node
    parent = jnp.where(mutual & (node < neighbour), node, neighbour)
    return lax.fori_loop(0, neighbour.size.bit_length(), lambda _, p: p[p], parent)
