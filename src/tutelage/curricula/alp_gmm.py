"""ALP-GMM: propose tasks where the student's performance changes most, found by a Gaussian mixture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from tutelage.curricula import mixture as mixtures
from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated, Trial, episode_totals
from tutelage.curricula.mixture import Mixture
from tutelage.curricula.progress import History, remember
from tutelage.curricula.seeds import when
from tutelage.curricula.state import State
from tutelage.env import BoxDesign, Level

SIDE = 2.0  # tasks live in [0, 2]ⁿ, whatever the ranges of the parameters


class Knowledge(eqx.Module):
    """What ALP-GMM knows: the history, and the mixture last fitted to it."""

    history: History
    mixture: Mixture


@dataclass(frozen=True)
class ALPGMM(Curated):
    """Absolute learning progress with Gaussian mixtures (Portelas et al. 2019), for levels that are real vectors.

    The ALP of an episode is the difference between its return and that of the nearest task tried before. Mixtures are
    fitted to (task, ALP) of the latest tasks; new tasks come from components of high ALP. Every episode has a task of
    its own, and the student learns from all. The buffer only keeps the levels of highest score for you to look at.
    """

    needs: ClassVar[type | tuple[type, ...]] = BoxDesign
    measures_novelty: ClassVar[bool] = False

    after_episode: Literal["redraw"] = "redraw"
    """Each episode of a slot is on a new task."""
    fit_rate: int = 250
    """Episodes between two fits, and tasks a mixture is fitted to; before the first, tasks are uniform."""
    fewest: int = 2
    """The smallest number of components tried."""
    most: int = 20
    """The largest; of all fits the one of smallest AIC is used."""
    random_rate: float = 0.2
    """Share of tasks that are drawn uniformly all the same."""
    lowest_return: float = -200.0
    """The return that counts as 0 when ALP is computed; smaller ones do too."""
    highest_return: float = 350.0
    """The return that counts as 1."""
    history: int = 1_048_576
    """Tasks remembered, the latest ones: more than a run of the paper's length plays in most cases."""

    notes = ("alp_gmm/alp", "alp_gmm/components")
    """Mean ALP of the episodes, and how many components the mixture has."""

    def __post_init__(self):
        if not 1 <= self.fewest <= self.most:
            raise ValueError("`fewest` must be at least 1 and at most `most`.")
        if not self.most <= self.fit_rate <= self.history:
            raise ValueError("`fit_rate` must be at least `most` and at most `history`.")
        if not 0 <= self.random_rate <= 1 or not self.lowest_return < self.highest_return:
            raise ValueError("`random_rate` must lie in [0, 1], and `lowest_return` below `highest_return`.")

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student, and a teacher that knows nothing."""
        dimensions = low_and_span(room)[0].size
        teacher = Knowledge(History.new(self.history, dimensions), mixtures.nothing(self.most, dimensions + 1))
        return replace(super().init(room, key), own=teacher)

    def cycle(self, room: Classroom, s: State) -> State:
        """Propose a queue of tasks for every slot, roll out, tell the teacher, learn."""
        s, key = s.next_cycle().next_key()
        key_tasks, key_levels, key_fit = jax.random.split(key, 3)
        tasks = self.propose(key_tasks, s.own, (room.slots, self.queue_length(room)))
        pool = make_levels(room, key_levels, tasks)
        queue = jnp.arange(tasks.shape[0] * tasks.shape[1], dtype=jnp.int32).reshape(tasks.shape[:2])
        s, trial = self.play_queue(room, s, pool, queue, None)
        s = s.note(episode_totals("explore", trial))
        s = self.tell(key_fit, s, tasks, trial)
        s = self.learn(room, s, trial)
        return self.offer(s, jax.tree.map(lambda x: x[queue[:, 0]], pool), trial, "explore")

    def propose(self, key: Key[Array, ""], teacher: Knowledge, shape: tuple[int, ...]) -> Float[Array, "*shape n"]:
        """Tasks from components picked in proportion to their mean ALP, some of them uniform in the box instead."""
        dimensions = teacher.history.tasks.shape[1]
        chances = jnp.where(teacher.mixture.used, jnp.maximum(teacher.mixture.means[:, -1], 0.0), 0.0)

        def one(key: Key[Array, ""]) -> Float[Array, " n"]:
            key_coin, key_uniform, key_draw = jax.random.split(key, 3)
            anywhere = jax.random.uniform(key_uniform, (dimensions,), maxval=SIDE)
            drawn = jnp.clip(mixtures.draw(key_draw, teacher.mixture, chances)[:-1], 0.0, SIDE)
            at_random = (jax.random.uniform(key_coin) < self.random_rate) | ~chances.any()
            return jnp.where(at_random, anywhere, drawn)

        keys = jax.random.split(key, shape)
        for _ in shape:
            one = jax.vmap(one)
        return one(keys)

    def tell(self, key: Key[Array, ""], s: State, tasks: Float[Array, "P Q n"], trial: Trial) -> State:
        """The teacher takes in a rollout's finished episodes, and the log what it makes of them."""
        ended, (tasks, returns) = finished(tasks, trial)
        reward = jnp.clip((returns - self.lowest_return) / (self.highest_return - self.lowest_return), 0.0, 1.0)
        teacher, alps = self.observe(key, s.own, tasks, reward, ended)
        components = teacher.mixture.used.sum(dtype=jnp.float32)
        alp = (alps.sum(), ended.sum(dtype=jnp.float32))
        s = s.note({"alp_gmm/alp": alp, "alp_gmm/components": (components, jnp.float32(1))})
        return replace(s, own=teacher)

    def observe(
        self, key: Key[Array, ""], teacher: Knowledge, tasks: Array, rewards: Array, valid: Bool[Array, " E"]
    ) -> tuple[Knowledge, Float[Array, " E"]]:
        """Remembers episodes in order, valid ones first, and fits anew if another `fit_rate` of them are full."""
        before = teacher.history.count // self.fit_rate
        history, alps = remember(teacher.history, tasks, rewards, valid)
        teacher = replace(teacher, history=history)
        due = history.count // self.fit_rate > before
        return when(due, self.fit, teacher, key), alps

    def fit(self, teacher: Knowledge, key: Key[Array, ""]) -> Knowledge:
        """A mixture of the latest tasks and their ALP; the old one stays if none could be fitted."""
        points = teacher.history.latest(self.fit_rate)
        new, aic = mixtures.fit_best(key, points, (self.fewest, self.most))
        kept = jax.tree.map(lambda a, b: jnp.where(jnp.isfinite(aic), a, b), new, teacher.mixture)
        return replace(teacher, mixture=kept)


def low_and_span(room: Classroom) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The lower corner of the box of parameters, and its sides."""
    assert isinstance(room.design, BoxDesign)
    low = jnp.asarray(room.design.low, jnp.float32)
    return low, jnp.asarray(room.design.high, jnp.float32) - low


def make_levels(room: Classroom, key: Key[Array, ""], tasks: Float[Array, "P Q n"]) -> Level:
    """The levels of tasks, in one row."""
    assert isinstance(room.design, BoxDesign)
    low, span = low_and_span(room)
    vectors = low + tasks.reshape(-1, low.size) / SIDE * span
    return jax.vmap(room.design.from_vector)(jax.random.split(key, vectors.shape[0]), vectors)


def finished(tasks: Float[Array, "P Q n"], trial: Trial) -> tuple[Bool[Array, " E"], tuple[Array, Array]]:
    """Tasks and returns of the episodes that ended, in order of time; E = P·Q places, the first of them filled."""
    slots, length, _ = tasks.shape
    ended = trial.episodes.ended.ravel()
    order = jnp.argsort(~ended, stable=True)[: slots * length]
    time, slot = order // slots, order % slots
    return ended[order], (tasks[slot, trial.rollout.entry[time, slot]], trial.episodes.returns[time, slot])
