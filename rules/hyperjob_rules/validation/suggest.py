"""Suggestions for misspelt names in errors ("did you mean ...")."""

from hyperjob_core.hints import Hints, did_you_mean, nearest

__all__ = ["Hints", "did_you_mean", "nearest"]
