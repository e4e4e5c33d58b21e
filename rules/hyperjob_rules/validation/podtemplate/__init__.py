"""Validation of pod templates; begin with `spec`."""
