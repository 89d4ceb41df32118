"""The rules of JAX's primitives, a file for each kind; to import this is to enter them all."""

from tutelage.page.translate.rules import control, elementwise, keys, movement, places, reductions, views

__all__ = ["control", "elementwise", "keys", "movement", "places", "reductions", "views"]
