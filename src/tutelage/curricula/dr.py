"""Domain randomisation: train on whatever the generator makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated, Trial, episode_totals
from tutelage.curricula.state import State
from tutelage.env import Level
from tutelage.student.es import ES
from tutelage.student.ppo import PPO


@dataclass(frozen=True)
class DR(Curated):
    """Domain randomisation (Tobin et al. 2017).

    The buffer only keeps the levels of highest score for you to look at; nothing is replayed from it.
    """

    teaches: ClassVar[tuple[type, ...]] = (PPO, ES)
    measures_novelty: ClassVar[bool] = False

    new_level: Literal["rollout", "episode"] = "rollout"
    """What a slot plays when an episode ends: its level again, until the rollout is over; or another new one (episode:
    the reference implementation)."""

    def cycle(self, room: Classroom, s: State) -> State:
        """Generate levels, roll out, learn."""
        s, key = s.next_cycle().next_key()
        if self.new_level == "rollout":
            levels = self.generate(room, key)
            s, trial = self.play(room, s, levels, "explore")
        else:
            s, trial, levels = self.play_each_once(room, s, key)
        s = self.learn(room, s, trial)
        return self.offer(s, levels, trial, "explore")

    def play_each_once(self, room: Classroom, s: State, key: Key[Array, ""]) -> tuple[State, Trial, Level]:
        """Rolls the student out on a queue of new levels in every slot. Also returns the first of each."""
        together = room.learning.together(room.slots)
        queue = jnp.arange(room.slots // together * self.queue_length(room), dtype=jnp.int32)
        pool = self.generate(room, key, queue.size)
        queue = jnp.repeat(queue.reshape(-1, self.queue_length(room)), together, axis=0)
        s, trial = self.play_queue(room, s, pool, queue, None)
        return s.note(episode_totals("explore", trial)), trial, jax.tree.map(lambda x: x[queue[:, 0]], pool)
