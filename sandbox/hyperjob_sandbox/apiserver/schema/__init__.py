"""Structural schemas of custom resources: prune, default, validate, and whether they are sound."""
