"""Evolution strategies: a student learns from how its perturbed copies fare (Salimans et al. 2017), as in POET.

Everything is said of the parameters as one vector θ ∈ Rⁿ. A student update plays M antithetic pairs θ ± σε_k,
ε_k ~ N(0, I), and follows the estimate g of the gradient of the mean return around θ:

    u = rank/(2M − 1) − ½                     over all 2M returns together, rank 0 the worst
    g = 1/(Mσ) · Σ_k (u_k⁺ − u_k⁻) ε_k

Nothing but keys is kept of the noise: ε_k follows from the key of the update and k wherever it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, Int, Key, PyTree

from tutelage.student.controller import Crowd
from tutelage.student.learning import Learner, Lesson
from tutelage.student.rollout import Rollout, mean_return

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # of Adam
AT_ONCE = 32  # perturbations that are made anew at a time, when a gradient is summed up

Vector = Float[Array, " n"]


@dataclass(frozen=True)
class ES:
    """How the student learns, if by evolution strategies."""

    name: ClassVar[str] = "es"

    learning_rate: float = 0.01
    """Adam's step size at first."""
    learning_rate_decay: float = 0.9999
    """By how much it is multiplied after every update."""
    learning_rate_floor: float = 0.001
    """It decays no further than this."""
    sigma: float = 0.1
    """σ, the standard deviation of a perturbation, at first."""
    sigma_decay: float = 0.999
    """By how much it is multiplied after every update."""
    sigma_floor: float = 0.01
    """It decays no further than this."""
    weight_decay: float = 0.01
    """Weight of −½|θ|² in what is maximised."""
    levels: int = 1
    """Different levels that an update of a single student is made on, each by as many perturbed students."""

    notes = ("es/deviation", "es/norm", "es/grad_norm", "es/learning_rate", "es/sigma")
    """Spread of the perturbed students' returns, norms of θ and g, and what has decayed how far."""

    next_values = False
    """Values play no part."""

    has_critic = False
    """None that would learn."""

    def __post_init__(self):
        if self.levels < 1:
            raise ValueError(f"`levels` must be at least 1, not {self.levels}.")
        for name in ("learning_rate", "sigma"):
            if not 0 < getattr(self, f"{name}_floor") <= getattr(self, name):
                raise ValueError(f"`{name}` must be positive, and so must `{name}_floor`, which is no larger.")
            if not 0 < getattr(self, f"{name}_decay") <= 1:
                raise ValueError(f"`{name}_decay` must lie in (0, 1].")
        if self.weight_decay < 0:
            raise ValueError(f"`weight_decay` must not be negative, as {self.weight_decay} is.")

    def together(self, slots: int) -> int:
        """As many as share a level."""
        return slots // self.levels

    def check(self, student: PyTree, steps: int, slots: int) -> None:
        """Refuses slots that are not so many antithetic pairs on every level."""
        if slots % (2 * self.levels):
            raise ValueError(
                f"With es, two slots play a perturbation and its opposite on one level: `slots` must be a multiple of "
                f"{2 * self.levels}, twice `es.levels`, not {slots}."
            )

    def begin(self, key: Key[Array, ""], student: PyTree) -> Learner:
        """A learner that has not learned yet; from the key comes all its noise."""
        return Learner(student, Evolution(jax.random.fold_in(key, 0), Moments.zero(flat(student))))

    def players(self, learner: Learner, slots: int) -> Crowd:
        """θ + σε₀, θ − σε₀, θ + σε₁, …: one in every slot."""
        evolution: Evolution = learner.optimiser
        theta, unflatten = ravel_pytree(learner.student)
        sigma, key = self.sigma_after(evolution.moments.count), evolution.key_of_update
        one = lambda k: jax.vmap(unflatten)(antithetic(theta, sigma, perturbation(key, k, theta.size)))  # noqa: E731
        pairs = jax.vmap(one)(jnp.arange(slots // 2))
        return Crowd.of(jax.tree.map(lambda x: x.reshape(slots, *x.shape[2:]), pairs))

    def appraise(self, learner: Learner, r: Rollout) -> tuple[Learner, Float[Array, "T P"], Float[Array, "T P"]]:
        """Nothing is expected, and so nothing is an advantage."""
        return learner, jnp.zeros_like(r.reward), jnp.zeros_like(r.reward)

    def learn(
        self, key: Key[Array, ""], learner: Learner, lesson: Lesson
    ) -> tuple[Learner, dict[str, Float[Array, ""]]]:
        """One step of Adam along the estimate, from a rollout of `players` in which each slot ended an episode."""
        evolution: Evolution = learner.optimiser
        theta, unflatten = ravel_pytree(learner.student)
        sigma = self.sigma_after(evolution.moments.count)
        returns = mean_return(lesson.episodes)
        gradient = estimate(evolution.key_of_update, returns, sigma, theta.size)
        noted = self.noted(theta, gradient, returns, evolution.moments)
        theta, moments = self.ascend(theta, gradient, evolution.moments)
        return Learner(unflatten(theta), replace(evolution, moments=moments)), noted

    def rate_after(self, updates: Int[Array, "*N"]) -> Float[Array, "*N"]:
        """Adam's step size."""
        return jnp.maximum(self.learning_rate * self.learning_rate_decay**updates, self.learning_rate_floor)

    def sigma_after(self, updates: Int[Array, "*N"]) -> Float[Array, "*N"]:
        """The standard deviation of a perturbation."""
        return jnp.maximum(self.sigma * self.sigma_decay**updates, self.sigma_floor)

    def ascend(self, theta: Vector, gradient: Vector, moments: Moments) -> tuple[Vector, Moments]:
        """Adam (Kingma & Ba 2015) along g − λθ, its corrections of bias part of the step size."""
        direction, count = gradient - self.weight_decay * theta, moments.count + 1
        mean = BETA1 * moments.mean + (1 - BETA1) * direction
        square = BETA2 * moments.square + (1 - BETA2) * direction**2
        step = self.rate_after(moments.count) * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
        return theta + step * mean / (jnp.sqrt(square) + EPSILON), Moments(mean, square, count)

    def climb(self, theta: Vector, gradient: Vector) -> Vector:
        """One step along g − λθ, of the first step size and without moments."""
        return theta + self.learning_rate * (gradient - self.weight_decay * theta)

    def noted(
        self, theta: Vector, gradient: Vector, returns: Float[Array, " P"], moments: Moments
    ) -> dict[str, Float[Array, ""]]:
        """What is noted of an update that begins with these."""
        rates = self.rate_after(moments.count), self.sigma_after(moments.count)
        norms = jnp.linalg.norm(theta), jnp.linalg.norm(gradient)
        return dict(zip(self.notes, (returns.std(), *norms, *rates), strict=True))


class Moments(eqx.Module):
    """Adam's state, of one student or of many stacked."""

    mean: Float[Array, "*N n"]
    square: Float[Array, "*N n"]
    count: Int[Array, "*N"]
    """Updates since it began, on which step size and σ depend."""

    @staticmethod
    def zero(theta: Vector) -> Moments:
        """Before the first update."""
        return Moments(jnp.zeros_like(theta), jnp.zeros_like(theta), jnp.int32(0))


class Evolution(eqx.Module):
    """What a learner keeps between updates."""

    key: Key[Array, ""]
    moments: Moments

    @property
    def key_of_update(self) -> Key[Array, ""]:
        """From which the noise of the next update comes."""
        return jax.random.fold_in(self.key, self.moments.count)


def flat(student: PyTree) -> Vector:
    """All numbers of a student."""
    return ravel_pytree(student)[0]


def unflattener(student: PyTree) -> Callable[[Vector], PyTree]:
    """What makes a student like this one, of which shapes suffice, from a vector."""
    like = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), student)
    return ravel_pytree(like)[1]


