"""Domain randomisation: train on whatever the generator makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from tutelage.curricula.classroom import Classroom
from tutelage.curricula.curated import Curated, episode_totals
from tutelage.curricula.state import State


@dataclass(frozen=True)
class DR(Curated):
    """Domain randomisation (Tobin et al. 2017).

    The buffer only keeps the levels of highest score for you to look at; nothing is replayed from it.
    """

    new_level: Literal["rollout", "episode"] = "rollout"
    """What a slot plays when an episode ends: its level again, until the rollout is over; or another new one (episode:
    the reference implementation)."""

    def cycle(self, room: Classroom, s: State) -> State:
        """Generate levels, roll out, learn."""
        s, key = s.next_cycle().next_key()
        length = self.queue_length(room) if self.new_level == "episode" else 1
        queue = jnp.arange(room.slots * length, dtype=jnp.int32).reshape(room.slots, length)
        pool = self.generate(room, key, queue.size)
        s, trial = self.play_queue(room, s, pool, queue, None)
        s = self.learn(room, s.note(episode_totals("explore", trial)), trial)
        return self.offer(s, jax.tree.map(lambda x: x[queue[:, 0]], pool), trial, "explore")
