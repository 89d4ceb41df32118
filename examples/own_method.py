"""A method of your own: try many new levels, and learn on the best of them only.

python examples/own_method.py
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

import tutelage as tut
from tutelage.curricula.curated import Curated
from tutelage.runs.presets import METHODS


@dataclass(frozen=True)
class Picky(Curated):
    """Domain randomisation that learns on the levels of highest score alone, each in several slots."""

    share: float = 0.25
    """Share of the new levels that the student learns on."""

    def cycle(self, room, s):
        s, key = s.next_cycle().next_key()
        levels = self.generate(room, key)
        s, trial = self.play(room, s, levels, "explore")
        count = max(1, round(self.share * room.slots))
        best = lax.top_k(trial.first_marks.score, count)[1]
        slots = best[jnp.arange(room.slots) % count]
        chosen = jax.tree.map(lambda x: x[slots], levels)
        s, trial = self.play(room, s, chosen, "replay")
        s = self.learn(room, s, trial)
        return self.offer(s, chosen, trial, "replay")


METHODS["picky"] = Picky  # its name in a run's config, so that the run can be opened again

if __name__ == "__main__":
    config = tut.preset("lava", "small", method=Picky(tut.BufferConfig(capacity=100)), updates=150, eval_every=0)
    run = tut.train(config, "runs/picky")
    for result in run.evaluate("lava", episodes=100):
        print(result.level, round(result.solved_rate, 2))
