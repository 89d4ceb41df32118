"""Proximal policy optimisation on one rollout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, PyTree

from tutelage.env import Action, Obs
from tutelage.student.controller import Controller
from tutelage.student.distributions import divergence
from tutelage.student.learning import Learner, Lesson
from tutelage.student.nets import Student
from tutelage.student.rollout import Rollout, TimeLimit, gae
from tutelage.student.scaling import Scale

LOSSES = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "grad_norm")


@dataclass(frozen=True)
class PPO:
    """How the student learns."""

    name: ClassVar[str] = "ppo"

    learning_rate: float = 1e-4
    """Adam's step size."""
    decay: int = 0
    """Student updates over which the step size falls in a straight line to nothing, where it stays; 0: constant."""
    adam_eps: float = 1e-5
    """Adam's ε."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this global norm."""
    discount: float = 0.995
    """γ."""
    gae_lambda: float = 0.95
    """λ of generalised advantage estimation."""
    epochs: int = 5
    """Passes over each rollout."""
    minibatches: int = 1
    """Parts a pass is split into: whole slots for a student with memory, single steps for one without."""
    clip: float = 0.2
    """Trust region of the probability ratio, and of the value if it is clipped."""
    clip_value: bool = True
    """Clip the value's change too; without, the value loss is the Huber loss."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    imitation_coef: float = 0.0
    """Weight of the divergence from the policy of another student, where the method has one to imitate."""
    normalise_returns: bool = False
    """Divide rewards by the running standard deviation of the discounted return, and clip them to ±10."""
    bootstrap: bool = False
    """Value an episode that the time limit or the rollout's end cut short by the critic, instead of by nothing."""
    time_limit: TimeLimit = "cut"
    """With bootstrap, what the time limit is to an episode: a cut, or an end like any other, worth nothing more."""
    normalise: Literal["rollout", "minibatch"] = "rollout"
    """What advantages are normalised over: the rollout, once, with the unbiased standard deviation; or each minibatch,
    with that of the minibatch as a population."""

    notes = tuple(f"ppo/{name}" for name in LOSSES)
    """Means over the optimiser's steps of an update."""

    has_critic = True
    """An actor and a critic."""

    def __post_init__(self):
        if self.epochs < 1 or self.minibatches < 1:
            raise ValueError("`epochs` and `minibatches` must be at least 1.")
        if not 0 < self.discount <= 1 or not 0 <= self.gae_lambda <= 1:
            raise ValueError("`discount` must lie in (0, 1], and `gae_lambda` in [0, 1].")
        if self.learning_rate <= 0 or self.clip <= 0 or self.max_grad_norm <= 0:
            raise ValueError("`learning_rate`, `clip` and `max_grad_norm` must be positive.")
        for name in ("adam_eps", "value_coef", "entropy_coef", "imitation_coef"):
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` must not be negative, as {getattr(self, name)} is.")
        if self.decay < 0:
            raise ValueError(f"`decay` must not be negative, as {self.decay} is.")

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam behind a clip of the global gradient norm."""
        adam = optax.adam(self.step_size if self.decay else self.learning_rate, eps=self.adam_eps)
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), adam)

    def advantages(self, r: Rollout) -> tuple[Float[Array, "T P"], Float[Array, "T P"]]:
        """Advantages and targets by this γ, λ and way of bootstrapping."""
        return gae(
            r,
            discount=self.discount,
            gae_lambda=self.gae_lambda,
            bootstrap=self.bootstrap,
            time_limit=self.time_limit,
        )

    def step_size(self, steps: Int[ArrayLike, ""]) -> Float[Array, ""]:
        """α·(1 − u/decay) after u student updates, which are as many steps of the optimiser each."""
        updates = jnp.asarray(steps) // (self.epochs * self.minibatches)
        return self.learning_rate * jnp.maximum(1.0 - updates / self.decay, 0.0)

    @property
    def next_values(self) -> bool:
        """To bootstrap from."""
        return self.bootstrap

    def together(self, slots: int) -> int:
        """Every slot may play levels of its own."""
        return 1

    def check(self, student: PyTree, steps: int, slots: int) -> None:
        """Refuses a student without a critic, and minibatches that do not come out even."""
        if isinstance(student, Controller):
            raise ValueError("ppo needs a critic: `student.critic` = none is for students that learn by es.")
        check_minibatches(self, student, steps, slots)

    def begin(self, key: Key[Array, ""], student: PyTree) -> Learner:
        """A learner that has not learned yet; nothing is left to chance."""
        return Learner(student, self.optimiser.init(student), Scale.new() if self.normalise_returns else None)

    def players(self, learner: Learner, slots: int) -> PyTree:
        """The student, in all of them."""
        return learner.student

    def appraise(self, learner: Learner, r: Rollout) -> tuple[Learner, Float[Array, "T P"], Float[Array, "T P"]]:
        """`advantages`, of rewards in units of their scale where they are normalised."""
        learner, reward = _scaled_rewards(learner, r)
        return learner, *self.advantages(replace(r, reward=reward))

    def learn(
        self, key: Key[Array, ""], learner: Learner, lesson: Lesson
    ) -> tuple[Learner, dict[str, Float[Array, ""]]]:
        """`update` on one rollout."""
        batch = make_batch(lesson.rollout, lesson.advantage, lesson.target, self, lesson.counts)
        batch = replace(batch, imitated=lesson.imitated)
        learner, losses = update(key, learner, batch, self)
        return learner, {f"ppo/{name}": value for name, value in losses.items()}


def _scaled_rewards(learner: Learner, r: Rollout) -> tuple[Learner, Float[Array, "T P"]]:
    """The rewards to learn from, and the learner that has taken note of their scale."""
    if learner.scale is None:
        return learner, r.reward
    scale, reward = learner.scale.observe(r.reward, r.start)
    return replace(learner, scale=scale), reward


class Batch(eqx.Module):
    """What the loss needs of a rollout, `[T, P]` each."""

    obs: Obs
    action: Action
    start: Array
    log_prob: Float[Array, "T P"]
    value: Float[Array, "T P"]
    advantage: Float[Array, "T P"]
    target: Float[Array, "T P"]
    imitated: PyTree = None
    counts: Bool[Array, "T P"] | None = None


def make_batch(
    r: Rollout,
    advantage: Float[Array, "T P"],
    target: Float[Array, "T P"],
    ppo: PPO,
    counts: Bool[Array, "T P"] | None = None,
) -> Batch:
    """Advantages are normalised here, once over the whole rollout, unless each minibatch has its turn later."""
    if ppo.normalise == "rollout":
        advantage = _normal(advantage, counts, 1, 1e-5)
    return Batch(r.obs, r.action, r.start, r.log_prob, r.value, advantage, target, counts=counts)


def loss(student: Student, batch: Batch, ppo: PPO) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """L = policy loss + c_v · value loss − c_e · entropy, + c_i · KL(π_other ‖ π) where another is imitated."""
    mean = partial(_mean, counts=batch.counts)
    if ppo.normalise == "minibatch":
        batch = replace(batch, advantage=_normal(batch.advantage, batch.counts, 0, 1e-8))
    policy, value = student.evaluate(batch.obs, batch.start)
    log_ratio = policy.log_prob(batch.action) - batch.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - ppo.clip, 1 + ppo.clip)
    policy_loss = -mean(jnp.minimum(ratio * batch.advantage, clipped * batch.advantage))
    value_loss = mean(_value_loss(value, batch, ppo))
    entropy = mean(policy.entropy())
    total = policy_loss + ppo.value_coef * value_loss - ppo.entropy_coef * entropy
    if batch.imitated is not None:
        total += ppo.imitation_coef * mean(divergence(batch.imitated, policy))
    return total, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "kl": mean(ratio - 1 - log_ratio),
        "clip_fraction": mean((jnp.abs(ratio - 1) > ppo.clip).astype(jnp.float32)),
    }


def _mean(x: Float[Array, "T P"], counts: Bool[Array, "T P"] | None) -> Float[Array, ""]:
    """The mean, over the steps that count alone where they are told."""
    return x.mean() if counts is None else jnp.where(counts, x, 0.0).sum() / jnp.maximum(counts.sum(), 1)


def _normal(x: Float[Array, "T P"], counts: Bool[Array, "T P"] | None, ddof: int, eps: float) -> Float[Array, "T P"]:
    """In units of the standard deviation from the mean."""
    if counts is None:
        return (x - x.mean()) / (x.std(ddof=ddof) + eps)
    apart = x - _mean(x, counts)
    square = jnp.where(counts, apart**2, 0.0).sum() / jnp.maximum(counts.sum() - ddof, 1)
    return apart / (jnp.sqrt(square) + eps)


def _value_loss(value: Float[Array, "T P"], batch: Batch, ppo: PPO) -> Float[Array, "T P"]:
    """½ max((V − R)², (V_clipped − R)²), or the Huber loss where the value is not clipped."""
    if not ppo.clip_value:
        return optax.huber_loss(value, batch.target)
    near = batch.value + jnp.clip(value - batch.value, -ppo.clip, ppo.clip)
    return 0.5 * jnp.maximum((value - batch.target) ** 2, (near - batch.target) ** 2)


def policy_gradient_norm(student: Student, r: Rollout, advantage: Float[Array, "T P"]) -> Float[Array, " P"]:
    """‖∇_θ (1/T) Σ_t Â_t log π(a_t)‖² of each slot by itself, Â normalised over all slots together.

    It is the gradient of PPO's policy loss where the student is still the one that played. The critic has no part in
    it, so that what is left is the change of the policy; a few slots at a time, since each has a gradient of its own.
    """
    normal = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-5)

    def objective(student: Student, slot: tuple[Obs, Action, Array, Array]) -> Float[Array, ""]:
        obs, action, start, advantage = jax.tree.map(lambda x: x[:, None], slot)
        return (student.evaluate(obs, start)[0].log_prob(action) * advantage).mean()

    slots = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), (r.obs, r.action, r.start, normal))
    return lax.map(lambda slot: optax.tree.norm(jax.grad(objective)(student, slot), squared=True), slots, batch_size=8)


def update(
    key: Key[Array, ""], learner: Learner, batch: Batch, ppo: PPO
) -> tuple[Learner, dict[str, Float[Array, ""]]]:
    """One student update: `epochs` × `minibatches` steps of the optimiser. Metrics are means over them."""
    if not learner.student.recurrent:
        batch = jax.tree.map(lambda x: x.reshape(1, -1, *x.shape[2:]), batch)
    columns = batch.value.shape[1]

    def descend(learner: Learner, part: Int[Array, " columns"] | None):
        chosen = batch if part is None else jax.tree.map(lambda x: x[:, part], batch)
        (_, metrics), grads = jax.value_and_grad(loss, has_aux=True)(learner.student, chosen, ppo)
        updates, optimiser = ppo.optimiser.update(grads, learner.optimiser)
        metrics["grad_norm"] = optax.tree.norm(grads)
        student = optax.apply_updates(learner.student, updates)
        return Learner(student, optimiser, learner.scale), metrics

    def epoch(learner: Learner, key: Key[Array, ""]):
        if ppo.minibatches == 1:
            return descend(learner, None)
        parts = jax.random.permutation(key, columns).reshape(ppo.minibatches, -1)
        learner, metrics = lax.scan(descend, learner, parts)
        return learner, jax.tree.map(jnp.mean, metrics)

    learner, metrics = lax.scan(epoch, learner, jax.random.split(key, ppo.epochs))
    return learner, jax.tree.map(jnp.mean, metrics)


def check_minibatches(ppo: PPO, student: Student, steps: int, slots: int, name: str = "`ppo.minibatches`") -> None:
    """Refuses a split that does not come out even; `name` is what the setting is called in the message."""
    columns = slots if student.recurrent else steps * slots
    if columns % ppo.minibatches:
        what = f"{slots} slots" if student.recurrent else f"{steps}×{slots} steps"
        raise ValueError(f"{name} = {ppo.minibatches} does not divide {what}; choose a divisor.")