def perturbation(key: Key[Array, ""], k: Int[Array, ""], size: int) -> Vector:
    """ε_k."""
    return jax.random.normal(jax.random.fold_in(key, k), (size,))


def antithetic(theta: Vector, sigma: Float[Array, ""], epsilon: Vector) -> Float[Array, "2 n"]:
    """θ ± σε."""
    return jnp.stack([theta + sigma * epsilon, theta - sigma * epsilon])


def ranked(returns: Float[Array, " N"]) -> Float[Array, " N"]:
    """Ranks in [−½, ½], the best ½; of equal returns the earlier has the lower."""
    place = jnp.zeros(returns.size).at[jnp.argsort(returns, stable=True)].set(jnp.arange(returns.size, dtype=float))
    return place / (returns.size - 1) - 0.5


def estimate(
    key: Key[Array, ""],
    returns: Float[Array, " P"],
    sigma: Float[Array, ""],
    size: int,
    first: Int[ArrayLike, ""] = 0,
) -> Vector:
    """g from the returns of θ + σε₀, θ − σε₀, θ + σε₁, … Of the key's perturbations the one numbered `first` is ε₀."""
    u, pairs = ranked(returns), returns.size // 2
    weight, at_once = u[0::2] - u[1::2], math.gcd(pairs, AT_ONCE)
    number = jnp.asarray(first) + jnp.arange(pairs)

    def add(total: Vector, some: tuple[Int[Array, " m"], Float[Array, " m"]]) -> tuple[Vector, None]:
        noise = jax.vmap(lambda k: perturbation(key, k, size))(some[0])
        return total + jnp.sum(some[1][:, None] * noise, axis=0), None

    parts = number.reshape(-1, at_once), jnp.asarray(weight).reshape(-1, at_once)
    return lax.scan(add, jnp.zeros(size), parts)[0] / (pairs * sigma)
