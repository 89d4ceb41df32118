"""Walkers' policies as pure functions: Gaussian networks, and gymnasium's heuristic.

A policy maps a `Gait` (what it remembers), an observation and the noise of a step to an action and a new gait.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32

HEURISTIC = "heuristic"

STAY, PUT_DOWN, PUSH_OFF = 1, 2, 3  # what the heuristic does: stand on one leg, put the other down, push itself off
SPEED = 0.29  # as observed; it falls forward if faster
KNEE = 0.1  # the angle, as observed, of a knee that carries


class Network(NamedTuple):
    """Two hidden layers of tanh units; mean and logarithmic deviation of an action."""

    w0: Any
    b0: Any
    w1: Any
    b1: Any
    w2: Any
    b2: Any
    log_std: Any

    def act(self, obs: Any, noise: Any, xp: Any = jnp) -> Any:
        """Actions `[..., 4]`, clipped to what motors can do; `xp` is NumPy or JAX's."""
        hidden = xp.tanh(xp.tanh(obs @ self.w0 + self.b0) @ self.w1 + self.b1)
        return xp.clip(hidden @ self.w2 + self.b2 + xp.exp(self.log_std) * noise, -1, 1)


def load(path: Path) -> Network:
    """A network from its file."""
    with np.load(path) as arrays:
        return Network(*(np.float32(arrays[name]) for name in Network._fields))


class Gait(NamedTuple):
    """What the heuristic remembers."""

    phase: Int32[Array, "*n"]
    moving: Int32[Array, "*n"]  # the leg that is not to carry, 0 or 1
    knee: Float[Array, "*n"]  # the angle to be of the knee that carries


def first_gait(shape: tuple[int, ...] = ()) -> Gait:
    """How the heuristic begins."""
    return Gait(jnp.full(shape, STAY), jnp.zeros(shape, jnp.int32), jnp.full(shape, KNEE))


class _Leg(NamedTuple):
    """A leg as the observation shows it."""

    hip: Array
    hip_speed: Array
    knee: Array
    knee_speed: Array
    ground: Array


def heuristic(gait: Gait, obs: Float[Array, "24"]) -> tuple[Gait, Float[Array, "4"]]:
    """gymnasium's walker without a sense of balance: its next gait and its action. A target of 0 is none."""
    legs = _Leg(*obs[4:9]), _Leg(*obs[9:14])
    swings = gait.moving == 0
    moving, carrying = (_either(swings, *pair) for pair in (legs, legs[::-1]))
    speed = obs[2]

    hip, knee, support = 0.0, 0.0, 0.0  # targets of the moving leg's hip and knee and of the other knee
    angle, phase = gait.knee, gait.phase
    stays = phase == STAY
    slow_or_fast = 0.03 + jnp.where(speed > SPEED, 0.03, 0.0)
    angle = jnp.where(stays, jnp.minimum(angle + slow_or_fast, KNEE), angle)
    hip, knee, support = (jnp.where(stays, a, b) for a, b in ((1.1, hip), (-0.6, knee), (angle, support)))
    phase = jnp.where(stays & (carrying.hip < 0.10), PUT_DOWN, phase)

    puts = phase == PUT_DOWN
    hip, knee, support = (jnp.where(puts, a, b) for a, b in ((0.1, hip), (KNEE, knee), (angle, support)))
    lands = puts & (moving.ground != 0)
    angle = jnp.where(lands, jnp.minimum(moving.knee, KNEE), angle)
    phase = jnp.where(lands, PUSH_OFF, phase)

    pushes = phase == PUSH_OFF
    knee, support = jnp.where(pushes, angle, knee), jnp.where(pushes, 1.0, support)
    changes = pushes & ((carrying.knee > 0.88) | (speed > 1.2 * SPEED))
    phase = jnp.where(changes, STAY, phase)

    todo = _towards(moving, hip, knee, obs), _towards(carrying, jnp.zeros(()), support, obs)
    action = jnp.concatenate(_either(swings, todo, todo[::-1]))
    turned = jnp.where(changes, 1 - gait.moving, gait.moving)
    return Gait(phase, turned, angle), jnp.clip(0.5 * action, -1, 1)


def _either(first: Bool[Array, ""], yes, no):
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), yes, no)


def _towards(leg: _Leg, hip: Array, knee: Array, obs: Float[Array, "24"]) -> Float[Array, "2"]:
    """What a leg's motors are to do: towards the targets, the head upright, the body's rise damped."""
    at_hip = jnp.where(hip != 0, 0.9 * (hip - leg.hip) - 0.25 * leg.hip_speed, 0.0)
    at_knee = jnp.where(knee != 0, 4.0 * (knee - leg.knee) - 0.25 * leg.knee_speed, 0.0)
    return jnp.stack([at_hip + 0.9 * obs[0] + 1.5 * obs[1], at_knee - 15.0 * obs[3]])


class Policy(NamedTuple):
    """A network, or the heuristic, as one type, so that both can be in one batch."""

    network: Network
    heuristic: Bool[Array, ""]

    def act(self, gait: Gait, obs: Float[Array, "n 24"], noise: Float[Array, "n 4"]) -> tuple[Gait, Array]:
        """Actions of n walkers and their gaits afterwards."""
        new, steps = jax.vmap(heuristic)(gait, obs)
        return new, jnp.where(self.heuristic, steps, self.network.act(obs, noise))


def together(networks: list[Network]) -> Policy:
    """The networks, and after them the heuristic, on an axis."""
    empty = jax.tree.map(np.zeros_like, networks[0])
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *networks, empty)
    return Policy(stacked, jnp.arange(len(networks) + 1) == len(networks))
