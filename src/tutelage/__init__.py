"""Unsupervised environment design in JAX."""
