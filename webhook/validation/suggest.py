"""Add the name that a misspelt name was probably meant to be to an error."""

from hyperjob.hints import Hints, did_you_mean, nearest

__all__ = ["Hints", "did_you_mean", "nearest"]
