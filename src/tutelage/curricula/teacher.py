"""A teacher that learns: a policy makes levels step by step, and PPO makes it better at what it is rewarded for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated
from tutelage.curricula.drafting import Drafting, designing
from tutelage.curricula.state import State
from tutelage.env import BoxDesign, Level, Procedure, StepDesign
from tutelage.student import ppo as ppos
from tutelage.student.learning import Learner
from tutelage.student.nets import StudentConfig
from tutelage.student.ppo import PPO
from tutelage.student.rollout import Episodes, Rollout, gae, rollout


class Work(eqx.Module):
    """What a teacher did, and the levels that came of it."""

    rollout: Rollout
    levels: Level


@dataclass(frozen=True)
class Teacher:
    """A teacher's network and how it learns."""

    network: StudentConfig = StudentConfig()
    """What follows the teacher's eye, which is the design space's."""
    ppo: PPO = PPO()
    """How the teacher learns. Where returns are normalised, what a level gains is divided by its running deviation."""
    z: int = 50
    """Random numbers shown to the teacher at each step."""

    def __post_init__(self):
        if self.z < 0:
            raise ValueError(f"`z` must not be negative, as {self.z} is.")
        if self.ppo.imitation_coef:
            raise ValueError("`ppo.imitation_coef` must be 0: a teacher has nobody to imitate.")

    def new(self, key: Key[Array, ""], procedure: Procedure, slots: int) -> Learner:
        """A teacher that has not learned yet, and that will make `slots` levels at a time."""
        key_eye, key_rest = jax.random.split(key)
        eye = procedure.encoder(key_eye, self.z)
        network = self.network.build(eye, procedure.actions, key=key_rest)
        ppos.check_minibatches(self.ppo, network, procedure.steps, slots, "the teacher's ppo.minibatches")
        return self.ppo.begin(key, network)

    def make(
        self, key: Key[Array, ""], learner: Learner, procedure: Procedure, slots: int, parents: Level | None = None
    ) -> Work:
        """A level for each slot: from nothing, or from its parent."""
        key_steps, key_finish = jax.random.split(key)
        queue = jnp.arange(slots, dtype=jnp.int32)[:, None]
        env = Drafting(procedure, self.z)
        r, end = rollout(key_steps, env, learner.student, parents, queue, procedure.steps)
        return Work(r, jax.vmap(procedure.finish)(jax.random.split(key_finish, slots), end.draft))

    def learn(
        self, key: Key[Array, ""], learner: Learner, r: Rollout, gain: Float[Array, " P"]
    ) -> tuple[Learner, dict[str, Float[Array, ""]]]:
        """One PPO update; `gain` is the reward of each slot's last step, all others being zero."""
        learner, gain = _scaled(learner, gain)
        r = replace(r, reward=jnp.zeros_like(r.reward).at[-1].set(gain))
        advantage, target = gae(r, discount=self.ppo.discount, gae_lambda=self.ppo.gae_lambda)
        return ppos.update(key, learner, ppos.make_batch(r, advantage, target, self.ppo), self.ppo)

    def reward(self, s: State, r: Rollout, gain: Float[Array, " P"], name: str) -> State:
        """Lets the teacher of a state learn, and notes its mean gain under a `name` of those that `noted` gives."""
        s, key = s.next_key()
        teacher, losses = self.learn(key, s.own.teacher, r, gain)
        values = zip(noted(name), (gain.mean(), losses["entropy"]), strict=True)
        s = s.note({name: (value, jnp.ones(())) for name, value in values})
        return replace(s, own=replace(s.own, teacher=teacher))


def noted(name: str) -> tuple[str, str]:
    """What is noted of a teacher: the gain `WHO/WHAT`, and the entropy of its policy."""
    return name, f"{name.partition('/')[0]}/entropy"


def _scaled(learner: Learner, gain: Float[Array, " P"]) -> tuple[Learner, Float[Array, " P"]]:
    if learner.scale is None:
        return learner, gain
    scale, scaled = learner.scale.observe(gain[None], jnp.ones((1, gain.size), bool))
    return replace(learner, scale=scale), scaled[0]


class Cast(eqx.Module):
    """The agents of a method besides its student."""

    teacher: Learner


@dataclass(frozen=True)
class Taught(Curated):
    """What methods have in common whose teacher designs every level. The buffer keeps the levels of highest score."""

    needs: ClassVar[type | tuple[type, ...]] = (StepDesign, BoxDesign)
    gain: ClassVar[str] = "teacher/return"

    teacher: Teacher = Teacher()
    """The agent that designs levels step by step."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the teacher gained, and the entropy of its policy."""
        return noted(self.gain)

    def init(self, room: Classroom, key: Key[Array, ""]) -> State:
        """A fresh student, and whoever else takes part."""
        s, key = super().init(room, key).next_key()
        return replace(s, own=self.cast(room, key))

    def cast(self, room: Classroom, key: Key[Array, ""]) -> Cast:
        """All agents but the student."""
        return Cast(self.teacher.new(key, designing(room.design), room.slots))

    def design(self, room: Classroom, s: State) -> tuple[State, Work]:
        """The teacher makes a level for each slot."""
        s, key = s.next_key()
        return s, self.teacher.make(key, s.own.teacher, designing(room.design), room.slots)

    def reward(self, s: State, r: Rollout, gain: Float[Array, " P"]) -> State:
        """The teacher learns what its levels were worth."""
        return self.teacher.reward(s, r, gain, self.gain)


def max_return(e: Episodes) -> Float[Array, " P"]:
    """Each slot's highest return over the episodes that ended; 0 if none did."""
    highest = jnp.where(e.ended, e.returns, -jnp.inf).max(axis=0)
    return jnp.where(e.ended.any(axis=0), highest, 0.0)
