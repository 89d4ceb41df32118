"""What Box2D does to a walker in a step, as pure functions that know nothing of where they run.

`step` has a step's stages in their order; `velocity` and `position` are Box2D's two solvers, `impact` its continuous
collision detection, `nearby`, `manifold` and `contacts` what touches what. What they leave to the machine that computes
them, and how to trace them for another one, is said in `machine`.
"""
